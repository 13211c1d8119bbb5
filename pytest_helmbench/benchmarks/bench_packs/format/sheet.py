"""The values of a Bench Pack's manifest with their lines and faults, and the verifiers that it declares."""

from __future__ import annotations

import json
import re
from dataclasses import field
from pathlib import Path
from urllib.parse import urlsplit

from pytest_helmbench.benchmarks.bench_packs.bench_pack import VerifierDefault, VerifierSpec
from pytest_helmbench.benchmarks.bench_packs.format.pack_folder import path_fault, place_inside
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.files.field_values import kind_of, named
from pytest_helmbench.files.source import Fault, listed
from pytest_helmbench.files.yaml_text import Document, Place


def shown(value: object) -> str:
    """Return a JSON value as messages name it, cut where it is long."""
    if isinstance(value, str):
        return named(value)
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


@dataclass(slots=True)
class Sheet:
    """Reads values and files what is wrong under the line at fault.

    What is absent or null is not there; neither is what was filed as wrong.

    Args:
        document: The manifest.
    """

    document: Document
    faults: list[Fault] = field(default_factory=list)

    def error(self, place: Place, message: str, hint: str = "") -> None:
        """File a problem: `where: message`."""
        self._file(place, _path(place), message, hint)

    def warn(self, place: Place, message: str, hint: str = "") -> None:
        """File what is odd, but usable."""
        self._file(place, _path(place), message, hint, usable=True)

    def missing(self, place: Place, hint: str) -> None:
        """File that a key is not there, or null, under the line of what should hold it."""
        self._file(place, _path(place[:-1]), f"there is no '{place[-1]}'", hint)

    def text(self, data: JsonObject, *place: str | int) -> str:
        """Return the text at a key; empty for none."""
        value = data.get(str(place[-1]))
        if value is None:
            return ""
        if not isinstance(value, str):
            self._wrong(place, value, "not text")
            return ""
        if not value.strip():
            self.error(place, "this is blank text")
            return ""
        return value

    def mapping(self, data: JsonObject, *place: str | int) -> JsonObject:
        """Return the object at a key; empty for none."""
        value = data.get(str(place[-1]))
        if value is None or isinstance(value, dict):
            return value or {}
        self._wrong(place, value, "not an object")
        return {}

    def listed(self, data: JsonObject, *place: str | int) -> list[JsonValue]:
        """Return the list at a key; empty for none."""
        value = data.get(str(place[-1]))
        if value is None or isinstance(value, list):
            return value or []
        self._wrong(place, value, "not a list")
        return []

    def texts(self, data: JsonObject, *place: str | int) -> tuple[str, ...]:
        """Return the list of texts at a key, trimmed and without blank ones; empty for none."""
        found: list[str] = []
        for number, value in enumerate(self.listed(data, *place)):
            if isinstance(value, str):
                found.append(value.strip())
            else:
                self._wrong((*place, number), value, "not text")
        return tuple(text for text in found if text)

    def _file(self, place: Place, where: str, message: str, hint: str, *, usable: bool = False) -> None:
        line = self.document.line(*place) or 1
        self.faults.append(Fault(line, f"{where or 'manifest'}: {message}", hint, usable))

    def _wrong(self, place: Place, value: object, wanted: str) -> None:
        shows = isinstance(value, bool | int | float | str)
        what = f"{shown(value)} is {kind_of(value)}" if shows else f"this is {kind_of(value)}"
        self.error(place, f"{what}, {wanted}")


def _path(place: Place) -> str:
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)
    return text.removeprefix(".")


_MODES = tuple(mode.value for mode in VerifierDefault)
_HEALTH = re.compile(r"/(?![/\\])[\x21-\x7e]*\Z|/\Z")
_SPACE = re.compile(r"[\x00-\x20\x7f-\x9f\ud800-\udfff]")
_PORT_KEYS = ("listenPort", "containerPort")  # the newer name first
_DESCRIBED = {"docker": "docker", "custom_url": "customUrl", "cloud": "cloud"}


def read_verifiers(sheet: Sheet, root: Path, data: JsonObject) -> tuple[VerifierSpec, ...]:
    """Return what the manifest declares as `verifiers`, else by the older name `sidecars`.

    Args:
        sheet: Takes what is wrong with them.
        root: The pack.
        data: The manifest.
    """
    key = "sidecars" if data.get("verifiers") is None else "verifiers"
    found: dict[str, VerifierSpec] = {}
    for number, entry in enumerate(sheet.listed(data, key)):
        place: Place = (key, number)
        if not isinstance(entry, dict):
            sheet.error(place, f"{shown(entry)} is not an object")
            continue
        spec = _verifier(sheet, root, place, entry)
        if spec.id in found:
            sheet.error(
                (*place, "id"), f"{shown(spec.id)} is the id of another verifier", "rename one of them"
            )
        elif spec.id:
            found[spec.id] = spec
    return tuple(found.values())


def _verifier(sheet: Sheet, root: Path, place: Place, entry: JsonObject) -> VerifierSpec:
    identity = sheet.text(entry, *place, "id")
    if entry.get("id") is None:
        sheet.missing((*place, "id"), "a pack asks for its verifiers by their ids")
    transport = sheet.text(entry, *place, "transport") or "http"
    if transport != "http":
        sheet.error((*place, "transport"), f"{shown(transport)} is not known", "the only transport is 'http'")
    required = entry.get("required", True)
    if not isinstance(required, bool):
        sheet.error((*place, "required"), f"{shown(required)} is not true or false")
    container = sheet.mapping(entry, *place, "docker")
    cloud = sheet.mapping(entry, *place, "cloud")
    custom = sheet.mapping(entry, *place, "customUrl")
    mode = _mode(sheet, place, entry)
    return VerifierSpec(
        id=identity,
        required=required is not False,
        default_mode=mode,
        cloud_url=_url(sheet, cloud, (*place, "cloud", "baseUrl")),
        custom_url=_url(sheet, custom, (*place, "customUrl", "defaultUrl")),
        image=sheet.text(container, *place, "docker", "image"),
        build_context=_build_context(sheet, root, place, container),
        listen_port=_port(sheet, place, container),
        health_path=_health_path(sheet, place, entry, mode),
        description=sheet.text(entry, *place, "description"),
    )


def _mode(sheet: Sheet, place: Place, entry: JsonObject) -> VerifierDefault:
    stated = sheet.text(entry, *place, "defaultMode")
    if stated in _MODES:
        return VerifierDefault(stated)
    if stated:
        hint = listed(stated, _MODES, "known modes")
        sheet.error((*place, "defaultMode"), f"{shown(stated)} is not known", hint)
    described = (mode for mode, key in _DESCRIBED.items() if entry.get(key) is not None)
    return VerifierDefault(next(described, VerifierDefault.CUSTOM_URL))


def _build_context(sheet: Sheet, root: Path, place: Place, container: JsonObject) -> Path | None:
    where = (*place, "docker", "buildContext")
    path = sheet.text(container, *where)
    if not path:
        return None
    fault = path_fault(path)
    found = place_inside(root, path) if fault is None else None
    if found is None:
        message = f"the path {shown(path)} {fault or 'leads out of the pack by a link'}"
        sheet.error(where, message, "name a folder of the pack, such as './verification'")
    return found


def _port(sheet: Sheet, place: Place, container: JsonObject) -> int | None:
    key = next((key for key in _PORT_KEYS if container.get(key) is not None), None)
    if key is None:
        if container:
            hint = "name the port that the verifier listens on inside of its container"
            sheet.missing((*place, "docker", _PORT_KEYS[0]), hint)
        return None
    port = container[key]
    if type(port) is int and 1 <= port <= 65_535:
        return port
    sheet.error((*place, "docker", key), f"{shown(port)} is no port", "write a whole number from 1 to 65535")
    return None


def _url(sheet: Sheet, data: JsonObject, place: Place) -> str:
    url = sheet.text(data, *place)
    if url and not _is_web_address(url):
        hint = "write an address such as 'http://127.0.0.1:4010'"
        sheet.error(place, f"{shown(url)} is no HTTP address", hint)
        return ""
    return url


def _is_web_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and _port_is_sound(parts.port, url)
    except ValueError:  # such as a port of letters
        return False


def _port_is_sound(port: int | None, url: str) -> bool:
    return port != 0 and _SPACE.search(url) is None


def _health_path(sheet: Sheet, place: Place, entry: JsonObject, mode: VerifierDefault) -> str:
    """Return the path that the default mode names, else any other; empty where none does."""
    keys = sorted(_DESCRIBED, key=lambda name: name != mode)
    found = ""
    for key in (_DESCRIBED[name] for name in keys):
        block = entry.get(key)
        where = (*place, key, "healthcheckPath")
        path = sheet.text(block, *where) if isinstance(block, dict) else ""
        if not path:
            continue
        path = path if path.startswith("/") else f"/{path}"
        if _HEALTH.match(path):
            found = found or path
        else:
            sheet.error(where, f"{shown(path)} is no path of a URL", "write a path such as '/health'")
    return found
