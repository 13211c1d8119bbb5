"""Countries, and states of some: what stands behind the name of a place, as in `Santa Clara, CA`."""

from __future__ import annotations

from pytest_helmbench.benchmarks.packs.families.text.vocabulary import word_set

__all__ = ["is_region", "lies_elsewhere"]

_COUNTRIES = word_set(
    "afghanistan albania algeria andorra angola argentina armenia australia austria azerbaijan bahamas bahrain",
    "bangladesh barbados belarus belgium belize benin bhutan bolivia bosnia_and_herzegovina botswana brazil brunei",
    "bulgaria burkina_faso burundi cambodia cameroon canada cape_verde chad chile china colombia comoros congo",
    "costa_rica croatia cuba cyprus czechia czech_republic denmark djibouti dominica dominican_republic ecuador egypt",
    "el_salvador eritrea estonia eswatini ethiopia fiji finland france gabon gambia germany ghana greece grenada",
    "guatemala guinea guyana haiti honduras hungary iceland india indonesia iran iraq ireland israel italy ivory_coast",
    "jamaica japan jordan kazakhstan kenya kuwait kyrgyzstan laos latvia lebanon lesotho liberia libya liechtenstein",
    "lithuania luxembourg madagascar malawi malaysia maldives mali malta mauritania mauritius mexico moldova monaco",
    "mongolia montenegro morocco mozambique myanmar namibia nepal netherlands new_zealand nicaragua niger nigeria",
    "north_korea north_macedonia norway oman pakistan panama papua_new_guinea paraguay peru philippines poland",
    "portugal qatar romania russia rwanda samoa san_marino saudi_arabia senegal serbia seychelles sierra_leone",
    "singapore slovakia slovenia somalia south_africa south_korea south_sudan spain sri_lanka sudan suriname sweden",
    "switzerland syria taiwan tajikistan tanzania thailand togo tonga tunisia turkey turkmenistan uganda ukraine",
    "uruguay uzbekistan vatican_city venezuela vietnam yemen zambia zimbabwe england scotland wales northern_ireland",
    "united_kingdom uk great_britain britain united_arab_emirates uae united_states united_states_of_america usa us",
    "deutschland österreich schweiz frankreich italien spanien españa italia suisse allemagne",
)
_UNITED_STATES = word_set(
    "alabama alaska arizona arkansas california colorado connecticut delaware florida georgia hawaii idaho illinois",
    "indiana iowa kansas kentucky louisiana maine maryland massachusetts michigan minnesota mississippi missouri",
    "montana nebraska nevada new_hampshire new_jersey new_mexico new_york north_carolina north_dakota ohio oklahoma",
    "oregon pennsylvania rhode_island south_carolina south_dakota tennessee texas utah vermont virginia washington",
    "west_virginia wisconsin wyoming al ak az ar ca co ct de fl ga hi id il in ia ks ky la me md ma mi mn ms mo mt ne",
    "nv nh nj nm ny nc nd oh ok or pa ri sc sd tn tx ut vt va wa wv wi wy dc d.c washington_dc",
)
_CANADA = word_set(
    "ontario quebec british_columbia alberta manitoba saskatchewan nova_scotia new_brunswick newfoundland bc on qc ab",
)
_AUSTRALIA = word_set(
    "new_south_wales victoria queensland tasmania south_australia western_australia northern_territory nsw vic qld tas",
    "act australian_capital_territory",
)
_COUNTRY_OF = (
    (_UNITED_STATES, ("united states", "usa", "us", "america", "american")),
    (_CANADA, ("canada", "canadian")),
    (_AUSTRALIA, ("australia", "australian")),
)
_ENDS = (
    "territory",
    "province",
    "county",
    "state",
    "region",
    "republic",
    "kingdom",
    "district",
    "prefecture",
    "empire",
    "union",
)


def is_region(name: str) -> bool:
    """Return whether a folded text is a country, a state or a part of one."""
    return name in _COUNTRIES or any(name in states for states, _ in _COUNTRY_OF) or name.endswith(_ENDS)


def lies_elsewhere(name: str, asked: frozenset[str]) -> bool:
    """Return whether a region lies in another country than the one that a question names.

    Args:
        name: Folded.
        asked: Words of the question, folded; a question that names no country leaves all open.
    """
    if name in asked or not asked & _COUNTRIES:
        return False
    names = next((names for states, names in _COUNTRY_OF if name in states), ())
    return not asked & frozenset(names)
