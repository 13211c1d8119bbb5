"""The description of a benchmark copied from a shard's file, and which of its rows is which in the merged one."""

from __future__ import annotations

import sqlite3

__all__ = ["contradiction", "copy_benchmark", "forget_maps", "make_maps"]

_MAPS = ("scenario_ids", "condition_ids", "user_context_ids", "perturbation_ids")
_LINKED = (
    ("conditions", "scenario_conditions", "condition_id", "difficulty"),
    ("user_contexts", "scenario_user_contexts", "user_context_id", "severity"),
)
_WEIGHED = (
    *((table, weight) for table, _, _, weight in _LINKED),
    ("perturbations", "severity"),
    ("scenarios", "family"),
    ("scenarios", "evaluation"),
)
"""What decides scores and rules; shards of one benchmark say the same of it."""
_TEXT = (
    "(SELECT ours.id FROM shard.texts AS theirs JOIN main.texts AS ours ON ours.hash = theirs.hash"
    " WHERE theirs.id = part.text_id)"
)


def make_maps(conn: sqlite3.Connection) -> None:
    """Make the temporary tables that say which row of a shard's file is which here, by table: `old`, `new`."""
    for name in _MAPS:
        conn.execute(f"CREATE TEMP TABLE {name} (old INTEGER PRIMARY KEY, new INTEGER NOT NULL)")
    conn.execute(
        "CREATE TEMP TABLE found (old INTEGER PRIMARY KEY, full_code TEXT, behaviour_id INTEGER, benchmark_id INTEGER)"
    )
    conn.execute("CREATE TEMP TABLE links (id INTEGER PRIMARY KEY, old INTEGER, scenario_id INTEGER)")


def forget_maps(conn: sqlite3.Connection) -> None:
    """Forget which row is which: another file has other numbers."""
    for name in _MAPS:
        conn.execute(f"DELETE FROM temp.{name}")


def contradiction(conn: sqlite3.Connection) -> str:
    """Return what a shard's file says otherwise of the benchmark than the merged one; empty for nothing.

    Args:
        conn: As for `copy_benchmark`, which has been called.
    """
    for table, weight in _WEIGHED:
        odd = conn.execute(
            f"SELECT known.full_code FROM temp.{table[:-1]}_ids AS map JOIN shard.{table} AS part ON part.id = map.old"
            f" JOIN main.{table} AS known ON known.id = map.new WHERE known.{weight} IS NOT part.{weight} LIMIT 1"
        ).fetchone()
        if odd is not None:
            return f"the {weight} of {odd[0]}"
    return ""


def copy_benchmark(conn: sqlite3.Connection, old: int) -> int:
    """Copy what the merged file does not have yet of a benchmark, map its rows, and return its id.

    Args:
        conn: To the merged file, with the shard's attached as `shard`, in a transaction.
        old: `benchmarks.id` in the shard's file.
    """
    conn.execute(
        "INSERT OR IGNORE INTO main.benchmarks (name, version, description, hash, kind)"
        " SELECT name, version, description, hash, kind FROM shard.benchmarks WHERE id = ?",
        (old,),
    )
    (new,) = conn.execute(
        "SELECT ours.id FROM shard.benchmarks AS theirs JOIN main.benchmarks AS ours ON ours.name = theirs.name"
        " AND ours.version = theirs.version AND ours.hash = theirs.hash WHERE theirs.id = ?",
        (old,),
    ).fetchone()
    conn.execute("DELETE FROM temp.found")
    ids = {"old": old, "new": int(new)}
    for statement in (_PILLARS, _BEHAVIOURS, _FOUND, *_TEXTS, _SCENARIOS, _MAP_SCENARIOS):
        conn.execute(statement, ids)
    conn.execute(_PERTURBATIONS)
    conn.execute(_MAP_PERTURBATIONS)
    for table, link, column, weight in _LINKED:
        _copy_linked(conn, table, link, column, weight)
    return int(new)


def _copy_linked(conn: sqlite3.Connection, table: str, link: str, column: str, weight: str) -> None:
    """Copy parts that scenarios are linked to, unless theirs are there already."""
    (largest,) = conn.execute(f"SELECT coalesce(max(id), 0) FROM main.{table}").fetchone()
    conn.execute("DELETE FROM temp.links")
    conn.execute(
        f"INSERT INTO temp.links (old, scenario_id) SELECT part.id, scenario_ids.new FROM shard.{link} AS link"
        " JOIN temp.found ON found.old = link.scenario_id JOIN temp.scenario_ids ON scenario_ids.old = link.scenario_id"
        f" JOIN shard.{table} AS part ON part.id = link.{column}"
        f" WHERE NOT EXISTS (SELECT 1 FROM main.{link} AS ours JOIN main.{table} AS known ON known.id = ours.{column}"
        "  WHERE ours.scenario_id = scenario_ids.new AND known.full_code = part.full_code) ORDER BY part.id"
    )
    conn.execute(
        f"INSERT INTO main.{table} (id, code, full_code, {weight}, text_id)"
        f" SELECT links.id + ?, part.code, part.full_code, part.{weight}, {_TEXT}"
        f" FROM temp.links JOIN shard.{table} AS part ON part.id = links.old ORDER BY links.id",
        (largest,),
    )
    conn.execute(
        f"INSERT INTO main.{link} (scenario_id, {column}) SELECT scenario_id, id + ? FROM temp.links",
        (largest,),
    )
    conn.execute(
        f"INSERT OR REPLACE INTO temp.{column}s (old, new) SELECT part.id, known.id FROM shard.{link} AS link"
        " JOIN temp.found ON found.old = link.scenario_id JOIN temp.scenario_ids ON scenario_ids.old = link.scenario_id"
        f" JOIN shard.{table} AS part ON part.id = link.{column}"
        f" JOIN main.{link} AS ours ON ours.scenario_id = scenario_ids.new"
        f" JOIN main.{table} AS known ON known.id = ours.{column} AND known.full_code = part.full_code"
    )


_PILLARS = """
    INSERT OR IGNORE INTO main.pillars (benchmark_id, code, name, description)
    SELECT :new, code, name, description FROM shard.pillars WHERE benchmark_id = :old ORDER BY id
"""
_BEHAVIOURS = """
    INSERT OR IGNORE INTO main.behaviours (pillar_id, code, title, description, compliance_criteria, weight)
    SELECT ours.id, part.code, part.title, part.description, part.compliance_criteria, part.weight
    FROM shard.behaviours AS part JOIN shard.pillars AS theirs ON theirs.id = part.pillar_id
    JOIN main.pillars AS ours ON ours.benchmark_id = :new AND ours.code = theirs.code
    WHERE theirs.benchmark_id = :old ORDER BY part.id
"""
_FOUND = """
    INSERT INTO temp.found (old, full_code, behaviour_id, benchmark_id)
    SELECT part.id, part.full_code, ours.id, NULL FROM shard.scenarios AS part
    JOIN shard.behaviours AS theirs ON theirs.id = part.behaviour_id
    JOIN shard.pillars AS pillar ON pillar.id = theirs.pillar_id
    JOIN main.pillars AS our_pillar ON our_pillar.benchmark_id = :new AND our_pillar.code = pillar.code
    JOIN main.behaviours AS ours ON ours.pillar_id = our_pillar.id AND ours.code = theirs.code
    WHERE pillar.benchmark_id = :old
    UNION ALL SELECT id, full_code, NULL, :new FROM shard.scenarios WHERE benchmark_id = :old
"""
_USED = (
    "scenarios WHERE id IN (SELECT old FROM temp.found)",
    "perturbations WHERE scenario_id IN (SELECT old FROM temp.found)",
    "conditions WHERE id IN"
    " (SELECT condition_id FROM shard.scenario_conditions WHERE scenario_id IN (SELECT old FROM temp.found))",
    "user_contexts WHERE id IN"
    " (SELECT user_context_id FROM shard.scenario_user_contexts WHERE scenario_id IN (SELECT old FROM temp.found))",
)
_TEXTS = tuple(
    "INSERT OR IGNORE INTO main.texts (hash, body) SELECT hash, body FROM shard.texts"
    f" WHERE id IN (SELECT text_id FROM shard.{used}) ORDER BY id"
    for used in _USED
)
_KNOWN = """
    SELECT full_code, id FROM main.scenarios WHERE benchmark_id = :new
    UNION ALL SELECT known.full_code, known.id FROM main.scenarios AS known
    JOIN main.behaviours ON behaviours.id = known.behaviour_id
    JOIN main.pillars ON pillars.id = behaviours.pillar_id WHERE pillars.benchmark_id = :new
"""
_SCENARIOS = f"""
    INSERT INTO main.scenarios
        (behaviour_id, code, full_code, title, family, expected_category, schema, evaluation, text_id, benchmark_id)
    SELECT found.behaviour_id, part.code, part.full_code, part.title, part.family, part.expected_category, part.schema,
        part.evaluation, {_TEXT}, found.benchmark_id
    FROM temp.found JOIN shard.scenarios AS part ON part.id = found.old
    WHERE part.full_code NOT IN (SELECT full_code FROM ({_KNOWN})) ORDER BY part.id
"""
_MAP_SCENARIOS = f"""
    INSERT OR REPLACE INTO temp.scenario_ids (old, new) SELECT found.old, known.id
    FROM temp.found JOIN ({_KNOWN}) AS known ON known.full_code = found.full_code
"""
_PERTURBATIONS = f"""
    INSERT INTO main.perturbations (scenario_id, code, full_code, severity, text_id)
    SELECT scenario_ids.new, part.code, part.full_code, part.severity, {_TEXT}
    FROM temp.found JOIN temp.scenario_ids ON scenario_ids.old = found.old
    JOIN shard.perturbations AS part ON part.scenario_id = found.old
    WHERE NOT EXISTS (SELECT 1 FROM main.perturbations AS known
        WHERE known.scenario_id = scenario_ids.new AND known.full_code = part.full_code) ORDER BY part.id
"""
_MAP_PERTURBATIONS = """
    INSERT OR REPLACE INTO temp.perturbation_ids (old, new) SELECT part.id, known.id
    FROM temp.found JOIN temp.scenario_ids ON scenario_ids.old = found.old
    JOIN shard.perturbations AS part ON part.scenario_id = found.old
    JOIN main.perturbations AS known ON known.scenario_id = scenario_ids.new AND known.full_code = part.full_code
"""
