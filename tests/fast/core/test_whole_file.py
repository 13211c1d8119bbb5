from __future__ import annotations

from pathlib import Path

import pytest

from pytest_helmbench.core.whole_file import write_atomically


def test_a_report_replaces_a_file_as_a_whole(tmp_path: Path) -> None:
    file, link = tmp_path / "report.html", tmp_path / "link.html"
    file.write_text("old")
    link.symlink_to(file)

    with pytest.raises(UnicodeEncodeError):
        write_atomically(file, "half \ud800")
    assert file.read_text() == "old"
    write_atomically(link, "new\n")

    assert file.read_text() == "new\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.html", "report.html"]
    assert link.is_symlink()
