"""Common knowledge of names: two words for one thing, peoples of countries, chemical symbols and formulas.

The tables are short on purpose: what stands here any reader takes for the same, whatever the question.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

from pytest_helmbench.benchmarks.packs.families.text.unit_symbols import SI_SYMBOLS
from pytest_helmbench.benchmarks.packs.families.text.wording import folded

__all__ = [
    "are_one_given_name",
    "countries_of",
    "elements_of",
    "formulas_of",
    "peoples_of",
    "state_code_of",
    "symbol_of",
    "synonyms_of",
]

_SYNONYMS = """
chickpea/chick pea/garbanzo/garbanzo bean; eggplant/aubergine; zucchini/courgette; coriander/cilantro; maize/corn
peanut/groundnut; shrimp/prawn; scallion/spring onion/green onion; cello/violoncello; double bass/contrabass
soccer/association football; ice hockey/hockey
table tennis/ping pong; petrol/gasoline; aeroplane/airplane/plane; autumn/fall; film/movie
femur/thigh bone/thighbone; tibia/shin bone/shinbone; clavicle/collarbone/collar bone; patella/kneecap/knee cap
scapula/shoulder blade; sternum/breastbone; mandible/jawbone/lower jaw; cranium/skull; trachea/windpipe
larynx/voice box; stapes/stirrup/stirrup bone; oesophagus/esophagus/gullet; eardrum/tympanic membrane
erythrocyte/red blood cell; leukocyte/leucocyte/white blood cell; thrombocyte/platelet
myocardial infarction/heart attack; hypertension/high blood pressure; rabies/hydrophobia
varicella/chickenpox/chicken pox; rubella/german measles; pertussis/whooping cough
vitamin c/ascorbic acid/l ascorbic acid; vitamin b1/thiamine/thiamin; vitamin b2/riboflavin; vitamin b3/niacin
vitamin b7/biotin; vitamin b9/folic acid/folate; vitamin b12/cobalamin; vitamin a/retinol
vitamin d3/cholecalciferol; adrenaline/epinephrine; noradrenaline/norepinephrine; paracetamol/acetaminophen
aspirin/acetylsalicylic acid; sodium chloride/table salt/salt; sodium bicarbonate/baking soda
nitrous oxide/laughing gas; acetic acid/ethanoic acid; ethanol/ethyl alcohol; ethyne/acetylene; mercury/quicksilver
deoxyribonucleic acid/dna; ribonucleic acid/rna; adenosine triphosphate/atp; netherlands/holland/the netherlands
myanmar/burma; ivory coast/côte d'ivoire; czech republic/czechia; turkey/türkiye; united arab emirates/uae
soviet union/ussr/union of soviet socialist republics; iran/persia; thailand/siam; eswatini/swaziland
united kingdom/uk/great britain/britain; united states/usa/america/united states of america; sri lanka/ceylon
democratic republic of the congo/drc/dr congo/congo kinshasa; china/prc/people's republic of china
cape verde/cabo verde; persian/farsi; spanish/castilian; mandarin/mandarin chinese/chinese
pound sterling/british pound/pound/sterling/gbp; yen/japanese yen/jpy; euro/eur; us dollar/usd; swiss franc/chf
renminbi/yuan/chinese yuan/rmb/cny; indian rupee/rupee/inr; orca/killer whale; cougar/puma/mountain lion
reindeer/caribou; mount everest/everest/sagarmatha/chomolungma; kyiv/kiev; mumbai/bombay; kolkata/calcutta
beijing/peking; ho chi minh city/saigon; new york city/nyc/new york; washington dc/washington; xi'an/xian
saint petersburg/st petersburg; world war i/first world war/wwi/ww1/world war one/the great war
world war ii/second world war/wwii/ww2/world war two; aluminium/aluminum; sulphur/sulfur; caesium/cesium
florence/firenze; venice/venezia; rome/roma; naples/napoli; turin/torino; milan/milano; genoa/genova; cologne/köln
munich/münchen; nuremberg/nürnberg; vienna/wien; prague/praha; warsaw/warszawa; krakow/kraków/cracow; moscow/moskva
lisbon/lisboa; seville/sevilla; copenhagen/københavn; gothenburg/göteborg; brussels/bruxelles/brussel
antwerp/antwerpen; the hague/den haag; geneva/genève/genf; athens/athina; bucharest/bucurești; belgrade/beograd
tutankhamun/tutankhamen/king tut
vatican city/vatican/vatican city state; light year/lightyear; per cent/percent; tyre/tire; grey/gray
"""
_GIVEN_NAMES = """
johannes jan johann jean john jack hans; william bill will billy willem wilhelm; robert bob bobby rob
richard dick rick; elizabeth liz beth betty; margaret maggie peggy; edward ted ned; theodore ted; henry harry hank
james jim jimmy; michael mike; anthony tony; catherine katherine kate; charles chuck carl karl; peter pieter pierre
joseph joe josef; lawrence larry; alexander alex sasha; dorothy dot; christopher chris kit; leonard leo lenny
"""
_PEOPLES = """
africa:african europe:european asia:asian antarctica:antarctic
afghanistan:afghan albania:albanian algeria:algerian argentina:argentine,argentinian armenia:armenian
australia:australian austria:austrian bangladesh:bangladeshi belarus:belarusian belgium:belgian bolivia:bolivian
bosnia:bosnian brazil:brazilian bulgaria:bulgarian cambodia:cambodian cameroon:cameroonian canada:canadian
chile:chilean china:chinese colombia:colombian croatia:croatian,croat cuba:cuban cyprus:cypriot denmark:danish,dane
ecuador:ecuadorian egypt:egyptian england:english estonia:estonian ethiopia:ethiopian finland:finnish,finn
france:french germany:german ghana:ghanaian greece:greek guatemala:guatemalan haiti:haitian hungary:hungarian
iceland:icelandic,icelander india:indian indonesia:indonesian iran:iranian,persian iraq:iraqi ireland:irish
israel:israeli italy:italian jamaica:jamaican japan:japanese jordan:jordanian kazakhstan:kazakh kenya:kenyan
kuwait:kuwaiti latvia:latvian lebanon:lebanese libya:libyan lithuania:lithuanian luxembourg:luxembourgish
malaysia:malaysian malta:maltese mexico:mexican mongolia:mongolian morocco:moroccan nepal:nepalese
netherlands:dutch nicaragua:nicaraguan nigeria:nigerian norway:norwegian pakistan:pakistani panama:panamanian
paraguay:paraguayan peru:peruvian philippines:filipino,philippine poland:polish,pole portugal:portuguese
romania:romanian russia:russian scotland:scottish,scot serbia:serbian,serb slovakia:slovak
slovenia:slovenian,slovene somalia:somali spain:spanish,spaniard sweden:swedish,swede switzerland:swiss
syria:syrian taiwan:taiwanese thailand:thai tunisia:tunisian turkey:turkish,turk uganda:ugandan ukraine:ukrainian
uruguay:uruguayan venezuela:venezuelan vietnam:vietnamese wales:welsh zimbabwe:zimbabwean
"""
_MORE_PEOPLES = {
    "united states": ("american",),
    "united kingdom": ("british", "briton"),
    "south africa": ("south african",),
    "new zealand": ("new zealander",),
    "south korea": ("south korean", "korean"),
    "north korea": ("north korean",),
    "soviet union": ("soviet",),
    "czech republic": ("czech",),
    "saudi arabia": ("saudi",),
}
_ELEMENTS = """
hydrogen:H helium:He lithium:Li beryllium:Be boron:B carbon:C nitrogen:N oxygen:O fluorine:F neon:Ne sodium:Na
magnesium:Mg aluminium:Al aluminum:Al silicon:Si phosphorus:P sulfur:S sulphur:S chlorine:Cl argon:Ar potassium:K
calcium:Ca scandium:Sc titanium:Ti vanadium:V chromium:Cr manganese:Mn iron:Fe cobalt:Co nickel:Ni copper:Cu
zinc:Zn gallium:Ga germanium:Ge arsenic:As selenium:Se bromine:Br krypton:Kr rubidium:Rb strontium:Sr yttrium:Y
zirconium:Zr niobium:Nb molybdenum:Mo ruthenium:Ru rhodium:Rh palladium:Pd silver:Ag cadmium:Cd indium:In tin:Sn
antimony:Sb tellurium:Te iodine:I xenon:Xe caesium:Cs cesium:Cs barium:Ba lanthanum:La cerium:Ce neodymium:Nd
tungsten:W osmium:Os iridium:Ir platinum:Pt gold:Au mercury:Hg thallium:Tl lead:Pb bismuth:Bi polonium:Po
astatine:At radon:Rn francium:Fr radium:Ra actinium:Ac thorium:Th uranium:U neptunium:Np plutonium:Pu americium:Am
curium:Cm einsteinium:Es fermium:Fm nobelium:No
"""
_STATES = """
alabama:AL alaska:AK arizona:AZ arkansas:AR california:CA colorado:CO connecticut:CT delaware:DE florida:FL
georgia:GA hawaii:HI idaho:ID illinois:IL indiana:IN iowa:IA kansas:KS kentucky:KY louisiana:LA maine:ME
maryland:MD massachusetts:MA michigan:MI minnesota:MN mississippi:MS missouri:MO montana:MT nebraska:NE nevada:NV
new_hampshire:NH new_jersey:NJ new_mexico:NM new_york:NY north_carolina:NC north_dakota:ND ohio:OH oklahoma:OK
oregon:OR pennsylvania:PA rhode_island:RI south_carolina:SC south_dakota:SD tennessee:TN texas:TX utah:UT
vermont:VT virginia:VA washington:WA west_virginia:WV wisconsin:WI wyoming:WY
"""
_FORMULAS = """
water/H2O; carbon dioxide/CO2; carbon monoxide/CO; oxygen/O2; nitrogen/N2; hydrogen/H2; ozone/O3; chlorine/Cl2
methane/CH4; ammonia/NH3; sodium chloride/NaCl; hydrochloric acid/HCl; sulfuric acid/sulphuric acid/H2SO4
nitric acid/HNO3; glucose/C6H12O6; sodium hydroxide/NaOH; calcium carbonate/CaCO3; hydrogen peroxide/H2O2
nitrous oxide/N2O; sulfur dioxide/sulphur dioxide/SO2; ethanol/C2H5OH; acetic acid/CH3COOH; calcium oxide/CaO
silicon dioxide/silica/SiO2; iron oxide/Fe2O3; nitrogen dioxide/NO2; sodium bicarbonate/NaHCO3; propane/C3H8
benzene/C6H6; hydrogen sulfide/H2S; lithium ion/Li+; sodium ion/Na+
"""


def _groups(table: str) -> Iterator[tuple[str, ...]]:
    for group in table.replace("\n", ";").split(";"):
        if group.strip():
            yield tuple(folded(name) for name in group.split("/"))


@lru_cache(maxsize=1)
def _same_things() -> Mapping[str, tuple[str, ...]]:
    return {name: group for group in _groups(_SYNONYMS) for name in group}


@lru_cache(maxsize=1)
def _peoples() -> Mapping[str, tuple[str, ...]]:
    pairs = (entry.split(":") for entry in _PEOPLES.split())
    return {country: tuple(names.split(",")) for country, names in pairs} | _MORE_PEOPLES


@lru_cache(maxsize=1)
def _countries() -> Mapping[str, tuple[str, ...]]:
    return {name: (country,) for country, names in _peoples().items() for name in names}


@lru_cache(maxsize=1)
def _symbols() -> Mapping[str, str]:
    return SI_SYMBOLS | dict(entry.split(":") for entry in _ELEMENTS.split())


@lru_cache(maxsize=1)
def _state_codes() -> Mapping[str, str]:
    return dict(entry.replace("_", " ").split(":") for entry in _STATES.split())


@lru_cache(maxsize=1)
def _compounds() -> Mapping[str, tuple[str, ...]]:
    return {name: group for group in _groups(_FORMULAS) for name in group}


def synonyms_of(name: str) -> tuple[str, ...]:
    """Return other words for the thing that a folded name is of, in the singular; it may be in the plural."""
    things = _same_things()
    group = things.get(name) or things.get(name.removesuffix("s")) or ()
    return tuple(other for other in group if other != name)


@lru_cache(maxsize=1)
def _given_names() -> tuple[frozenset[str], ...]:
    return tuple(frozenset(group.split()) for group in _GIVEN_NAMES.replace("\n", ";").split(";"))


def are_one_given_name(one: str, other: str) -> bool:
    """Return whether two given names in lower case may be one person's: `Jan` and `Johannes`."""
    return any(one in group and other in group for group in _given_names())


def peoples_of(country: str) -> tuple[str, ...]:
    """Return what the people of a country, and what is theirs, are called."""
    return _peoples().get(country, ())


def countries_of(people: str) -> tuple[str, ...]:
    """Return the country that a word for people is made of."""
    return _countries().get(people, ())


def symbol_of(name: str) -> str | None:
    """Return the symbol of a chemical element or of a unit."""
    return _symbols().get(name)


def state_code_of(state: str) -> str | None:
    """Return the two letters of a state of the United States."""
    return _state_codes().get(state)


def elements_of(symbol: str) -> tuple[str, ...]:
    """Return the names of the element that has a chemical symbol, as it is written."""
    names = (entry.split(":") for entry in _ELEMENTS.split())
    return tuple(name for name, one in names if one == symbol)


def formulas_of(name: str) -> tuple[str, ...]:
    """Return the other forms of a chemical compound, folded: its names, its formula."""
    return tuple(other for other in _compounds().get(name, ()) if other != name)
