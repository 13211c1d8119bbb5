"""Pages in Chromium or Chrome, with the requests that they send and the messages that they log."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from engines import missing

__all__ = ["Opened", "axe_faults", "chromium"]

_READY = "html[data-ready]"


@dataclass
class Opened:
    """A page in the browser, and all that it has asked for and said."""

    page: Any
    requests: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)

    def go(self, file: Path | str, address: str = "", *, ready: bool = True) -> Any:
        """Open a file, or an address of a server, and wait until its table stands."""
        self.page.goto(f"{file.as_uri() if isinstance(file, Path) else file}{address}")
        if ready:
            self.page.wait_for_selector(_READY, state="attached")
        return self.page

    @property
    def outside(self) -> list[str]:
        """Requests for anything but the files themselves."""
        return [url for url in self.requests if not url.startswith("file:")]


@contextmanager
def chromium() -> Iterator[Any]:
    """Yield the browser; the test is skipped where there is none."""
    sync_api = pytest.importorskip("playwright.sync_api") if _has_playwright() else None
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if sync_api is None or path is None:
        missing("the page's tests need Playwright (pip) and Chromium (apt-get install chromium)")
    with sync_api.sync_playwright() as playwright:
        found = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-gpu", "--disable-software-rasterizer"]
        )
        yield found
        found.close()


def _has_playwright() -> bool:
    try:
        import playwright  # noqa: F401
    except ImportError:
        return False
    return True


def axe_faults(page: Any) -> list[tuple[str, list[str]]]:
    """Return what axe finds in a page, in light and dark; its context bypasses the page's own rules."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    found = axe.Axe().run(page).response["violations"]
    page.emulate_media(color_scheme="dark")  # only colours differ in it
    found += axe.Axe().run(page, options={"runOnly": ["color-contrast"]}).response["violations"]
    page.emulate_media(color_scheme="light")
    return [(item["id"], [node["html"][:200] for node in item["nodes"][:3]]) for item in found]
