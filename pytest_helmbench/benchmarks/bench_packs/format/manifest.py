"""The manifest of a Bench Pack (`benchlocal.pack.json`), held to Bench Protocol v1, and what it asks of its host."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from pytest_helmbench.benchmarks.bench_packs.bench_pack import BenchPackManifest
from pytest_helmbench.benchmarks.bench_packs.format.pack_folder import (
    content_hash,
    link_out,
    path_fault,
    place_inside,
)
from pytest_helmbench.benchmarks.bench_packs.format.sheet import Sheet, read_verifiers, shown
from pytest_helmbench.benchmarks.bench_packs.places import MANIFEST, is_bench_pack
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.problem import Problem, UnreadableBenchmarkError
from pytest_helmbench.files.field_values import kind_of, named
from pytest_helmbench.files.source import Fault, Findings, Reader, listed
from pytest_helmbench.files.strict_json import Flaw, NotJSONError, StrictJSON
from pytest_helmbench.files.validation import shipped_schema
from pytest_helmbench.files.yaml_text import Document, json_lines

BENCH_PACK_SCHEMA = shipped_schema("bench_pack", __name__)


HOST_VERSION = "0.3.0"
"""The release of the desktop app whose interface we offer."""
HOST_FEATURES = ("inferenceEndpoints", "dockerInferenceEndpoints")

_NUMBER = r"([0-9]{1,9})"
_VERSION = re.compile(
    rf"v?{_NUMBER}(?:\.{_NUMBER})?(?:\.{_NUMBER})?(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?\Z"
)

_Key = tuple[int, int, int]


def unmet_requirement(sheet: Sheet, data: JsonObject) -> str | None:
    """Return in a sentence which requirement of a manifest we do not meet; None when we meet all.

    Args:
        sheet: Takes what is wrong with the requirements.
        data: The manifest as JSON.
    """
    requirements = sheet.mapping(data, "requirements")
    bounds = sheet.mapping(requirements, "requirements", "benchlocal")
    where = ("requirements", "benchlocal")
    lowest = sheet.text(bounds, *where, "minVersion")
    beyond = sheet.text(bounds, *where, "maxVersionExclusive")
    features = sheet.texts(requirements, "requirements", "hostFeatures")
    return _unmet_bound(lowest, beyond) or _unmet_feature(features)


def _unmet_bound(lowest: str, beyond: str) -> str | None:
    ours = _key(HOST_VERSION)
    for asked in filter(None, (lowest, beyond)):
        if _key(asked) is None:
            return f"it requires BenchLocal {named(asked)}, which is no version such as '0.3.0'"
    low, high = _key(lowest), _key(beyond)
    if ours is not None and low is not None and ours < low:
        return f"it requires BenchLocal {lowest.strip()} or newer; this host offers what {HOST_VERSION} does"
    if ours is not None and high is not None and ours >= high:
        return (
            f"it requires a BenchLocal older than {beyond.strip()}; this host offers what {HOST_VERSION} does"
        )
    return None


def _unmet_feature(asked: tuple[str, ...]) -> str | None:
    absent = [named(feature) for feature in asked if feature not in HOST_FEATURES]
    if not absent:
        return None
    return f"it requires {', '.join(absent)} of its host, which offers {' and '.join(HOST_FEATURES)}"


def _key(version: str) -> _Key | None:
    """Return what orders a version against a release; None for a text that is none.

    A preview counts as its release: of two bounds that differ in this alone we, a release, meet both or neither.
    """
    match = _VERSION.match(version.strip())
    if match is None:
        return None
    major, minor, patch = match.groups()
    return int(major), int(minor or 0), int(patch or 0)


_LARGEST = 1_000_000  # bytes
_LONGEST_REQUEST_S = 10_000_000
_LONGEST_NAME = 200  # characters
_TYPES = ("table", "web")
_MEASURES = ("speed",)
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_NO_LINE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_ENTRY_HINT = "name the module that the pack is loaded by, such as './dist/benchlocal/index.js'"


def load_manifest(root: Path) -> BenchPackManifest:
    """Read the manifest of a Bench Pack and hash the pack.

    What keeps a host like us from running the pack is no error but the manifest's `obstacle`.

    Args:
        root: Folder of the manifest.

    Raises:
        UnreadableBenchmarkError: With everything that is wrong with the manifest.

    Source:
        Bench Packs, section 1.
    """
    path = root / MANIFEST
    findings = Findings()
    sheet = Sheet(_document(findings, root, path))
    manifest = _manifest(sheet, root, path)
    faults = [*sheet.document.faults, *sheet.faults]
    findings.add(path, *sorted(faults, key=lambda fault: fault.line or 0))
    if manifest is not None and not findings.problems:
        _refuse_links(manifest)
        return replace(manifest, hash=content_hash(root), warnings=tuple(findings.warnings))
    raise UnreadableBenchmarkError(tuple(findings.problems))


def _refuse_links(manifest: BenchPackManifest) -> None:
    """Hold a pack to its own folder: nothing else is there in the fence that its code runs in.

    Raises:
        UnreadableBenchmarkError: A link leads out of it.
    """
    link = link_out(manifest.root)
    if link is not None:
        message = "a link that leads out of the Bench Pack, which may read its own folder alone"
        raise UnreadableBenchmarkError((Problem(link, None, message, "put the file itself there"),))


def _document(findings: Findings, root: Path, path: Path) -> Document:
    """Read the file as JSON.

    Raises:
        UnreadableBenchmarkError: It cannot be read, or is no JSON.
    """
    fault = _fault_of_file(root, path)
    text = Reader(findings).text(path) if fault is None else None
    data: JsonValue = None
    flaws: tuple[Flaw, ...] = ()
    if text is not None:
        try:
            data, flaws = StrictJSON().decode(text)
        except NotJSONError as error:
            fault = Fault(error.line, f"manifest: this is no valid JSON: {error}")
    if fault is not None:
        findings.add(path, fault)
    if text is None or findings.problems:
        raise UnreadableBenchmarkError(tuple(findings.problems))
    document = Document(data, json_lines(text))
    faults = [_fault_of_flaw(document, flaw) for flaw in flaws]
    if path.read_bytes().startswith(_BYTE_ORDER_MARK):
        message = (
            "manifest: the file begins with a byte order mark, at which packs that read it themselves stop"
        )
        faults.append(Fault(1, message, "save the file as UTF-8 without it"))
    return Document(data, document.lines, tuple(faults))


def _fault_of_flaw(document: Document, flaw: Flaw) -> Fault:
    where = ".".join(map(str, flaw.place)) or "manifest"
    return Fault(document.line(*flaw.place) or 1, f"{where}: {flaw.message}", flaw.hint)


def _fault_of_file(root: Path, path: Path) -> Fault | None:
    if not is_bench_pack(root):
        return Fault(None, "manifest: there is no such file", "a Bench Pack has its manifest at its root")
    if place_inside(root, MANIFEST) is None:
        return Fault(None, "manifest: the file is a link that leads out of the pack", "copy it to its place")
    size = path.stat().st_size
    if size > _LARGEST:
        return Fault(None, f"manifest: the file has {size:,} bytes; at most {_LARGEST:,} are read")
    return None


def _manifest(sheet: Sheet, root: Path, path: Path) -> BenchPackManifest | None:
    data = sheet.document.data
    if not isinstance(data, dict):
        sheet.error((), f"this is {kind_of(data)}, not an object")
        return None
    for key in ("schemaVersion", "protocolVersion"):
        _check_version(sheet, data, key)
    entry, web = _entry(sheet, root, data)
    _check_capabilities(sheet, data)
    unmet = unmet_requirement(sheet, data)
    manifest = BenchPackManifest(
        root=root,
        path=path,
        id=_name(sheet, data, "id"),
        name=_name(sheet, data, "name"),
        version=_name(sheet, data, "version"),
        author=sheet.text(data, "author"),
        description=sheet.text(data, "description"),
        entry=entry,
        sampling_defaults=_sampling_defaults(sheet, data),
        verifiers=read_verifiers(sheet, root, data),
        obstacle=web or unmet,
        hash="",
        measures_speed=_measures_speed(sheet, data),
        most_at_once=_most_at_once(sheet, data),
    )
    if "/" in manifest.id or "\\" in manifest.id or set(manifest.id) == {"."}:
        message = f"{shown(manifest.id)} cannot be the name of a folder"
        sheet.error(("id",), message, "hosts keep what a pack stores in a folder of this name")
    return manifest


def _measures_speed(sheet: Sheet, data: JsonObject) -> bool:
    stated = data.get("measures")
    if stated not in (None, *_MEASURES):
        hint = listed(stated, _MEASURES, "known")
        sheet.warn(("measures",), f"{shown(stated)} is not known and says nothing", hint)
    return stated == "speed"


def _most_at_once(sheet: Sheet, data: JsonObject) -> int | None:
    stated = data.get("concurrency")
    if stated is None or (isinstance(stated, int) and not isinstance(stated, bool) and stated > 0):
        return stated
    sheet.error(
        ("concurrency",), f"{shown(stated)} is no number of scenarios", "write a whole number from 1 on"
    )
    return None


def _check_version(sheet: Sheet, data: JsonObject, key: str) -> None:
    value = data.get(key)
    if value is None:
        sheet.missing((key,), f'add "{key}": 1')
    elif isinstance(value, bool) or value != 1:
        sheet.error((key,), f"{shown(value)} is not known here", "write 1")


def _name(sheet: Sheet, data: JsonObject, key: str) -> str:
    value = sheet.text(data, key)
    if data.get(key) is None:
        sheet.missing((key,), f"a Bench Pack has a text {key!r}")
    if len(value) > _LONGEST_NAME:
        sheet.error((key,), f"the text has {len(value):,} characters; at most {_LONGEST_NAME} are taken")
    elif _NO_LINE.search(value):
        sheet.error((key,), f"{shown(value)} holds a line break or another control character")
    return value


def _check_capabilities(sheet: Sheet, data: JsonObject) -> None:
    found = sheet.mapping(data, "capabilities")
    if data.get("capabilities") is None:
        sheet.missing(("capabilities",), 'add "capabilities": {"verification": false}')
    elif isinstance(data["capabilities"], dict) and not {"verification", "sidecars"} & found.keys():
        sheet.missing(
            ("capabilities", "verification"), "write whether the pack has a verifier: true or false"
        )


def _entry(sheet: Sheet, root: Path, data: JsonObject) -> tuple[Path, str | None]:
    """Return the module, and why there is none to run; the folder stands for one that there is not."""
    kind = sheet.text(data, "type")
    if kind and kind not in _TYPES:
        sheet.error(("type",), f"{shown(kind)} is not known", listed(kind, _TYPES, "known types"))
    entry = sheet.text(data, "entry")
    if data.get("entry") is None:
        sheet.missing(("entry",), _ENTRY_HINT)
    if kind == "web" or _URL.match(entry):
        return root, f"it is a page on the web ({shown(entry)}), which only the desktop app can show"
    return (_module(sheet, root, entry) if entry else root), None


def _module(sheet: Sheet, root: Path, entry: str) -> Path:
    fault = path_fault(entry)
    place = place_inside(root, entry) if fault is None else None
    if place is None:
        fault = fault or "leads out of the pack by a link"
        sheet.error(("entry",), f"the path {shown(entry)} {fault}", _ENTRY_HINT)
        return root
    if not place.is_file():
        what = "is a folder" if place.is_dir() else "does not exist"
        hint = "build the pack (npm install, then npm run build), or take one that is built"
        sheet.error(("entry",), f"the file {shown(entry)} {what}", _ENTRY_HINT if place.is_dir() else hint)
    return place


def _sampling_defaults(sheet: Sheet, data: JsonObject) -> JsonObject:
    found = sheet.mapping(data, "samplingDefaults")
    timeout = found.get("request_timeout_seconds")
    if timeout is not None and not _is_time(timeout):
        place = ("samplingDefaults", "request_timeout_seconds")
        sheet.error(place, f"{shown(timeout)} is no time", "write a number of seconds above 0")
    return found


def _is_time(value: JsonValue) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= _LONGEST_REQUEST_S
