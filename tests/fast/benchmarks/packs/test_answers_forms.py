"""Short answers in one of several ways of writing: ranges, ratios, sets of numbers, times, shares, people, years."""

from __future__ import annotations

import pytest
from text_rows import evaluate_answer

_SPEED = "What speeds are usual on this road, in km/h?"
_ODD = "Is 9 an odd number?"
_MIX = (
    "A paint takes 500 ml of blue and 300 ml of white. What is the ratio of blue to white in simplest form?"
)
_OLDER = "Who was born first, Anna Berg or Ida Holm?"
_LARGER = "Which lake is larger, Ladoga or Onega?"
_NEIGHBOURS = "Which two continents does the city touch?"
_PAINTERS = (
    "Three painters need 6 hours for a house. At the same rate, how many hours would two painters need?"
)
_APPLES = "A shop sells 3 kg of apples for €7.20. At this price, how much do 5 kg cost?"
_BORN = "Who was the first woman on the throne?"


def passes(question: str, accepted: object, reply: str) -> bool:
    finding = evaluate_answer(
        "short_answer", {"question": question}, {"accepted_answers": [accepted]}, reply, parity=False
    )
    return finding.passed


@pytest.mark.parametrize(
    ("question", "accepted", "reply"),
    [
        (_SPEED, "60-80 km/h", "60 to 80"),
        (_SPEED, "60-80 km/h", "between 60 and 80 km/h"),
        (_SPEED, "60–80", "From about 60 km/h (rain) to about 80 km/h (dry)."),
        ("How wide is the gap?", "20-30 mm", "2-3 cm, i.e. 20 mm - 30 mm"),
        ("What is the ratio of cats to dogs?", "3:4", "6:8 = 3:4"),
        ("What is the ratio of cats to dogs?", "3:4", "3 to 4"),
        ("Solve x^2 = 9.", "±3", "x² = 9 → x = 3 or x = −3"),
        ("Solve x^2 = 9.", "x = 3 and x = -3", "\\boxed{x = \\pm 3}"),
        ("Solve x^2 = 9.", "3, -3", "The solutions are -3 and 3."),
        ("When does the film begin?", "18:40", "6:40 pm"),
        ("When does the film begin?", "18:40", "18h40"),
        ("When does the film begin?", "6:40 pm", "It begins at 18.40."),
        ("When does the film begin?", "6:30 pm", "half past six in the evening"),
        ("When does the film begin?", "6:45 pm", "at a quarter to seven in the evening"),
        ("What fraction of a week is one day?", "1/7", "A week has 7 days, so 1 day is \\dfrac17 of it."),
        ("What fraction of a metre is 20 cm?", "1/5", "20 cm is a fifth of a metre."),
        ("How many seconds has a minute?", "60 seconds", "60"),
        ("In what year was the bridge built?", 1937, "In '37"),
        ("In what year did the war begin?", "1618", "1618–1648"),
        ("In what year did the war end?", "1648", "1618–1648"),
        (_BORN, "Anna Berg", "Madame Berg"),
        (_ODD, "yes", "True, it is not divisible by 2."),
        ("What is the formula of water?", "H2O", "\\boxed{\\ce{H2O}}"),
        ("What is the unit of resistance?", "Ω", "$\\Omega$"),
        ("What is the unit of resistance?", "ohm", "Ohms"),
        ("How far is it in kilometres?", 4.25, "4 km 250 m"),
        ("Write it in scientific notation.", "2.5e-3", "2.5 * 10^(-3)"),
        ("Write it in scientific notation.", 2.5e-3, "2.5 * 10**-3"),
        ("How large is the area?", "4π", "π × 4"),
        ("When and where was the fair?", "1889, Paris", "Paris, France (May 1889)"),
        ("When and where was the fair?", "1889 in Paris", "Year: 1889\nCity: Paris"),
        ("Which city is the capital of Peru?", "Lima", "Hmm. Cusco? No, it is Lima."),
        (_ODD, "no", "Yes at first sight. Wait: 9 = 3 × 3. So no, it is even."),
        ("What was the final score?", "4–1", "The home side won 4:1 after extra time."),
        ("How long does the ride take?", "1 hour 25 minutes", "Total: 1h25"),
        ("From when to when did they rule?", "1714-1720", "1714–20"),
        ("What is 45 in binary?", "101101", "`0b101101`"),
        ("What is 45 in binary?", "101101", "$45_{10} = 101101_2$"),
        ("What is 45 in binary?", "101101", "0010 1101"),
        ("What is 254 in hexadecimal?", "FE", "FE₁₆"),
        (_MIX, "5:3", "five parts blue to three parts white"),
        (_MIX, "5:3", "3 parts of white for every 5 parts of blue"),
        ("Which law joins the two?", "Boyle's law", "The law of Boyle."),
        ("Which instrument did she play?", "cello", "She was a famous cellist."),
        (_OLDER, "Anna Berg", "Berg, by four years."),
        (_LARGER, "Ladoga", "Onega has 9,700 km², Ladoga 17,700 km². So Onega is smaller."),
        (_NEIGHBOURS, "Asia and Europe", "A city in Turkey; Europe lies to its west and Asia to its east."),
        (_NEIGHBOURS, "Asia and Europe", "It is a port at the Bosporus, surrounded by Asia and Europe."),
        (
            "What was the second Harry Potter book?",
            "Harry Potter and the Chamber of Secrets",
            "Chamber of Secrets",
        ),
        ("On which continent is Egypt?", "Africa", "The African continent"),
        ("What is the angle?", "75°", "$75^\\circ$"),
        (_PAINTERS, "9", "Total work = 3 × 6 = 18 painter-hours. With two painters: 18 / 2 = 9 hours."),
        (_APPLES, "€12", "7.20 / 3 = 2.40 per kg; 5 × 2.40 = 12.00 €"),
        (
            "What is his record time for the 100 metres?",
            "9.58 seconds",
            "It is 9.58 sec (his 200 m record is 19.19).",
        ),
        ("Convert 5 miles to kilometres.", "8.05 km", "Roughly 8 km (8.05 to be more precise)."),
        ("What current flows?", "0.5 A", "500 mA"),
        ("How often does it beat?", "2.4 GHz", "2400 MHz"),
        ("What is the speed of light?", "299,792,458 m/s", "c = 2.998 × 10^8 m/s"),
        (
            "What is the pH of the solution?",
            "4",
            "The pH is 4, so the solution is acidic. The pOH would be 10.",
        ),
        ("What is the prime factorization of 360?", "2^3 * 3^2 * 5", "$360 = 5 \\cdot 3^2 \\cdot 2^3$"),
        ("What is the prime factorization of 360?", "2^3 * 3^2 * 5", "360 = 2 × 2 × 2 × 3 × 3 × 5"),
        ("What is the sum of the roots?", "\\frac{7}{2}", "3.5"),
        ("Who was president in 1837?", "Martin Van Buren", "Van Buren"),
        (
            "Who shared the prize?",
            "Anna Berg and I. K. de Vries",
            "Berg and Ida Karen de Vries, for their work.",
        ),
        ("Who is the victim?", "Dr Black", "Doctor Black"),
        ("Who won the final?", "Denver Broncos", "Denver"),
        ("Which blood type is it?", "O negative", "O neg"),
        ("Which instrument does he play?", "cello", "the violoncello"),
        ("Which has more protons, silver or gold?", "gold", "Au (79 protons, against 47 for Ag)"),
        ("Which is the sign?", "§", "§"),
    ],
)
def test_an_answer_is_read_in_every_way_of_writing(question: str, accepted: object, reply: str) -> None:
    assert passes(question, accepted, reply)


@pytest.mark.parametrize(
    ("question", "accepted", "reply"),
    [
        (_SPEED, "60-80 km/h", "60 to 90"),
        (_SPEED, "60-80 km/h", "60 to 80 km/h in rain, 80 to 100 km/h else"),
        (_SPEED, "60-80 km/h", "60 to 80 m/s"),
        ("What is the ratio of cats to dogs?", "3:4", "4:3"),
        ("What is the ratio in lowest terms?", "3:4", "6:8"),
        ("Solve x^2 = 9.", "±3", "x = 3"),
        (_MIX, "5:3", "three parts blue to five parts white"),
        ("What is the sum of the roots?", "\\frac{7}{2}", "$-\\frac{b}{a} = \\boxed{-\\frac{7}{2}}$"),
        ("What current flows?", "0.5 A", "500 kA"),
        ("What power does it take?", "5 MW", "5 kW"),
        ("What is the prime factorization of 360?", "2^3 * 3^2 * 5", "2^2 × 3^3 × 5"),
        ("What is the speed of light?", "299,792,458 m/s", "2.898 × 10^8 m/s"),
        ("Who won the final?", "New York Giants", "New York"),
        ("Which has more protons, silver or gold?", "gold", "Silver has 79 and gold 47, so silver has more."),
        (
            "Which birds are they?",
            "crows",
            "Ravens – a group of ravens is called that, a group of crows is not.",
        ),
        (
            "Who flew too high?",
            "Icarus",
            "Daedalus. He had made wings for his son Icarus, but he ignored it and flew too high.",
        ),
        (_MIX, "5:3", "5 parts white to 3 parts blue"),
        (_OLDER, "Anna Berg", "Holm, by four years."),
        (_LARGER, "Ladoga", "Onega has 9,700 km², Ladoga 1,700 km². So Onega is larger."),
        (_NEIGHBOURS, "Asia and Europe", "It is a port, surrounded by Asia, Africa and Europe."),
        ("What was the final score?", "4–1", "The home side won 4:2 after extra time."),
        ("What is 45 in binary?", "101101", "0x2D"),
        ("Solve x^2 = 9.", "3, -3", "3, -3 and 9"),
        ("When does the film begin?", "18:40", "6:40 am"),
        ("When does the film begin?", "6:45 pm", "a quarter past seven in the evening"),
        ("How many seconds has a minute?", "60 seconds", "60 hours"),
        ("In what year did the war begin?", "1648", "1618–1648"),
        (_BORN, "Anna Berg", "Berg"),
        (_BORN, "Anna Berg", "Ida Holm, daughter of Anna Berg"),
        (_BORN, "Anna Berg", "Ida Holm. (Anna Berg came after her.)"),
        (_ODD, "no", "So yes."),
        ("How much is it?", "45 euros", "$45"),
        ("When and where was the fair?", "1889, Paris", "1889 in Lyon"),
        ("When and where was the fair?", "1889, Paris", "Paris, in 1900"),
        ("Which city is the capital of Peru?", "Lima", "Cusco. The parliament has met in Lima."),
        ("Which city is the capital of Peru?", "Lima", "Cusco, about 570 km from Lima"),
        ("Is gold heavier than lead?", "yes", "Lead is heavier than gold."),
    ],
)
def test_another_value_in_the_same_way_of_writing_fails(question: str, accepted: object, reply: str) -> None:
    assert not passes(question, accepted, reply)


def test_a_number_in_a_unit_that_nobody_has_named_is_no_sure_failure() -> None:
    found = [
        evaluate_answer(
            "short_answer",
            {"question": "At what temperature in degrees Celsius does it melt?"},
            {"accepted_answers": [78.4], "tolerance": 0.5},
            reply,
            parity=False,
        )
        for reply in ("173 °F", "50 °C")
    ]
    assert [(finding.passed, finding.certain) for finding in found] == [(False, False), (False, True)]


def test_a_family_name_alone_is_no_licence_for_another_of_the_family() -> None:
    question, row = {"question": "Who composed it?"}, {"accepted_answers": ["George Gershwin", "Gershwin"]}
    verdicts = {
        reply: evaluate_answer("short_answer", question, row, reply, parity=False).passed
        for reply in ("Gershwin", "It was by G. Gershwin.", "Ira Gershwin", "Ira Gershwin, not his brother")
    }
    assert verdicts == {
        "Gershwin": True,
        "It was by G. Gershwin.": True,
        "Ira Gershwin": False,
        "Ira Gershwin, not his brother": False,
    }
