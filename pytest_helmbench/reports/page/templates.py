"""Templates, scripts and style sheets of pages, and the hashes by which a page allows these alone.

The only user of `jinja2`, which escapes whatever stands in a template.
"""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files

from jinja2 import Environment, FunctionLoader, StrictUndefined

__all__ = ["code_hash", "code_of", "plain_environment"]

_ASSETS = files("pytest_helmbench.reports.page") / "assets"


def plain_environment() -> Environment:
    """Return an environment for the templates among the assets: all that stands in them is escaped."""
    return Environment(
        loader=FunctionLoader(_asset),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def code_of(*names: str, leave_out: str = "//") -> str:
    """Return scripts or style sheets as one, without indentation and comments of a line.

    Args:
        names: Among the assets.
        leave_out: End of the lines that this page has no use for.
    """
    lines = (line.strip() for name in names for line in _asset(name).splitlines())
    return "\n".join(
        line for line in lines if line and not line.startswith("//") and not line.endswith(leave_out)
    )


def code_hash(code: str) -> str:
    """Return what a Content-Security-Policy names a script or style sheet by."""
    return f"sha256-{base64.b64encode(hashlib.sha256(code.encode()).digest()).decode('ascii')}"


def _asset(name: str) -> str:
    return (_ASSETS / name).read_text(encoding="utf-8").strip()
