"""short_answer: other values that a reply names beside the answer, and the answer in other forms."""

from __future__ import annotations

import pytest
from text_rows import evaluate_answer

_LONGEST = ("Which bone is the longest?", ["femur"])
_TOWN = ("In which town is the mill?", ["Dale, Ohio"])
_BORN = ("Where was Eva Berg born?", ["Varde"])
_STATE = ("In which state is the gorge?", ["Virginia"])
_COUNTRY = ("In which country are the towers?", ["Malaysia"])
_WON = ("Which team won the cup?", ["Leeds"])
_TALLEST = ("What is the tallest tower?", ["Moor Tower"])
_RAYS = ("Who found the rays?", ["Wilhelm Röntgen"])
_TALES = ("Who wrote the tales?", ["Hans Christian Dahl"])
_SINGER = ("Who sang it?", ["Freddie Lund"])
_SLOPE = ("What is the derivative?", ["3x^2 - 4"])
_ORBITS = ("Does the moon orbit the planet?", ["Yes"])
_SEEN = ("Can the star be seen from Norway?", ["No"])
_SEATS = ("How many seats are there?", ["46"])
_AGE = ("Ann is twice as old as Bob. Together they are 36. How old is Bob?", ["12"])
_LEFT = ("Tom has 15 nuts and gives 6 to Ann. How many nuts does Tom have left?", ["9"])
_STATES = ("How many states are there?", ["50"])
_DIED = ("How old was the painter when he died?", ["35"])
_NATIVE = ("Is the marrow native to Italy?", ["no"])
_HOTTER = ("Is Moor hotter than Dale?", ["yes"])
_NOVEL = ("Who wrote the novel?", ["Eva Berg"])


@pytest.mark.parametrize(
    ("row", "reply", "passed"),
    [
        (_LONGEST, "The femur is the longest; the tibia comes second.", True),
        (_LONGEST, "The tibia; the femur comes second.", False),
        (_LONGEST, "The tibia is first and the femur is a close second.", False),
        (_LONGEST, "Tibia, longer than the femur.", False),
        (_LONGEST, "Femur, longer than the tibia.", True),
        (("Which bone is second?", ["tibia"]), "The femur is longest, the tibia comes second.", True),
        (_TALLEST, "Dale Spire, which overtook the Moor Tower.", False),
        (_TALLEST, "The Moor Tower, which overtook the Dale Spire.", True),
        (_TALLEST, "The Dale Spire, sister tower of the old one.", False),
        (_TOWN, "In Dale.", True),
        (_TOWN, "Dale, Ohio", True),
        (_TOWN, "Dale, Texas", False),
        (_TOWN, "It is in Dale, in Texas.", False),
        (_TOWN, "Moor, Ohio", False),
        (_BORN, "Oslo, Norway (she died in Varde).", False),
        (_BORN, "Varde, Denmark (she died in Oslo).", True),
        (_STATE, "West Virginia", False),
        (_STATE, "In western Virginia.", True),
        (("What was it called?", ["Rhodesia"]), "Northern Rhodesia", False),
        (_COUNTRY, "They're in Malaysia's capital, Kuala Lumpur.", True),
        (_COUNTRY, "They're in Malaysia's neighbour, Singapore.", False),
        (_COUNTRY, "Singapore, just south of Malaysia.", False),
        (_WON, "Leeds - a club from Yorkshire that beat Derby.", True),
        (_WON, "Leeds - a common guess, but it was Derby.", False),
        (_WON, "Derby - the rivals of Leeds.", False),
        (("What is the formula?", ["H2O"]), "H₂O — two hydrogen atoms and one oxygen atom.", True),
        (("What is the formula?", ["H2O"]), "H₂O₂ — two hydrogen and two oxygen atoms.", False),
        (_RAYS, "Wilhelm Roentgen", True),
        (_RAYS, "Roentgen, in 1895", True),
        (_RAYS, "Wilhelm Rontgren", False),
        (_TALES, "H.C. Dahl", True),
        (_TALES, "J.C. Dahl", False),
        (_SINGER, "Freddy Lund", True),
        (_SINGER, "Freda Lund", False),
        (("Who ruled?", ["Jawaharlal Nehru"]), "Pandit Nehru, until 1964.", True),
        (("Which town hosts the race?", ["Siena"]), "Sienna, in Tuscany.", True),
        (("Which town hosts the race?", ["Siena"]), "Vienna", False),
        (_SLOPE, "$f'(x) = -4 + 3x^{2}$", True),
        (_SLOPE, "4 - 3x^2", False),
        (_SLOPE, "3x^2 + 4", False),
        (("Which line is it?", ["y = 2x + 1"]), "The line is y=1+2x.", True),
        (("Which line is it?", ["y = 2x + 1"]), "The line is y=2x-1.", False),
        (_ORBITS, "The moon orbits the planet, not the other way around.", True),
        (_ORBITS, "The planet orbits the moon.", False),
        (_ORBITS, "The planet is orbited by the moon.", True),
        (_SEEN, "The star is too far south to be seen from Norway.", True),
        (_SEEN, "It's not too far south to be seen from Norway.", False),
        (_SEATS, "23 pairs, or 46 in total.", True),
        (_SEATS, "46 are red, so there are 60 in total.", False),
        (_AGE, "3x = 36, so x = 12. Bob is 12 years old and Ann is 24.", True),
        (_AGE, "3x = 36, so x = 12. Ann is 12 years old and Bob is 24.", False),
        (_AGE, "So Bob is 12, while Ann is 24.", True),
        (_LEFT, "15 - 6 = 9. So Tom has 9 nuts left, while Ann has 6.", True),
        (_LEFT, "15 - 6 = 9. So Ann has 9 nuts, while Tom has 6 left.", False),
        (_STATES, "There are 50 states. The capital and 5 territories are none.", True),
        (_STATES, "Six. Once there were 50.", False),
        (_STATES, "Fifty. Five territories are none.", True),
        (_STATES, "There are 45 states and 5 that joined, so 50.", True),
        (_DIED, "He was 35. He had been born in 1756 and died in 1791.", True),
        (_DIED, "He was 36. He had been born in 1755.", False),
        (_NATIVE, "Marrows are native to South America.", True),
        (_NATIVE, "Marrows are native to Italy.", False),
        (_HOTTER, "Dale is hotter.", False),
        (_HOTTER, "Moor is hotter, even though Dale lies lower.", True),
        (("Do all beetles fly?", ["no"]), "Some beetles, such as the marsh beetle, can't fly.", True),
        (("Do all beetles fly?", ["no"]), "All beetles fly.", False),
        (("What is the unit of force?", ["newton"]), "N", True),
        (("What is the unit of force?", ["newton"]), "J", False),
        (("Which colours are mixed?", ["blue and yellow"]), "Yellow + blue", True),
        (("Which colours are mixed?", ["blue and yellow"]), "Yellow + red", False),
        (("What is the area of a circle?", ["πr^2"]), "It is $A = \\pi r^2$.", True),
        (("What is the area of a circle?", ["πr^2"]), "It is $A = 2\\pi r$.", False),
        (_NOVEL, "It was dedicated to Otto Lund, but the author was Eva Berg.", True),
        (_NOVEL, "It was dedicated to Eva Berg, but the author was Otto Lund.", False),
        (("Who were the first two guests?", ["Eva Berg and Otto Lund"]), "Otto Lund and Eva Berg.", True),
        (("When was the fight?", ["1066"]), "It took place in 1066, some 6 miles from Hastings.", True),
    ],
)
def test_what_is_named_beside_an_answer(row: tuple[str, list[str]], reply: str, passed: bool) -> None:
    question, accepted = row
    found = evaluate_answer(
        "short_answer", {"question": question}, {"accepted_answers": accepted}, reply, parity=False
    )
    assert found.passed is passed
