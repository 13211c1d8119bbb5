"""Lines that GitHub Actions turns into annotations of a job and of files in a pull request."""

from __future__ import annotations

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.scrub import excerpt

__all__ = ["MOST_ANNOTATIONS", "Annotation"]

MOST_ANNOTATIONS = 10
"""GitHub shows no more errors of one step."""

_LONGEST = 300
_ESCAPES = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_IN_PROPERTIES = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A", ":": "%3A", ",": "%2C"})


@dataclass(frozen=True, slots=True)
class Annotation:
    """An error that is shown beside a job, and beside a file where it has one.

    Args:
        title: Short.
        message: A sentence.
        path: Relative to the repository's folder; empty for none.
        line: From 1.
    """

    title: str
    message: str
    path: str = ""
    line: int = 1

    def command(self) -> str:
        """Return the line that says it. It counts only where it stands at the start of a line of its own.

        Source: https://docs.github.com/actions/reference/workflow-commands-for-github-actions
        """
        place = f"file={self.path.translate(_IN_PROPERTIES)},line={self.line}," if self.path else ""
        title = excerpt(self.title, _LONGEST).translate(_IN_PROPERTIES)
        return f"::error {place}title={title}::{excerpt(self.message, _LONGEST).translate(_ESCAPES)}"
