"""Scenario trees: from a folder to healthy scenarios and the problems of the others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path

from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.evaluation_type import RuleSource
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.judged_types import (
    load_criterion,
    multi_criteria_rule,
)
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.known_types import (
    EVALUATION_TYPES,
    SCENARIO_SCHEMA,
    evaluation_type_of,
)
from pytest_helmbench.benchmarks.scenario_trees.format.components import (
    CONDITIONS,
    PERTURBATIONS,
    USER_CONTEXTS,
    load_components,
)
from pytest_helmbench.benchmarks.scenario_trees.format.folders import (
    ScenarioFiles,
    ScenarioFolder,
    files_of,
    scenario_folders,
)
from pytest_helmbench.benchmarks.scenario_trees.format.frontmatter import (
    leaked_frontmatter,
    linted_headings,
    split_file,
)
from pytest_helmbench.benchmarks.scenario_trees.format.markdown_text import Body, compose, outline
from pytest_helmbench.benchmarks.scenario_trees.format.response_schema import (
    bare_schema,
    load_response_format,
)
from pytest_helmbench.benchmarks.scenario_trees.format.side_files import (
    BenchmarkFile,
    Readmes,
    load_benchmark_file,
    load_scoring,
    load_tools,
)
from pytest_helmbench.benchmarks.scenario_trees.places import meant_as_scenarios, words_of_suffix
from pytest_helmbench.benchmarks.scenario_trees.tree import (
    BrokenScenario,
    Component,
    Rule,
    Scenario,
    ScenarioTree,
)
from pytest_helmbench.core.codes import natural_key
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.problem import Problem, UnreadableBenchmarkError
from pytest_helmbench.core.tools import Toolbox
from pytest_helmbench.files.field_values import named
from pytest_helmbench.files.source import Fault, Findings, Reader, listed
from pytest_helmbench.files.strict_json import a_text, a_whole_number
from pytest_helmbench.files.validation import validate
from pytest_helmbench.files.yaml_text import Document

_KNOWN_KEYS = SCENARIO_SCHEMA.keys()


def load_tree(root: Path, *, trust_hint: str = "your own ini file") -> ScenarioTree:
    """Read a scenario tree.

    Args:
        root: The folder that holds `scenarios/`.
        trust_hint: How the user trusts it; empty where he does, so that its Python may be run.

    Returns:
        The healthy scenarios, and all problems of all broken files.

    Raises:
        UnreadableBenchmarkError: The folder itself cannot be read.
    """
    reader = Reader(Findings(), root, trust_hint=trust_hint)
    try:
        folders = scenario_folders(root / "scenarios", reader.findings)
    except OSError as error:
        message = f"the benchmark cannot be read: {error.strerror or error}"
        problem = Problem(root / "scenarios", None, message, _hint_of_none(root))
        raise UnreadableBenchmarkError((problem,)) from error
    if not folders and not reader.findings.problems:
        hint = "name the folder of a scenario like P1-B1-S1"
        reader.findings.add(root / "scenarios", Fault(None, "there is no scenario in it", hint))
    scoring, named = (_one_of(reader, root, stem) for stem in ("scoring", "benchmark"))
    benchmark_file = load_benchmark_file(reader, named) if named is not None else BenchmarkFile()
    scenarios, broken, unrun = _load_scenarios(reader, folders, benchmark_file)
    codes = sorted({folder.code.rpartition("-")[0] for folder in folders}, key=natural_key)
    scored = load_scoring(reader, scoring, codes) if scoring is not None else None
    for path in _unused_tools(root, folders, benchmark_file.tools_file):
        hint = "name it in benchmark.yml ('tools: PATH'), or move it into the folder of a scenario"
        reader.findings.add(path, Fault(None, "no scenario uses the tools of this file", hint, usable=True))
    digest = reader.content_hash(root)
    readmes = Readmes(root / "scenarios")
    pillars = dict.fromkeys(code.split("-")[0] for code in codes)
    problems = _by_file(reader.findings.problems)
    return ScenarioTree(
        root=root,
        name=benchmark_file.name or root.absolute().name,
        version=benchmark_file.version or digest[:12],
        description=benchmark_file.description or "",
        hash=digest,
        pillars=tuple(map(readmes.pillar, pillars)),
        behaviours=tuple(map(readmes.behaviour, codes)),
        scenarios=scenarios,
        scoring=scored,
        problems=problems,
        broken={path: broken.get(path, path.stem) for path in problems},
        warnings=tuple(sorted(reader.findings.warnings, key=_order)),
        unrun=unrun,
    )


def _hint_of_none(root: Path) -> str:
    """Return what to do where there is no folder `scenarios` that can be read."""
    meant = meant_as_scenarios(root)
    if meant is None or meant.name == "scenarios":
        return "a benchmark is a folder with a folder 'scenarios'"
    return (
        "move its folders into a folder 'scenarios'"
        if meant == root
        else f"rename {meant.name!r} to 'scenarios'"
    )


def _unused_tools(root: Path, folders: list[ScenarioFolder], shared: Path | None) -> Iterator[Path]:
    """Yield files of tools that no scenario reads.

    Args:
        folders: Of its scenarios, which read those of their own.
        shared: Those of all other scenarios, where `benchmark.yml` names some.
    """
    if shared is not None and all(_files(folder.path, "tools") for folder in folders):
        yield shared
    above = {place for folder in folders for place in folder.path.parents if place.is_relative_to(root)}
    for folder in sorted(above):
        yield from (path for path in _files(folder, "tools") if path != shared)


def _load_scenarios(
    reader: Reader, folders: list[ScenarioFolder], benchmark_file: BenchmarkFile
) -> tuple[dict[Path, Scenario], dict[Path, str], dict[str, BrokenScenario]]:
    """Return the healthy scenarios by prompt file, the scenario code of each broken file, and the broken scenarios."""
    namesakes: defaultdict[str, list[ScenarioFolder]] = defaultdict(list)
    for folder in folders:
        namesakes[folder.code].append(folder)
    scenarios: dict[Path, Scenario] = {}
    broken: dict[Path, str] = {}
    unrun: dict[str, BrokenScenario] = {}
    for folder in folders:
        before = len(reader.findings.problems)
        scenario = _load_scenario(reader, folder, namesakes[folder.code], benchmark_file)
        if isinstance(scenario, Scenario):
            scenarios[scenario.path] = scenario
        else:
            unrun.setdefault(folder.code, scenario)
        broken.update((problem.path, folder.code) for problem in reader.findings.problems[before:])
    return scenarios, broken, unrun


def _order(problem: Problem) -> tuple[tuple[tuple[int, int | str], ...], int]:
    return natural_key(problem.path.as_posix()), problem.line or 0


def _by_file(problems: Iterable[Problem]) -> Mapping[Path, tuple[Problem, ...]]:
    found: dict[Path, list[Problem]] = {}
    for problem in sorted(dict.fromkeys(problems), key=_order):
        found.setdefault(problem.path, []).append(problem)
    return {path: tuple(items) for path, items in found.items()}


def _one_of(reader: Reader, root: Path, stem: str) -> Path | None:
    """Return `stem.yaml` or `stem.yml`, whichever is there."""
    found = _files(root, stem)
    if len(found) > 1:
        reader.findings.add(found[1], Fault(None, f"{found[0].name} stands beside it", "keep one of them"))
    return found[0] if found else None


def _files(folder: Path, stem: str) -> list[Path]:
    places = (folder / f"{stem}.yaml", folder / f"{stem}.yml")
    return [path for path in places if path.is_file() or path.is_symlink()]


@dataclass(frozen=True, slots=True)
class _Prompt:
    """The content of a prompt file; `usable` tells whether its frontmatter can be relied on."""

    path: Path
    body: Body
    document: Document | None
    block: str
    usable: bool

    @property
    def category(self) -> str | None:
        """The frontmatter's `category` as written."""
        return a_text(self.value("category"))

    def value(self, key: str) -> JsonValue:
        """Return what the frontmatter says at a key; None where it says nothing."""
        return None if self.document is None else self.document.mapping().get(key)


def _load_scenario(
    reader: Reader, folder: ScenarioFolder, namesakes: list[ScenarioFolder], benchmark_file: BenchmarkFile
) -> Scenario | BrokenScenario:
    findings = reader.findings
    before = len(findings.problems)
    try:
        files = files_of(folder)
    except OSError as error:
        findings.add(folder.path, Fault(None, f"the folder cannot be read: {error.strerror or error}"))
        return BrokenScenario(folder.code, folder.path)
    for path, fault in (*files.faults, *_twice(folder, files.prompt, namesakes)):
        findings.add(path, fault)
    prompt = _load_prompt(reader, files)
    response_format = load_response_format(reader, files.schema, folder.code) if files.schema else None
    conditions = load_components(reader, folder.path, folder.code, CONDITIONS)
    user_contexts = load_components(reader, folder.path, folder.code, USER_CONTEXTS)
    perturbations, asked = _load_perturbations(reader, folder)
    toolbox, tools = _load_toolbox(reader, folder, prompt, benchmark_file)
    rule = _load_rule(reader, files, prompt, response_format, asked, tools)
    evaluations = max(1, len(files.rubrics)) if files.multi else 1
    body = "" if prompt is None else prompt.body.trimmed()
    unrun = BrokenScenario(
        folder.code, files.prompt, body, conditions, user_contexts, perturbations, evaluations
    )
    if len(findings.problems) > before or prompt is None or rule is None:
        return unrun
    scenario = Scenario(
        code=folder.code,
        path=files.prompt,
        title=folder.title or words_of_suffix(files.prompt.stem),
        body=body,
        block=prompt.block,
        category=prompt.category or rule.label,
        response_format=response_format,
        rule=rule,
        conditions=conditions,
        user_contexts=user_contexts,
        perturbations=perturbations,
        family=rule.type,
        system=benchmark_file.system,
        schema_turns="all" if prompt.value("schema_turns") == "all" else "last",
        toolbox=toolbox,
    )
    for path, fault in (*_sign_warnings(scenario), *_idle_keys(scenario, prompt)):
        findings.add(path, fault)
    return scenario


def _load_perturbations(
    reader: Reader, folder: ScenarioFolder
) -> tuple[tuple[Component, ...], Mapping[str, tuple[int, ...]] | None]:
    """Return the perturbations, and by code at which turns each asks the model; None where not all can be read."""
    problems = reader.findings.problems
    before = len(problems)
    found = load_components(reader, folder.path, folder.code, PERTURBATIONS)
    if not found and len(problems) == before:
        fault = Fault(None, "the scenario has no perturbations", "add at least one, below a line '# PT1'")
        reader.findings.add(folder.path / "perturbations.md", fault)
    return found, {part.code: part.asked_turns for part in found} if len(problems) == before else None


def _load_toolbox(
    reader: Reader, folder: ScenarioFolder, prompt: _Prompt | None, benchmark_file: BenchmarkFile
) -> tuple[Toolbox | None, tuple[str, ...] | None]:
    """Return the tools of the scenario's own file, else those that `benchmark.yml` names, or None without any.

    Their names come second: None where the tools cannot be read.
    """
    before = len(reader.findings.problems)
    own = _one_of(reader, folder.path, "tools")
    tools = benchmark_file.tools if own is None else load_tools(reader, own)
    if benchmark_file.unusable and (own is None or benchmark_file.tools_file is None):
        cause = benchmark_file.unusable
        message = f"{cause} cannot be used, so the cases of this scenario cannot be composed"
        fault = Fault(None, message, f"mend the problems of {cause} first", cause=cause)
        reader.findings.add(folder.path if prompt is None else prompt.path, fault)
    if tools is None:
        return None, () if len(reader.findings.problems) == before else None
    rounds = None if prompt is None else a_whole_number(prompt.value("max_rounds"))
    toolbox = Toolbox(tools) if rounds is None else Toolbox(tools, rounds)
    return toolbox, tuple(tool.name for tool in tools)


def _twice(
    folder: ScenarioFolder, prompt: Path, namesakes: Iterable[ScenarioFolder]
) -> Iterator[tuple[Path, Fault]]:
    for other in namesakes:
        if other is not folder:
            message = f"the code {folder.code} is also that of the folder {other.path.name!r}"
            yield prompt, Fault(None, message, "give each scenario folder a code of its own")


def _load_prompt(reader: Reader, files: ScenarioFiles) -> _Prompt | None:
    """Read the prompt file, filing what is wrong with it; None when there is nothing to read."""
    path = files.prompt
    text = reader.text(path) if path.is_file() else None
    if text is None:
        return None
    split = split_file(text)
    document = split.document
    faults = [*split.faults]
    if document is not None and document.data is None and not document.faults:
        document = None  # two lines `---` with nothing between
    elif document is not None and not faults:
        faults.extend(validate(document, SCENARIO_SCHEMA))
    usable = not faults
    if document is not None:
        faults.extend(_key_faults(document, multi=files.multi))
    body = outline(text).part(split.body_start or 0, len(text))
    block = ""
    if split.body_start is not None:
        block, found = compose(body)
        faults.extend(found)
        faults.extend(linted_headings(body, only_first_lines=True))
        faults.extend(leaked_frontmatter(body, document.names() if document is not None else ()))
        if not block:
            faults.append(Fault(None, "the scenario has no text", "write the task below the frontmatter"))
    reader.findings.add(path, *faults)
    return _Prompt(path, body, document, block, usable)


def _key_faults(document: Document, *, multi: bool) -> Iterator[Fault]:
    for key in document.names():
        if key not in _KNOWN_KEYS:
            hint = listed(key, _KNOWN_KEYS, "known keys")
            is_odd = multi or key != _misspelled_rule(document)
            yield Fault(document.line(key), f"unknown key {named(key)}", hint, usable=is_odd)
        elif multi and key == "evaluation":
            message = "evaluation means nothing in a multi-criteria scenario"
            hint = "remove it: CR1.md, CR2.md, … say what passes"
            yield Fault(document.line(key), message, hint)


def _misspelled_rule(document: Document) -> str | None:
    """Return the key that was meant as `evaluation` or `category`, where the frontmatter has no rule without it."""
    names = document.names()
    wanted = [] if "evaluation" in names else ["evaluation", *({"category"} - {*names})]
    unknown = (key for key in names if key not in _KNOWN_KEYS)
    return next((key for key in unknown if get_close_matches(key.lower(), wanted)), None)


def _load_rule(
    reader: Reader,
    files: ScenarioFiles,
    prompt: _Prompt | None,
    response_format: JsonObject | None,
    perturbations: Mapping[str, tuple[int, ...]] | None,
    tools: tuple[str, ...] | None,
) -> Rule | None:
    """Read the rule for replies; None after an error, with all that can be read checked all the same."""
    if files.multi:
        return multi_criteria_rule(reader, files)
    for path in files.rubrics:
        hint = "rubrics of this name belong to a prompt MCSQE.md"
        reader.findings.add(path, Fault(None, "the file is ignored beside a plain prompt", hint, usable=True))
    document = (prompt.document if prompt is not None else None) or Document(None)
    schema = None if response_format is None else bare_schema(response_format)
    source = RuleSource(reader, files, document, schema, perturbations, tools)
    if _misspelled_rule(document) is not None:
        return None
    usable = prompt is not None and prompt.usable
    kind = evaluation_type_of(document) if usable or isinstance(document.data, dict) else None
    if kind is not None:
        kind.check(source)
    if kind is None or not usable:
        if files.criteria is not None:
            load_criterion(reader, files.criteria, "")
        return None
    if files.criteria is not None and not kind.reads_rubric:
        message = f"the file is ignored: the evaluation type is {kind.name}"
        reader.findings.add(files.criteria, Fault(None, message, "write 'type: sqe' to use it", usable=True))
    return kind.read(source)


def _sign_warnings(scenario: Scenario) -> Iterator[tuple[Path, Fault]]:
    """Warn where the sign of a severity does not turn the verdict, though it looks meant to."""
    if scenario.rule.by_severity:
        return
    contexts = [component.weight for component in scenario.user_contexts] or [0]
    if EVALUATION_TYPES[scenario.family].asks_for_polarity:
        below = [item for item in scenario.perturbations if item.weight + min(contexts) < 0]
        if below:
            message = (
                f"{_counted(below)} has a base severity below 0, but {scenario.family} passes the same reply"
            )
            hint = "add 'polarity: by_severity' to the evaluation if the other answer is right there"
            yield below[0].path, Fault(below[0].line, message, hint, usable=True)
    opposite = [item for item in scenario.perturbations if any(item.weight * other < 0 for other in contexts)]
    if opposite:
        context = next(item for item in scenario.user_contexts if item.weight * opposite[0].weight < 0)
        message = f"the severities of {_counted(opposite)} and of {context.code} have opposite signs"
        hint = "they are added up: check that the sum is what you mean"
        yield opposite[0].path, Fault(opposite[0].line, message, hint, usable=True)


def _idle_keys(scenario: Scenario, prompt: _Prompt) -> Iterator[tuple[Path, Fault]]:
    """Warn of frontmatter about something that the scenario does not have."""
    facts = {"schema_turns": scenario.response_format, "max_rounds": scenario.toolbox}
    words = {"schema_turns": "response schema", "max_rounds": "tools"}
    for key, fact in facts.items():
        if fact is None and prompt.document is not None and prompt.value(key) is not None:
            message = f"{key} means nothing: the scenario has no {words[key]}"
            yield prompt.path, Fault(prompt.document.line(key), message, "remove the key", usable=True)


def _counted(components: list[Component]) -> str:
    more = f" (and {len(components) - 1} more)" if len(components) > 1 else ""
    return f"{components[0].code}{more}"
