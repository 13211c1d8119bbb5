"""Limits of foreign SQL on a connection: it reads tables and views, and texts of cases only on request."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Collection

_OTHER_TABLES = {"json_each", "json_tree", "sqlite_master"}
_READS = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
TEXTS = {
    "calls": {"error"},
    "evaluations": {"observed_text", "justification"},
    "events": {"payload"},
    "judgements": {"justification"},
    "pack_results": {"note", "summary", "raw_log", "output", "verifier", "artifacts", "timings"},
    "pack_scores": {"summary", "extra"},
    "requests": {"body"},
    "responses": {"body", "text", "thoughts"},
    "scenarios": {"schema", "evaluation"},
    "texts": {"body"},
}
"""Columns that may hold prompts, replies, words of a judge, or answers: NULL where texts are not asked for."""
UNASKED_JOIN = re.compile(r"\b(?:USING|NATURAL)\b", re.IGNORECASE)
"""Joins of which SQLite does not ask the authorizer: their columns would show what is hidden."""


def allow_reading(conn: sqlite3.Connection, tables: Collection[str], *, with_text: bool) -> None:
    """Refuse all that does not read these tables and views; without texts, their columns read as NULL.

    SQLite asks about each step of a statement, in views and subqueries too.
    """
    conn.execute("SELECT 1 FROM json_each('[]'), json_tree('[]')")  # SQLite makes these tables at first use
    known = {*tables, *_OTHER_TABLES}

    def allowed(action: int, name: str | None, column: str | None, *_where: str | None) -> int:
        if action != sqlite3.SQLITE_READ:
            return sqlite3.SQLITE_OK if action in _READS else sqlite3.SQLITE_DENY
        if column and name not in known:
            return sqlite3.SQLITE_DENY  # `sqlite_dbpage` would show the file itself
        is_hidden = not with_text and column in TEXTS.get(name or "", ())
        return sqlite3.SQLITE_IGNORE if is_hidden else sqlite3.SQLITE_OK

    conn.set_authorizer(allowed)
