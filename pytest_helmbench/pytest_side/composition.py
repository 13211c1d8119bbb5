"""The composition root: builds a session from its parts."""

from __future__ import annotations

import os
import pickle
import shlex
from dataclasses import replace

import pytest

from pytest_helmbench.benchmarks.places import benchmark_root, benchmarks_below, unnamed_tables
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.scrub import scrub
from pytest_helmbench.engine.case_engine import Share
from pytest_helmbench.engine.loop import close_to_others
from pytest_helmbench.judging.judge import JudgeTemplate, load_template
from pytest_helmbench.options.option import Option
from pytest_helmbench.options.settings import Settings, resolve_settings
from pytest_helmbench.options.trust import results_folder
from pytest_helmbench.pytest_side.collect.command_line import escape_item_ids, refuse_conftests
from pytest_helmbench.pytest_side.collect.items import PLUGIN, CaseItem, on_demand_ids
from pytest_helmbench.pytest_side.say.announcement import Announcer
from pytest_helmbench.pytest_side.say.failures import ShownFailures
from pytest_helmbench.pytest_side.say.live_line import LiveLine
from pytest_helmbench.pytest_side.say.printing import in_github_actions
from pytest_helmbench.pytest_side.session_end import LastLine, SessionEnd
from pytest_helmbench.pytest_side.session_plugin import SessionPlugin
from pytest_helmbench.pytest_side.workers.interruption import EndingHooks, Interruptions, end_with_parent
from pytest_helmbench.pytest_side.workers.role import CaseEngines, SessionRole, SingleProcess
from pytest_helmbench.results.gates import Gates, read_gates
from pytest_helmbench.results.losses import Losses
from pytest_helmbench.run.coordinator import Coordinator
from pytest_helmbench.run.cost_estimate import check_shard
from pytest_helmbench.run.library import Library, fetched, intended_folder, unreadable_benchmark_text
from pytest_helmbench.run.plan import Notes
from pytest_helmbench.run.targets import session_concurrency
from pytest_helmbench.speed.quick_protocol import QuickProtocol


def register(config: pytest.Config) -> None:
    """Register the plugins of a session.

    Raises:
        pytest.UsageError: An option that cannot be used, or nothing to run.
    """
    try:
        _register_plugins(config)
    except pytest.UsageError as error:
        if not hasattr(config, "workerinput"):
            from pytest_helmbench.pytest_side.job_end import report_refusal

            report_refusal(config, str(error))
        raise


def _register_plugins(config: pytest.Config) -> None:
    close_to_others()
    try:
        settings = _settings(config)
        template = load_template(settings.judge_template)
        gates = _gates(config, settings)
        _choose_paths(config, settings)
    except HelmbenchError as error:
        raise pytest.UsageError(scrub(str(error))) from error
    escape_item_ids(config)
    if hasattr(config, "workerinput"):
        _register_worker(config, settings, template)
        return
    notes = Notes()
    library = Library(settings, os.environ, notes.say)
    coordinator = Coordinator(settings, library, gates, notes)
    announce = Announcer(config, coordinator)
    interruptions = Interruptions()
    live = LiveLine(config, coordinator, interruptions.raise_pending)
    role: SessionRole
    if config.getoption("dist", "no") != "no" and not config.getoption("collectonly"):
        from pytest_helmbench.pytest_side.workers.xdist_controller import XdistController

        _check_distribution(config)
        role = XdistController(config, coordinator, announce, live.tick, interruptions)
        config.pluginmanager.register(role, "helmbench-xdist")
    else:
        share = Share(session_concurrency(settings), _stops_at_failure(config))
        engines = CaseEngines(settings, library, template, share)
        role = SingleProcess(coordinator, engines, announce, live.tick)
    _register(config, SessionPlugin(config, settings, library, role, coordinator, notes, live))
    hooks = EndingHooks(config, interruptions, role, coordinator)
    config.pluginmanager.register(hooks, "helmbench-ending")
    shown = ShownFailures(config, settings.show, coordinator.runs.losses)
    end = SessionEnd(config, role, coordinator, live, shown)
    for plugin, name in ((shown, "failures"), (end, "end"), (LastLine(config, end, shown), "last-words")):
        config.pluginmanager.register(plugin, f"helmbench-{name}")
    writes = settings.summary not in ("auto", "never") or config.getoption("--helmbench-markdown", None)
    if in_github_actions() or writes:
        from pytest_helmbench.pytest_side.job_end import JobEnd

        config.pluginmanager.register(JobEnd(config, coordinator, end), "helmbench-job")


def _gates(config: pytest.Config, settings: Settings) -> Gates:
    """Return the gates of a session; none in a shard, since `helmbench merge --gate` checks them over all shards."""
    baseline = None
    if settings.baselines or settings.max_drop is not None:
        from pytest_helmbench.results.baselines import read_baseline_options  # few sessions name one

        models, gone = settings.models.value, settings.allow_gone
        baseline = read_baseline_options(settings.baselines, settings.max_drop, models, allows_gone=gone)
    check_shard(settings, by_outcome=config.getoption("lf", False) or config.getoption("stepwise", False))
    gates = read_gates(settings.min_score, settings.min_coverage, baseline)
    return gates if settings.shard is None else Gates((), None)


def _register_worker(config: pytest.Config, settings: Settings, template: JudgeTemplate) -> None:
    from pytest_helmbench.pytest_side.workers.xdist_worker import XdistWorker, send

    workerinput = config.workerinput  # type: ignore[attr-defined]  # xdist's
    channel = workerinput["helmbench"]
    notes = Notes(lambda sentence: send(channel, "note", sentence))
    library = Library(settings, os.environ, notes.say)
    share = Share(
        session_concurrency(settings),
        _stops_at_failure(config),
        workers=workerinput["workercount"],
        name=f"{workerinput['workerid']}:",
    )
    interruptions = Interruptions()
    live = LiveLine(config, None, interruptions.raise_pending)
    engines = CaseEngines(settings, library, template, share)
    role = XdistWorker(engines, channel, live.tick)
    _register(config, SessionPlugin(config, settings, library, role, None, notes, live))
    hooks = EndingHooks(config, interruptions, role, None)
    config.pluginmanager.register(hooks, "helmbench-ending")
    end = SessionEnd(config, role, None, live, ShownFailures(config, settings.show, lambda *_: Losses()))
    config.pluginmanager.register(end, "helmbench-end")
    end_with_parent()


def _register(config: pytest.Config, plugin: SessionPlugin) -> None:
    config.stash[PLUGIN] = plugin
    config.pluginmanager.register(plugin, "helmbench-session")
    config.pluginmanager.register(QuickProtocol(config, plugin, CaseItem, on_demand_ids), "helmbench-quick")


def _settings(config: pytest.Config) -> Settings:
    """Return the settings of the session; a worker has those of its controller."""
    workerinput = getattr(config, "workerinput", None)
    if workerinput is not None:
        given: Settings = pickle.loads(workerinput["helmbench_settings"])
        return given
    start = config.invocation_params.dir
    named = bool(config.getoption("rootdir", None) or config.getoption("inifilename", None))
    settings = resolve_settings(
        lambda option: _given(config, option),
        start,
        results_folder(config.rootpath, start, named=named),
        config.inipath,
        environ=os.environ,
    )
    if config.getoption("setuponly", False) or config.getoption("setupplan", False):
        # No test body runs, so nothing is called.
        settings = replace(settings, dry_run=True)
    if settings.resume is None:
        return settings
    from pytest_helmbench.run.resume import as_continued

    return as_continued(settings, settings.resume)


def _given(config: pytest.Config, option: Option) -> object:
    """Return what was given for an option: on the command line, else in ini files, else None."""
    value: object = None if option.use == "ini" else config.getoption(option.key)
    return value if value is not None else (config.getini(option.key) or None)


def _check_distribution(config: pytest.Config) -> None:
    mode = config.getoption("dist")
    if mode != "load":
        raise pytest.UsageError(
            f"helmbench cases run with --dist=load, not --dist={mode}\n"
            "  hint: add --dist=load: it goes over addopts; each worker gets an equal share"
        )


def _choose_paths(config: pytest.Config, settings: Settings) -> None:
    """Without a path on the command line, run the benchmark of this folder or of `helmbench_paths` alone."""
    if config.args_source is pytest.Config.ArgsSource.ARGS:
        config.args[:] = map(fetched, config.args)
        _refuse_unusable_paths(config, settings)
        return
    start = config.invocation_params.dir
    here = benchmark_root(start)
    paths = [here] if here is not None else [config.rootpath / path for path in settings.paths]
    found = [path for path in paths if benchmark_root(path) is not None or benchmarks_below(path)]
    if not found and config.args_source is pytest.Config.ArgsSource.TESTPATHS:
        return
    if not found:
        places = ", ".join(str(path) for path in paths)
        models = "".join(f" --helmbench-model={shlex.quote(model)}" for model in settings.models.value)
        raise pytest.UsageError(
            f"no benchmark at {places}\n"
            "  hint: give the path of one, or set helmbench_paths; a benchmark is a folder with scenarios/P1-B1-S1/…,"
            " a pack (manifest.yaml and tasks.jsonl), a table (qa.csv), task folders"
            " (task.toml), or a Bench Pack (benchlocal.pack.json);"
            f" `pytest tests{models}` runs the tests of a folder"
        )
    config.args[:] = [str(path) for path in found]
    refuse_conftests(config, found, below=True)


def _refuse_unusable_paths(config: pytest.Config, settings: Settings) -> None:
    """Refuse a folder that looks like a benchmark without being one or holds tables, and that has no other tests."""
    for argument in config.args:
        shown = argument.partition("::")[0]
        path = config.invocation_params.dir / shown
        folder = intended_folder(path)
        if folder is not None and next(folder.rglob("*.py"), None) is None:
            raise pytest.UsageError(unreadable_benchmark_text(argument, folder, settings))
        # A gate says of a benchmark that lost its manifest that its cases are gone.
        if not settings.baselines and benchmark_root(path) is None and not benchmarks_below(path):
            instead = unnamed_tables(path, shown, config.getini("python_files"))
            if instead:
                raise pytest.UsageError(scrub(instead))


def _stops_at_failure(config: pytest.Config) -> bool:
    """Return whether the session stops at a failure."""
    return bool(config.getoption("maxfail", 0)) or bool(config.getoption("stepwise", False))
