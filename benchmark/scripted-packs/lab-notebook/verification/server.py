"""Works out conversions, orders and medians, and compares answers with them exactly. Standard library only."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from dataclasses import dataclass
from fractions import Fraction
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from statistics import median
from typing import Any

# Each unit as a multiple of the first one of its kind.
UNITS = {
    "mm": ("length", Fraction(1)),
    "cm": ("length", Fraction(10)),
    "m": ("length", Fraction(1_000)),
    "km": ("length", Fraction(1_000_000)),
    "mg": ("mass", Fraction(1)),
    "g": ("mass", Fraction(1_000)),
    "kg": ("mass", Fraction(1_000_000)),
    "ml": ("volume", Fraction(1)),
    "l": ("volume", Fraction(1_000)),
    "m/s": ("speed", Fraction(1)),
    "km/h": ("speed", Fraction(5, 18)),
}
QUANTITY = re.compile(r"(-?\d{1,12}(?:\.\d{1,12})?)\s*([a-z/]*)")
MOST_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number and its unit, which is empty where none was written."""

    number: Fraction
    unit: str

    def amount(self) -> tuple[str, Fraction]:
        """Return its kind and size, by which quantities of one kind compare. KeyError: no such unit."""
        kind, factor = UNITS[self.unit]
        return kind, self.number * factor


def quantity_in(text: str) -> Quantity:
    """Read `0.35 l`. Raises ValueError where that is not what stands there."""
    found = QUANTITY.fullmatch(text.strip().lower())
    if found is None or (found[2] and found[2] not in UNITS):
        raise ValueError(f"{text!r} is not a number with a unit")
    return Quantity(Fraction(found[1]), found[2])


def written(size: Fraction, unit: str) -> str:
    number = size / UNITS[unit][1]
    return f"{number.numerator if number.denominator == 1 else float(number)} {unit}"


def verdict(word: str, expected: str, reason: str) -> dict[str, str]:
    return {"verdict": word, "expected": expected, "reason": reason}


def compare_size(size: Fraction, unit: str, answer: str) -> dict[str, str]:
    """Compare an answer with a size: right, or close when only its unit is missing."""
    expected = written(size, unit)
    try:
        given = quantity_in(answer)
    except ValueError as error:
        return verdict("wrong", expected, str(error))
    if given.unit == "" and given.number * UNITS[unit][1] == size:
        return verdict("close", expected, "the right number, without its unit")
    if given.unit != unit:
        return verdict("wrong", expected, f"not in {unit}")
    if given.number * UNITS[unit][1] != size:
        return verdict("wrong", expected, "another number")
    return verdict("right", expected, "equal")


def compare_order(values: list[str], answer: str) -> dict[str, str]:
    """Compare an answer with values in order: right, or close when it begins with the largest."""
    order = sorted(values, key=lambda value: quantity_in(value).amount())
    expected = "; ".join(order)
    given = [" ".join(value.split()) for value in re.split(r"[;,]", answer)]
    if given == order:
        return verdict("right", expected, "equal")
    if given == order[::-1]:
        return verdict("close", expected, "the right order, the other way round")
    return verdict("wrong", expected, "another order")


def checked(task: dict[str, Any], answer: str) -> dict[str, str]:
    """Judge one answer. Raises KeyError or ValueError for a task that makes no sense."""
    match task["kind"]:
        case "convert":
            return compare_size(quantity_in(task["value"]).amount()[1], task["unit"], answer)
        case "median":
            sizes = [quantity_in(value).amount()[1] for value in task["values"]]
            return compare_size(median(sizes), task["unit"], answer)
        case "order":
            return compare_order(task["values"], answer)
        case kind:
            raise ValueError(f"no task of kind {kind!r}")


class Handler(BaseHTTPRequestHandler):
    """GET /health, and POST /check with a task and an answer."""

    def do_GET(self) -> None:
        self.reply(*((200, {"ok": True}) if self.path == "/health" else (404, {"error": "no such path"})))

    def do_POST(self) -> None:
        if self.path != "/check":
            self.reply(404, {"error": "no such path"})
            return
        try:
            size = int(self.headers.get("content-length", "0"))
            if size > MOST_BYTES:
                raise ValueError(f"{size} bytes are too many")
            asked = json.loads(self.rfile.read(size))
            self.reply(200, checked(asked["task"], str(asked["answer"])))
        except (KeyError, TypeError, ValueError) as error:
            self.reply(400, {"error": str(error)})

    def reply(self, status: int, value: dict[str, Any]) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        """Say nothing: a line per request helps nobody."""


if __name__ == "__main__":
    # The first process of a container ignores SIGTERM unless it asks for it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    address = (os.environ.get("HOST", "127.0.0.1"), int(os.environ.get("PORT", "4010")))
    ThreadingHTTPServer(address, Handler).serve_forever()
