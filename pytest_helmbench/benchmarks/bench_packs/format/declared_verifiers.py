"""The verifiers that a Bench Pack's manifest declares."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

from pytest_helmbench.benchmarks.bench_packs.bench_pack import VerifierDefault, VerifierSpec
from pytest_helmbench.benchmarks.bench_packs.format.pack_folder import path_fault, place_inside
from pytest_helmbench.benchmarks.bench_packs.format.sheet import Sheet, shown
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.files.source import listed
from pytest_helmbench.files.yaml_text import Place

__all__ = ["read_verifiers"]

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
