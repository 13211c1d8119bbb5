"""The surroundings of a row in its pack: the environment that holds for it, and the files that it names."""

from __future__ import annotations

from pytest_helmbench.benchmarks.packs.format.pack_files import Found, PackFiles
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.files.field_values import RowFaults, named

__all__ = ["RowPlace", "check_found"]


@dataclass(frozen=True, slots=True)
class RowPlace:
    """A row's surroundings in its pack.

    Args:
        environment: The manifest's with the row's laid over it, as written.
        files: Of the pack.
        assets: Paths of the row's public files, below the public root.
    """

    environment: JsonObject
    files: PackFiles
    assets: tuple[str, ...]

    @property
    def has_image(self) -> bool:
        """Whether the environment names a container image."""
        return isinstance(self.environment.get("image"), str)


def check_found(
    faults: RowFaults, where: str, files: PackFiles, found: Found, *, hidden: bool = False
) -> None:
    """File why a file that a row names cannot be used; its name too unless that is hidden."""
    if found.fault:
        relative = found.path.relative_to(files.root).as_posix()
        shown = "the file that it names" if hidden else named(relative)
        faults.error(where, f"{shown} {found.fault}", found.hint)
