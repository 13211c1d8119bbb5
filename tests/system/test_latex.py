"""The leaderboard in LaTeX, compiled where pdfLaTeX is installed: hostile names show as they are and do nothing."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from attack_strings import ATTACKS
from board_runs import add_run
from commands import captured

pytestmark = pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")

_LETTERS = "".join(one for one in map(chr, range(0xA1, 0x180)) if one.isalpha())
_NAMES = {
    "*": "*",
    "[5pt]": "[5pt]",
    r"\\[5pt]": r"\\[5pt]",
    r"\input{/etc/passwd}": r"\input{/etc/passwd}",
    r"\end{tabular}\end{document}": r"\end{tabular}\end{document}",
    "100%$&#_": "100%$&#_",
    "漢": "(U+6F22)",
    _LETTERS: "ÀÁÂÃÄÅ",
    "a--b,,c": "a--b,,c",
    ATTACKS[0]: "<script>window.PWN=1</script>",
}
# A page that is wide enough for every table.
_DOCUMENT = r"""\documentclass{article}
%s
\pdfpagewidth=150in \pdfpageheight=50in \textheight=40in
\begin{document}
\input{board.tex}
\end{document}
"""


@pytest.mark.parametrize("encoding", ["", r"\usepackage[T1]{fontenc}"])
def test_hostile_names_compile_and_show_as_they_are(
    encoding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for number, name in enumerate(_NAMES):
        add_run(tmp_path / "helmbench.db", name, [True] * 8, benchmark=("quiz", r"\b & 1 %")[number % 2])
    assert captured(capsys, "leaderboard", "--latex", "-o", "board.tex")[0] == 0
    (tmp_path / "doc.tex").write_text(_DOCUMENT % encoding, encoding="utf-8")

    made = subprocess.run(
        ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "doc.tex"],
        capture_output=True,
        check=False,
    )

    assert made.returncode == 0, made.stdout.decode("utf-8", "replace")[-2000:]
    assert "Missing character" not in (tmp_path / "doc.log").read_text(encoding="utf-8", errors="replace")
    if encoding and shutil.which("pdftotext"):  # without an encoding LaTeX draws accents and underscores
        shown = subprocess.run(["pdftotext", "doc.pdf", "-"], capture_output=True, check=True).stdout.decode()
        assert [text for text in _NAMES.values() if text not in shown] == []
