"""Words of a manifest, given to all that takes the user's: mypy refuses each line, or calls its comment needless.

Nothing calls this. `tests/fast/test_granted.py` holds the lines to the list of doors.
"""

from __future__ import annotations

from pathlib import Path

from pytest_helmbench.benchmarks.bench_packs.node.command import find_node
from pytest_helmbench.benchmarks.bench_packs.verifiers.running import parse_choices
from pytest_helmbench.benchmarks.packs.agent.agent_family import AgentRow
from pytest_helmbench.benchmarks.packs.agent.external import AgentCommand, AgentNeeds
from pytest_helmbench.benchmarks.packs.families.terminal_task.family import FAMILY
from pytest_helmbench.benchmarks.packs.row_tools import PackSettings, Sandboxes
from pytest_helmbench.benchmarks.packs.task import PackTask
from pytest_helmbench.core.granted import NOT_ALLOWED, NOTHING_NAMED, Granted
from pytest_helmbench.core.model import HttpTemplate, ModelEntry
from pytest_helmbench.gateway.local_answers import call_function
from pytest_helmbench.gateway.providers.application import function_application, http_application
from pytest_helmbench.gateway.providers.endpoints import resolve_endpoint
from pytest_helmbench.sandbox.box import Engine
from pytest_helmbench.sandbox.detection import find_engine
from pytest_helmbench.sandbox.fence import find_fence
from pytest_helmbench.sandbox.images import ImageRights

MANIFEST = {"text": "a manifest's own words", "leave": True}
TEXT, LEAVE, TEXTS = str(MANIFEST["text"]), bool(MANIFEST["leave"]), (str(MANIFEST["text"]),)


async def widen(entry: ModelEntry, task: PackTask, engine: Engine) -> None:
    """Give a manifest's words to every door."""
    # fmt: off
    resolve_endpoint(entry, default_base_url=TEXT, default_key_env=None, environ={})  # type: ignore[arg-type]
    resolve_endpoint(entry, default_base_url=None, default_key_env=TEXT, environ={})  # type: ignore[arg-type]
    ModelEntry("a/b", base_url=TEXT)  # type: ignore[arg-type]
    ModelEntry("a/b", api_key_env=TEXT)  # type: ignore[arg-type]
    ModelEntry("a/b", http=HttpTemplate(TEXT))  # type: ignore[arg-type]
    ModelEntry("python:a:b", function=TEXT)  # type: ignore[arg-type]
    function_application(TEXT)  # type: ignore[arg-type]
    http_application(HttpTemplate(TEXT), "host")  # type: ignore[arg-type]
    await call_function(TEXT, {}, 1.0)  # type: ignore[arg-type]
    AgentCommand.parse(TEXT, Path())  # type: ignore[arg-type]
    AgentNeeds.parse(TEXTS, NOTHING_NAMED, NOTHING_NAMED, Path())  # type: ignore[arg-type]
    AgentNeeds.parse(NOTHING_NAMED, TEXTS, NOTHING_NAMED, Path())  # type: ignore[arg-type]
    AgentNeeds.parse(NOTHING_NAMED, NOTHING_NAMED, TEXTS, Path())  # type: ignore[arg-type]
    await find_engine(TEXT, pull=NOT_ALLOWED)  # type: ignore[arg-type]
    await find_engine(Granted("auto"), pull=LEAVE)  # type: ignore[arg-type]
    await find_fence(TEXT)  # type: ignore[arg-type]
    Sandboxes(TEXT, pull=NOT_ALLOWED, note=print)  # type: ignore[arg-type]
    Sandboxes(Granted("auto"), pull=LEAVE, note=print)  # type: ignore[arg-type]
    Sandboxes(Granted("auto"), pull=NOT_ALLOWED, note=print, unprotected=LEAVE)  # type: ignore[arg-type]
    find_node(Path(TEXT), {})  # type: ignore[arg-type]
    parse_choices(TEXTS)  # type: ignore[arg-type]
    ImageRights(build=TEXT)  # type: ignore[arg-type]
    ImageRights(pull=LEAVE)  # type: ignore[arg-type]
    PackSettings(allow_commands=TEXTS)  # type: ignore[arg-type]
    PackSettings(network=TEXT)  # type: ignore[arg-type]
    FAMILY.denied(task, TEXTS)  # type: ignore[arg-type]
    AgentRow(task, engine, allowed_commands=TEXTS)  # type: ignore[arg-type]
    # fmt: on
