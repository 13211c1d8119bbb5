"""Short replies in another form than an accepted answer has: names, lists, numbers, yes and no."""

from __future__ import annotations

import pytest
from text_rows import evaluate_answer

from pytest_helmbench.benchmarks.packs.families.text.finding import AnswerFinding, Sureness

_POET = "Who wrote the poem?", "Anna van der Berg"
_SEA = "Which desert is the driest?", "Atacama Desert"
_TEAM = "Which team won?", "Bergen Foxes"
_PARTS = "What are the three parts of the insect?", "head, thorax, and abdomen"
_AGE = "How old was the captain when the ship sank?", "35"
_YEAR = "In what year was the tower completed?", "1889"
_HEIGHT = "How tall is the mast in metres?", "104.6"
_SHARE = "What is 15% of 240?", "36"
_EGG = "A dozen eggs cost $3.60. What is the price of one?", "$0.30"
_LEFT = "Tom has 12 nuts and gives 5 to Ann. How many are left?", "7"
_FROST = "Is salt classified as a metal?", "no"
_MOONS = "How many moons does Mars have?", "2"
_PEAR = "Would a pear sink in water?", "no"
_GAMES = "Where were the Games of 2016?", "Rio de Janeiro"
_ROSE = "Does ice float on water?", "yes"


def found(question: str, answer: str, reply: str) -> AnswerFinding:
    return evaluate_answer(
        "short_answer", {"question": question}, {"accepted_answers": [answer]}, reply, parity=False
    )


@pytest.mark.parametrize(
    ("row", "reply"),
    [
        (_POET, "Van der Berg"),
        (_POET, "Berg wrote it in 1912."),
        (_POET, "Dr Anne van der Berg"),
        (_POET, "A. van der Berg, a teacher from Utrecht"),
        (("Who wrote the poem?", "Tim Ashe"), "Sir Timothy John Ashe-Moor"),
        (_SEA, "The Atacama, in northern Chile."),
        (_TEAM, "The Foxes"),
        (("In what century was the wall built?", "14th century"), "In the fourteenth century (1347)."),
        (("In what century was the wall built?", "fourteenth century"), "the 14th"),
        (("Which body sets the rule?", "World Health Organization"), "It is set by the WHO."),
        (("Which body sets the rule?", "WHO"), "The World Health Organization sets it."),
        (("Which country is it?", "United States"), "The U.S., of course."),
        (("Which language is it?", "HyperText Markup Language"), "Hypertext mark-up language"),
        (("Which animal has three hearts?", "octopus"), "Octopuses do."),
        (("How many players are there?", "eleven"), "11"),
        (("Which novel is it?", "Frost"), "*Frost; or, The Long Winter*"),
        (("Factor it.", "(x-2)(x-3)"), "(x − 3)(x − 2)"),
        (("Which blood type is it?", "O negative"), "O−"),
        (("Which city is it?", "Amenhotepia"), "Amenhotepiah, on the river"),
        (("Who directed the film?", "Ken Moriyama"), "Moriyama Ken"),
        (("What was her full name?", "Ada Louise Holm"), "Her full name was Ada L. Holm."),
        (("What is the currency?", "dong"), "The đồng (VND)."),
        (("Which probe came first?", "Luna 1"), "Luna I, in 1959"),
        (("Which organelle is it?", "mitochondrion"), "mitochondria"),
        (("What is the formula?", "H2SO4"), "$\\text{H}_2\\text{SO}_4$"),
        (("Where was it played?", "Harbour Park, Oslo"), "At Harbour Park (built in 1911) in Oslo."),
        (("What is its area?", "84 cm²"), "12 cm × 7 cm = 84 square centimeters."),
        (("Whose house is it?", "his mother's"), "That of the boy's mother."),
    ],
)
def test_short_forms_and_other_forms_of_an_answer(row: tuple[str, str], reply: str) -> None:
    assert found(*row, reply).passed


@pytest.mark.parametrize(
    ("row", "reply"),
    [
        (_POET, "Clara van der Berg"),
        (_POET, "Berg Street was named for the poet Jan Ashe."),
        (("Who won?", "John Quincy Adams"), "Adams"),
        (("What is the capital of Mexico?", "Mexico City"), "The city of Puebla"),
        (_SEA, "The Sahara Desert"),
        (("Which city is it?", "Amenhotepia"), "Amenhotapiah"),
        (("Who directed the film?", "Ken Moriyama"), "Moriyama Jun"),
        (("Which probe came first?", "Luna 1"), "Luna II"),
        (("Where was it played?", "Harbour Park, Oslo"), "In Oslo, but not at Harbour Park."),
        (("What is its area?", "84 cm²"), "84 m²"),
        (_TEAM, "The Oslo Foxes"),
        (("Which body sets the rule?", "World Health Organization"), "those who set it"),
        (("Which gas is it mostly?", "nitrogen"), "It is mostly oxygen, followed by nitrogen."),
        (
            ("Who followed King Ashe?", "Carl Moor"),
            "Ashe was followed by Ben Holm. Carl Moor was Ashe's friend.",
        ),
    ],
)
def test_what_only_looks_like_a_form_of_the_answer(row: tuple[str, str], reply: str) -> None:
    assert not found(*row, reply).passed


@pytest.mark.parametrize(
    ("reply", "passed"),
    [
        ("1. **Thorax** – wings and legs\n2. **Abdomen** – the organs\n3. **Head** – eyes", True),
        ("An insect has these:\n* Head\n* Thorax\n* Abdomen\n\nA spider has two.", True),
        ("The parts of it are the abdomen, head and thorax. Wings grow on the second.", True),
        ("1. **Head**\n2. **Tail**\n3. **Abdomen**", False),
    ],
)
def test_lists_in_lines_and_in_sentences(reply: str, passed: bool) -> None:
    assert found(*_PARTS, reply).passed is passed


@pytest.mark.parametrize(
    ("row", "reply", "passed"),
    [
        (_AGE, "He was born in 1856 and died in 1891, aged 35.", True),
        (_AGE, "He went down on 5 May 1891, at the age of 35, off Brest.", True),
        (_YEAR, "Work on it began in 1887 and was completed on 31 March 1889, in time for the fair.", True),
        (_YEAR, "It was begun on 3 May 1889 and finished 31 months later, on May 4.", True),
        (_YEAR, "It was completed in 1887.", False),
        (_HEIGHT, "104.58 m", True),
        (_HEIGHT, "343 ft, or 104.6 m, with the lamp", True),
        (_HEIGHT, "104 m", False),
        (_LEFT, "Six or 7.", False),
        (_LEFT, "7, or eight", False),
        (_LEFT, "Six or seven? 7.", True),
        (_SHARE, "15% of 240 is 36. You can work this out by multiplying 240 by 0.15.", True),
        (_SHARE, "10% of 240 is 24. So 15% of 240 is 34.", False),
        (_EGG, "30 cents", True),
        (_EGG, "$3.60 / 12 = $0.30, i.e. 30 cents per egg.", True),
        (_EGG, "33 cents", False),
        (_LEFT, "Tom keeps 7, Ann gets 5.", True),
        (_LEFT, "Ann gets 7, Tom keeps 5.", False),
        (
            ("How long did the first flight last?", "12 seconds"),
            "It lasted twelve seconds and covered 37 m.",
            True,
        ),
        (("How many people play?", "11"), "Eleven players: ten in the field and one in the goal.", True),
        (("How long did the war last in years?", "116"), "Despite its name, it lasted 116 years.", True),
        (("What share is water?", "71%"), "About 71%, leaving 29% for land.", True),
    ],
)
def test_the_number_that_a_sentence_says(row: tuple[str, str], reply: str, passed: bool) -> None:
    assert found(*row, reply).passed is passed


def test_a_number_that_only_rounds_to_the_answer_is_a_guess() -> None:
    assert not found(*_HEIGHT, "104.58").certain
    assert found(*_HEIGHT, "104.6").certain


@pytest.mark.parametrize(
    ("row", "reply", "passed"),
    [
        (_FROST, "Salt is no longer classified as a metal.", True),
        (_FROST, "It was once classified as a metal, so it isn't one of the metals any more.", True),
        (_FROST, "Absolutely not.", True),
        (_FROST, "Not at all: it is a compound.", True),
        (_FROST, "Definitely.", False),
        (("Did Ada Holm build the bridge?", "no"), "It was built by the engineer Moor, not by Holm.", True),
        (("Did Ada Holm build the bridge?", "no"), "The bridge was built by Holm, not by Moor.", False),
        (("Is glass an electrical conductor?", "no"), "It is an insulator, so it does not conduct.", True),
        (_ROSE, "Of course. It is lighter.", True),
        (_ROSE, "Certainly not, it sinks.", False),
    ],
)
def test_yes_and_no_in_other_words(row: tuple[str, str], reply: str, passed: bool) -> None:
    assert found(*row, reply).passed is passed


def test_a_numbered_list_before_the_conclusion_is_not_the_answer() -> None:
    reply = "1. Ada Holm\n2. Ben Moor\n3. Carl Ashe\n\nSo the third captain was Carl Ashe."
    assert found("Who was the third captain?", "Carl Ashe", reply).passed
    assert not found("Who was the third captain?", "Ada Holm", reply).passed


def test_a_name_behind_what_describes_it_is_the_answer() -> None:
    reply = "After Moor was shot in April 1865, his deputy, Carl Ashe, took office."
    assert found("Who succeeded Jan Moor as president?", "Carl Ashe", reply).passed
    reply = "Triton. It was found in 1846, and it is the only large moon in the Solar System that turns back."
    assert found("What is the largest moon of Neptune?", "Triton", reply).passed
    reply = "She was born in Gdynia, which is now in Poland but was then part of another state."
    assert found("In which country was Ada Holm born?", "Poland", reply).passed


def test_letters_that_only_match_without_case_break_nothing() -> None:
    assert found("In what century was it?", "seventh century", "In the \u017feventh century.").passed
    assert found("Which fish is it?", "skate", "\u017f\u212aates").passed


@pytest.mark.parametrize(
    ("row", "reply", "passed"),
    [
        (
            ("What do humans mainly exhale?", "carbon dioxide"),
            "We inhale carbon dioxide and exhale oxygen.",
            False,
        ),
        (
            ("What do humans mainly exhale?", "carbon dioxide"),
            "We inhale oxygen and exhale carbon dioxide.",
            True,
        ),
        (("Who won the match?", "Norway"), "Norway lost and Sweden won.", False),
        (("Who won the match?", "Norway"), "Sweden lost and Norway won.", True),
        (("Which country exports it?", "Kenya"), "India exports it, and Kenya imports it.", False),
        (("Which one is the nearest?", "Vega"), "Vega, while Rigel is the farthest.", True),
    ],
)
def test_what_is_said_of_the_opposite_is_no_answer(row: tuple[str, str], reply: str, passed: bool) -> None:
    assert found(*row, reply).passed is passed


@pytest.mark.parametrize(
    ("row", "reply", "passed"),
    [
        (("Who sang it first?", "Anna Holm"), "Berit Lund, for a film. Anna Holm sang it later.", False),
        (("Who sang it first?", "Anna Holm"), "Anna Holm, for a film. Berit Lund sang it later.", True),
        (("Who built the bridge?", "Ove Lund"), "Jan de Moor, for the city. Ove Lund taught him.", False),
        (("Who built the bridge?", "Ove Lund"), "Oslo, 1931. The bridge was built by Ove Lund.", True),
        (("Where was the poet born?", "Turin"), "Milan, a large city. He later moved to Turin.", False),
    ],
)
def test_a_name_at_the_start_is_the_answer(row: tuple[str, str], reply: str, passed: bool) -> None:
    assert found(*row, reply).passed is passed


@pytest.mark.parametrize(
    ("answer", "reply", "passed"),
    [
        ("3x^2 - 5", "The derivative is 3x² − 5x.", False),
        ("3x^2 - 5", "f'(x) = 3x^2-5", True),
        ("2t - 7", "It is 2t - 7t^2.", False),
        ("6y + 1", "2(6y + 1)", False),
        ("4 - 3x", "4 - 3", False),
        ("5 m - 10 m", "5–10 m", True),
    ],
)
def test_a_part_of_a_formula_is_not_the_formula(answer: str, reply: str, passed: bool) -> None:
    result = found("What is it?", answer, reply)
    assert result.passed is passed
    assert result.passed or not result.certain


_BONE = "Which bone is the longest?", "femur"
_WON = "Which country won?", "France"


@pytest.mark.parametrize(
    ("row", "reply", "passed"),
    [
        (("What nationality was the composer?", "Norwegian"), "He was from Norway.", True),
        (("What nationality was the composer?", "Norwegian"), "He came from Denmark.", False),
        (("Which country hosted it?", "Brazil"), "The Brazilians did.", True),
        (_WON, "The French team, 4-2.", True),
        (_WON, "The Croatians beat the French.", False),
        (_WON, "Croatia defeated France 4-2.", False),
        (_WON, "France defeated Croatia 4-2.", True),
        (("Who was defeated in the final?", "Croatia"), "France beat Croatia.", True),
        (("Which language is spoken there?", "Portuguese"), "Portugal", False),
        (_BONE, "The thigh bone.", True),
        (_BONE, "The shin bone", False),
        (("What is the medical name of the thigh bone?", "femur"), "thigh bone", False),
        (("Which metal is liquid?", "mercury"), "Hg", True),
        (("Which metal is liquid?", "mercury"), "Br", False),
        (("What is the chemical symbol of iron?", "Fe"), "iron", False),
        (("Which element has 26 protons?", "Fe"), "Iron", True),
        (("Which gas do fish give off?", "carbon dioxide"), "CO₂", True),
        (("Which gas do fish give off?", "carbon dioxide"), "CO", False),
        (("Which vitamin is it?", "vitamin K"), "K", True),
        (("Which vitamin is it?", "vitamin K"), "D", False),
    ],
)
def test_other_words_that_any_reader_knows(row: tuple[str, str], reply: str, passed: bool) -> None:
    assert found(*row, reply).passed is passed


_MAKER = "Which company made it?"


@pytest.mark.parametrize(
    ("row", "reply", "passed"),
    [
        (("Who wrote the novel?", "Mario Vargas Llosa"), "It was the writer Vargas Llosa.", True),
        (("Who wrote the novel?", "Mario Vargas Llosa"), "It was Jorge Llosa.", False),
        (("Who spoke?", "Karl Emil Moor, Jr."), "KEM", True),
        (("Who spoke?", "Karl Emil Moor, Jr."), "Dr. Moor did.", True),
        (("Who spoke?", "Karl Emil Moor, Jr."), "Karl Emil Moor Sr.", False),
        (("Who discovered the moons?", "Galileo Galilei"), "Galileo, in 1610.", True),
        ((_MAKER, "Nokia Networks"), "Nokia made it.", True),
        ((_MAKER, "General Electric"), "General Motors", False),
        ((_MAKER, "Apple Inc."), "Apple", True),
        ((_MAKER, "Lindt"), "Lindt, Ltd.", True),
        ((_MAKER, "Ford Motor Company"), "Ford Motor Co.", True),
        (("Which body is it?", "World Trade Organization"), "The World Trade Organisation", True),
        (("What did Newton draw?", "color wheel"), "the colour wheel", True),
        (("In which decade was it built?", "1920s"), "The twenties.", True),
        (("In which decade was it built?", "1920s"), "In the '20s", True),
        (("In which decade was it built?", "1920s"), "The thirties.", False),
        (("In which decade was it built?", "1920s"), "In the 1820s", False),
    ],
)
def test_names_of_people_companies_and_decades(row: tuple[str, str], reply: str, passed: bool) -> None:
    assert found(*row, reply).passed is passed


_SHEEP = "How many sheep does she have?", "7"
_CUP = "How many times did they win the cup?", "2"
_MOON = "How far is the moon in km?", "384,400 km"
_PAGES = "How many pages does he read in two weeks?", "140"
_MAY = "How many days are there from May 1 to June 3?", "33"
_AGENCY = "Which agency builds the rocket?", "European Space Agency"
_INKS = "What are the colours of printing ink?", "cyan, magenta and yellow"


@pytest.mark.parametrize(
    ("row", "reply", "passed"),
    [
        (_SHEEP, "She has 7 sheep and 20 goats.", True),
        (_SHEEP, "She has 20 sheep and 7 goats.", False),
        (("How many moons does Venus have?", "0"), "Venus has no moons.", True),
        (("How many moons does Venus have?", "0"), "It has 2.", False),
        (("How many moons does Mars have?", "2"), "None.", False),
        (_CUP, "They won it twice, at home.", True),
        (_CUP, "They won it once.", False),
        (_MOON, "About 384,000 kilometres.", True),
        (_MOON, "About 400,000 kilometres.", False),
        (_MOON, "384,000 kilometres.", False),
        (("In what year was it?", "1912"), "About 1910", False),
        (("What is 123 times 45?", "5535"), "About 5500", False),
        (("How long is it?", "13.5 miles"), "13 miles 880 yards", True),
        (("How long is it?", "13.5 miles"), "13 miles 385 yards", False),
        (("What is the divisor?", "1"), "The divisor is one.", True),
        (("What is the divisor?", "3"), "The divisor is one.", False),
        (_PAGES, "Over 2 weeks: 14 days × 10 = 140 pages.", True),
        (_PAGES, "Over 14 days: 10 × 15 = 150 pages.", False),
        (_MAY, "May 1 to May 31 is 30 days, plus 3: 33 days.", True),
        (_MAY, "From May 1 to June 3: 34 days.", False),
        (_AGENCY, "Europe's builders of rockets, the European Space Agency.", True),
        (_AGENCY, "The office for space in Paris, the Russian Agency.", False),
        (_INKS, "CMY: cyan, magenta, yellow", True),
        (_INKS, "RGB: red, green, blue", False),
    ],
)
def test_numbers_and_lists_in_sentences(row: tuple[str, str], reply: str, passed: bool) -> None:
    assert found(*row, reply).passed is passed


_WATER = "Does water conduct sound?", "yes"
_SANG = "Who sang the title song?", "Anna Holm"


@pytest.mark.parametrize(
    ("row", "reply", "passed"),
    [
        (_WATER, "Technically, yes - better than air.", True),
        (_WATER, "Correct - sound travels in it.", True),
        (_WATER, "Strictly speaking, no.", False),
        (("do whales have lungs", "yes"), "All of them do.", True),
        (("do whales have lungs", "yes"), "None of them do.", False),
        (("is the mine still open", "no"), "Not since 1998.", True),
        (("was the poet born in spain", "no"), "The poet was born in Peru.", True),
        (("was the poet born in spain", "yes"), "The poet was born in Peru.", False),
        (("Who patented the pump?", "Otto Karl Lund"), "Lund did, in 1876.", True),
        (("Who patented the pump?", "Otto Karl Lund"), "Eva Berg patented it; Lund improved it.", False),
        (_SANG, "It was sung by Berit Lund. Anna Holm sang another one.", False),
        (_SANG, "It was sung by Anna Holm. Berit Lund sang another one.", True),
        (_SANG, "Berit Lund, together with Anna Holm.", False),
        (_SANG, "Anna Holm, together with her band.", True),
        (("Which metal has 79 protons?", "gold"), "Platinum, right before gold.", False),
        (_BONE, "The femur, or thighbone.", True),
        (_BONE, "The femur or the tibia.", False),
        (("How long does it take?", "about 8 minutes"), "Roughly eight minutes.", True),
        (("How long does it take?", "about 8 minutes"), "Roughly eight hours.", False),
        (("Which state is it in?", "Texas"), "TX", True),
        (("Which state is it in?", "Texas"), "TN", False),
        (("Where does it rank?", "second"), "No. 2", True),
        (("In which century was it?", "17th century"), "In the mid-1600s.", True),
        (("In which century was it?", "17th century"), "In the 1700s.", False),
        (("How many are left?", "4"), "He eats 2, so 6 remain; after one more meal he has 4.", True),
    ],
)
def test_statements_as_models_put_them(row: tuple[str, str], reply: str, passed: bool) -> None:
    assert found(*row, reply).passed is passed


@pytest.mark.parametrize(
    ("row", "reply", "sureness"),
    [
        (_MOONS, "Phobos and Deimos, and no other ones.", Sureness.UNSURE),
        (_MOONS, "It has seven of them.", Sureness.GUESSED),
        (_MOONS, "7", Sureness.CERTAIN),
        (_PEAR, "A pear dropped in water would float.", Sureness.UNSURE),
        (_PEAR, "Yes, a pear sinks at once.", Sureness.GUESSED),
        (_TEAM, "Those who once played the Bergen side.", Sureness.UNSURE),
        (_GAMES, "They were in London.", Sureness.GUESSED),
        (("Who won?", "Derby"), "Derby or Leeds.", Sureness.UNSURE),
        (_HEIGHT, "104.58", Sureness.UNSURE),
    ],
)
def test_a_failure_is_unsure_where_the_reply_may_say_the_answer_all_the_same(
    row: tuple[str, str], reply: str, sureness: Sureness
) -> None:
    assert found(*row, reply).sureness is sureness


_PLANET = "Which spacecraft was first?", "Vostok 1"
_LARGER = "Which is larger, 9.11 or 9.9?", "9.9"
_TEA = "By how many thousand tonnes did exports fall?", "70"
_PRICE = "How much did they pay for the land?", "15 million dollars"
_NEIGHBOURS = "Which countries border it?", "Switzerland, Austria"
_BALTIC = "Which countries are the Baltic states?", "Estonia, Latvia, Lithuania"


@pytest.mark.parametrize(
    ("row", "reply", "passed"),
    [
        (_PLANET, "Vostok-1, in April 1961.", True),
        (_PLANET, "Vostok-2, in April 1961.", False),
        (("Which mountain?", "Mount Elbrus"), "Mt. Elbrus, Russia – 5,642 m.", True),
        (("Which scale?", "Mohs scale"), "The Moh's scale", True),
        (("Who directed it?", "Andrei Tarkovsky"), "Andrey Tarkovskiy did.", True),
        (("Who directed it?", "Andrei Tarkovsky"), "Arseny Tarkovsky did.", False),
        (("What is it short for?", "Test of Words in English"), "The Test of the Words in English.", True),
        (_LARGER, "9.9 is larger than 9.11.", True),
        (_LARGER, "9.11 is larger than 9.9, because 11 is more than 9.", False),
        (_LARGER, "9.11 is less than 9.9", True),
        (_LARGER, "9.9 > 9.11", True),
        (_TEA, "They fell by 70,000 tonnes.", True),
        (_TEA, "They fell by 700,000 tonnes.", False),
        (_PRICE, "$15 million", True),
        (_PRICE, "About $15M for roughly 828,000 square miles.", True),
        (_PRICE, "15,000,000 dollars, which works out to about two cents an acre.", True),
        (_NEIGHBOURS, "Switzerland, Austria and Germany", False),
        (_BALTIC, "They are:\n1. Lithuania\n2. Latvia\n3. Estonia", True),
        (_BALTIC, "They are:\n1. Lithuania\n2. Latvia\n3. Poland", False),
        (("What is 6:30 PM in 24-hour time?", "18:30"), "1830 hours", True),
        (("In which country was he born?", "Sweden"), "He was born in Visby, Sweden in 1833.", True),
        (("Which x solve it?", "3, -4"), "Thus\n\n- $x = -4$\n- $x = 3$", True),
        (("Which line is it?", "y = 3x + 1"), "y - 1 = 3(x - 0), which simplifies to y = 3x + 1.", True),
        (("How many judges are there?", "9"), "Since the Act of 1869 it has been fixed at nine.", True),
    ],
)
def test_names_numbers_and_lists_in_yet_other_forms_are_read(
    row: tuple[str, str], reply: str, passed: bool
) -> None:
    assert found(*row, reply).passed is passed


@pytest.mark.parametrize(
    ("row", "reply", "passed", "sureness"),
    [
        (("Which release of the tool was it?", "3.10"), "3.1", False, Sureness.UNSURE),
        (("Which release of the tool was it?", "3.10"), "Release 3.10", True, Sureness.GUESSED),
        (("What is the code?", "01001"), "1001", False, Sureness.UNSURE),
        (("What is the code?", "01001"), "01001", True, Sureness.CERTAIN),
        (("Which symbol has cobalt?", "Co"), "CO", True, Sureness.UNSURE),
        (("Which town?", "Bergen"), "BERGEN", True, Sureness.CERTAIN),
        (("What is its power?", "5 mW"), "It is 5 MW.", False, Sureness.UNSURE),
        (("When was it?", "4 March 2021"), "03/04/2021", True, Sureness.UNSURE),
        (("When was it?", "14 March 2021"), "14/03/2021", True, Sureness.CERTAIN),
        (("What does it cost?", "2.10"), "2.1", True, Sureness.CERTAIN),
    ],
)
def test_labels_symbols_and_dates_are_no_more_sure_than_their_form(
    row: tuple[str, str], reply: str, passed: bool, sureness: Sureness
) -> None:
    one = found(*row, reply)
    assert one.passed is passed
    assert one.sureness in (sureness, Sureness.CERTAIN if sureness is Sureness.GUESSED else sureness)


@pytest.mark.parametrize(
    ("answer", "reply", "statement"),
    [
        ("2000-07-01", "1 July 2000", "1 July 2000"),
        ("2000-07-01", "It was on **2 July 2000**.", "2 July 2000"),
        ("2000-07-01", "Let me think.\n\nAnswer: July 2nd, 2000", "July 2nd, 2000"),
        ("90 minutes", "It takes an hour and a half.", "It takes an hour and a half."),
        ("Martin Luther King, Jr.", "Malcolm X, Jr. it was", "Malcolm X, Jr. it was"),
    ],
)
def test_the_statement_is_in_the_words_of_the_reply(answer: str, reply: str, statement: str) -> None:
    assert found("What is it?", answer, reply).statement == statement


_MOST_MOONS = "Which planet has the most moons?", "Jupiter"
_TIN = "Which element is it?", "Sn"


@pytest.mark.parametrize(
    ("row", "reply", "passed"),
    [
        (_TIN, "Could be Sn, Cu or Pb", False),
        (_TIN, "I think Sn, Cu or Pb", False),
        (_TIN, "Could be Sn", True),
        (_TIN, "Could be Sn, tin.", True),
        (_MOST_MOONS, "Could be Jupiter, Saturn or Neptune", False),
        (_MOST_MOONS, "I am not sure. It may well be Jupiter, Saturn, or Neptune.", False),
        (_MOST_MOONS, "Could be Jupiter, Saturn, Neptune.", False),
        (_MOST_MOONS, "It is one of Jupiter, Saturn and Neptune", False),
        (_MOST_MOONS, "The planet with the most moons is Jupiter, Saturn or Neptune", False),
        (_MOST_MOONS, "It could be Jupiter, the largest planet.", True),
        (_MOST_MOONS, "It could be Jupiter, named after a god, with 95 moons.", True),
        (_MOST_MOONS, "It is one of the giants: Jupiter.", True),
        (("Which city is it?", "Paris"), "It could be Paris, France.", True),
        (("Who painted it?", "Raphael"), "It was Raphael, not Leonardo, Titian or Michelangelo.", True),
        (("Who painted it?", "Raphael"), "It was painted by Raphael, pupil or friend of Perugino.", True),
        (("What is the formula?", "NaCl"), "The formula is NaCl, table salt or halite.", True),
    ],
)
def test_a_guess_that_lists_several_values_names_none(row: tuple[str, str], reply: str, passed: bool) -> None:
    assert found(*row, reply).passed is passed
