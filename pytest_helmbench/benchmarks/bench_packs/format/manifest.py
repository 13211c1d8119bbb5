"""The manifest of a Bench Pack (`benchlocal.pack.json`), checked against Bench Protocol v1, and the pack's files."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from pytest_helmbench.benchmarks.bench_packs.bench_pack import (
    BenchPackManifest,
    VerifierDefault,
    VerifierSpec,
)
from pytest_helmbench.benchmarks.bench_packs.places import MANIFEST
from pytest_helmbench.core.codes import image_fault
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.problem import Problem, UnreadableBenchmarkError
from pytest_helmbench.core.whole_file import content_digest
from pytest_helmbench.files.field_values import named
from pytest_helmbench.files.source import Fault, Findings, Reader
from pytest_helmbench.files.strict_json import a_mapping, a_text, a_whole_number, texts
from pytest_helmbench.files.validation import shipped_schema, validate
from pytest_helmbench.files.yaml_text import Document, Place, label, parse_json

BENCH_PACK_SCHEMA = shipped_schema("bench_pack", __name__)
HOST_VERSION = (0, 3, 0)
"""The release of the desktop app whose interface we offer."""
HOST_FEATURES = ("inferenceEndpoints", "dockerInferenceEndpoints")

_OURS = f"this host offers what {'.'.join(map(str, HOST_VERSION))} does"
_NUMBER = r"([0-9]{1,9})"
# A preview counts as its release: of two bounds that differ in this alone a release meets both or neither.
_VERSION = re.compile(rf"v?{_NUMBER}(?:\.{_NUMBER})?(?:\.{_NUMBER})?(?:[-+][0-9A-Za-z.+-]+)?")
_WEB = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_DRIVE = re.compile(r"[A-Za-z]:")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_DESCRIBED = {  # the key of each way to run a verifier, and where its URL stands
    VerifierDefault.DOCKER: ("docker", ""),
    VerifierDefault.CUSTOM_URL: ("customUrl", "defaultUrl"),
    VerifierDefault.CLOUD: ("cloud", "baseUrl"),
}
_NOT_OF_THE_PACK = frozenset({".git", "node_modules", "__pycache__", ".pytest_cache", ".helmbench"})
_RESULTS = "helmbench.db"


def load_manifest(root: Path) -> BenchPackManifest:
    """Read the manifest of a Bench Pack and hash the pack.

    The manifest's `obstacle` names what keeps a host like us from running the pack; it is not an error.

    Raises:
        UnreadableBenchmarkError: With everything that is wrong with the manifest, or a link that leads out of the
            pack: its code may read its own folder alone.

    Source:
        Bench Packs, section 1.
    """
    path = root / MANIFEST
    reader = Reader(Findings(), root)
    text = reader.text(path)
    document = Document(None) if text is None else parse_json(text)
    faults = [] if text is None else validate(document, BENCH_PACK_SCHEMA)
    data = document.mapping()
    module, page = _entry(root, document, faults)
    verifiers = _verifiers(root, document, faults)
    reader.findings.add(path, *sorted(faults, key=lambda fault: fault.line or 0))
    problems = reader.findings.problems or [
        Problem(link, None, "a link that leads out of the Bench Pack", "put the file itself there")
        for link in _links_out(root)
    ]
    if problems:
        raise UnreadableBenchmarkError(tuple(problems))
    return BenchPackManifest(
        root=root,
        path=path,
        id=str(data["id"]),
        name=str(data["name"]),
        version=str(data["version"]),
        description=a_text(data.get("description")) or "",
        entry=module,
        sampling_defaults=a_mapping(data.get("samplingDefaults")),
        verifiers=verifiers,
        obstacle=page or _unmet(a_mapping(data.get("requirements"))),
        hash=_content_hash(root),
        measures_speed=data.get("measures") == "speed",
        most_at_once=a_whole_number(data.get("concurrency")),
    )


def _entry(root: Path, document: Document, faults: list[Fault]) -> tuple[Path, str | None]:
    """Return the module, or the folder and why there is none to run."""
    entry = a_text(document.mapping().get("entry")) or ""
    if document.mapping().get("type") == "web" or _WEB.match(entry):
        return root, f"it is a page on the web ({named(entry)}), which only the desktop app can show"
    return _place(root, document, ("entry",), entry, faults) if entry.strip() else root, None


def _unmet(asked: JsonObject) -> str | None:
    """Return in a sentence which requirement of a manifest we do not meet; None when we meet all."""
    bounds = a_mapping(asked.get("benchlocal"))
    lowest, beyond = (
        (a_text(bounds.get(key)) or "").strip() for key in ("minVersion", "maxVersionExclusive")
    )
    for text in filter(None, (lowest, beyond)):
        if _VERSION.fullmatch(text) is None:
            return f"it requires BenchLocal {named(text)}, which is not a version such as '0.3.0'"
    if lowest and _version(lowest) > HOST_VERSION:
        return f"it requires BenchLocal {lowest} or newer; {_OURS}"
    if beyond and _version(beyond) <= HOST_VERSION:
        return f"it requires a BenchLocal older than {beyond}; {_OURS}"
    features = map(str.strip, texts(asked.get("hostFeatures")))
    absent = [named(feature) for feature in features if feature and feature not in HOST_FEATURES]
    if not absent:
        return None
    return f"it requires {', '.join(absent)} of its host, which offers {' and '.join(HOST_FEATURES)}"


def _version(text: str) -> tuple[int, ...]:
    match = _VERSION.fullmatch(text)
    return tuple(int(part or 0) for part in match.groups()) if match else ()


def _place(root: Path, document: Document, where: Place, path: str, faults: list[Fault]) -> Path:
    """Return what a path of the manifest leads to; file why it leads to no file or folder of the pack.

    Args:
        where: The path stands; `entry` names a file, anything else a folder.
    """
    place = root / os.path.normpath(path)
    is_module = where == ("entry",)
    wrong, hint = "", f"name a {'module' if is_module else 'folder'} of the pack, relative to this file"
    if "\\" in path or path.startswith("/") or _DRIVE.match(path) or _CONTROL.search(path):
        wrong = "is not a relative path with plain slashes"
    elif not _is_inside(root, place):
        wrong = "leads out of the pack"
    elif is_module and place.is_dir():
        wrong = "is a folder"
    elif is_module and not place.is_file():
        wrong, hint = (
            "does not exist",
            "build the pack (npm install, then npm run build), or take one that is built",
        )
    if wrong:
        faults.append(Fault(document.line(*where), f"{label(where)}: {named(path)} {wrong}", hint))
        return root
    return place


def _is_inside(root: Path, place: Path) -> bool:
    try:
        return place.resolve().is_relative_to(root.resolve())
    except (OSError, RuntimeError, ValueError):  # links that lead to each other; a name that no file can have
        return False


def _verifiers(root: Path, document: Document, faults: list[Fault]) -> tuple[VerifierSpec, ...]:
    """Return what the manifest declares as `verifiers`, else by the older name `sidecars`."""
    data = document.mapping()
    key = "sidecars" if data.get("verifiers") is None else "verifiers"
    declared = data.get(key)
    found: dict[str, VerifierSpec] = {}
    for number, entry in enumerate(declared if isinstance(declared, list) else ()):
        spec = _verifier(root, document, (key, number), faults)
        if spec.id in found:
            where = (key, number, "id")
            message = f"{label(where)}: {named(spec.id)} is the id of another verifier"
            faults.append(Fault(document.line(*where), message, "rename one of them"))
        elif isinstance(entry, dict):
            found[spec.id] = spec
    return tuple(found.values())


def _verifier(root: Path, document: Document, place: Place, faults: list[Fault]) -> VerifierSpec:
    key, number = place
    declared = document.mapping()[str(key)]
    entry = a_mapping(declared[int(number)] if isinstance(declared, list) else None)
    described = [mode for mode, (name, _) in _DESCRIBED.items() if entry.get(name) is not None]
    stated = entry.get("defaultMode")
    known = stated if stated in _DESCRIBED else next(iter(described), VerifierDefault.CUSTOM_URL)
    mode = VerifierDefault(str(known))
    container = a_mapping(entry.get("docker"))
    context = a_text(container.get("buildContext"))
    # The health check of the default mode, else any other; a path may lack its slash.
    paths = [
        a_text(a_mapping(entry.get(_DESCRIBED[one][0])).get("healthcheckPath")) for one in (mode, *described)
    ]
    health = next(filter(None, paths), "")
    block, url = _DESCRIBED[mode]
    port = container.get("listenPort")
    if port is None:
        port = container.get("containerPort")
    if container and port is None:
        where = (*place, "docker", "listenPort")
        hint = "name the port that the verifier listens on inside of its container"
        faults.append(Fault(document.line(*where), f"{label(where[:-1])} has no 'listenPort'", hint))
    folder, image = (*place, "docker", "buildContext"), a_text(container.get("image")) or ""
    no_image = image_fault(image) if image else ""
    if no_image:
        where = (*place, "docker", "image")
        hint = "write name, name:tag or name@digest"
        faults.append(Fault(document.line(*where), f"{label(where)}: {no_image}", hint))
    return VerifierSpec(
        id=a_text(entry.get("id")) or "",
        required=entry.get("required") is not False,
        default_mode=mode,
        url=a_text(a_mapping(entry.get(block)).get(url)) or "",
        image=image,
        build_context=_place(root, document, folder, context, faults) if context else None,
        listen_port=a_whole_number(port),
        health_path=f"/{health.removeprefix('/')}" if health else "",
    )


def _links_out(root: Path) -> Iterator[Path]:
    """Yield the links of a pack that lead out of it: who may read the pack could read what is there."""
    for folder, folders, names in os.walk(root):  # does not follow links
        for path in (Path(folder, name) for name in (*folders, *names)):
            if path.is_symlink() and path.exists() and not _is_inside(root, path):
                yield path


def _content_hash(root: Path) -> str:
    """Return SHA-256 (hex) over the sorted relative names and contents of all files of a pack.

    Left out are `.git`, `node_modules`, and what runs leave behind: caches, and results where pytest was started
    in the pack. The target of a link counts as written; only the name counts of anything that cannot be read.
    """
    digest = hashlib.sha256()
    found = {os.fsencode(path.relative_to(root).as_posix()): path for path in _files(root)}
    for name in sorted(found):
        digest.update(b"%d:" % len(name) + name + content_digest(found[name]))
    return digest.hexdigest()


def _files(root: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(root):  # does not follow links
        linked = [name for name in folders if Path(folder, name).is_symlink()]
        folders[:] = [name for name in folders if name not in _NOT_OF_THE_PACK]
        for name in (*names, *linked):
            if name not in _NOT_OF_THE_PACK and not name.startswith(_RESULTS):
                yield Path(folder, name)
