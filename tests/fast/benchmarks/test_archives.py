"""Archives of benchmarks: what is plain comes out once; what would lead elsewhere, or is too much, is refused whole."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from pytest_helmbench.benchmarks import archives
from pytest_helmbench.benchmarks.archives import unpacked
from pytest_helmbench.benchmarks.places import is_archive
from pytest_helmbench.core.problem import UnreadableBenchmarkError

_MANIFEST = ("package/benchlocal.pack.json", b"{}")


def _archive(path: Path, *members: tuple[str, bytes] | tarfile.TarInfo) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                archive.addfile(member)
            else:
                info = tarfile.TarInfo(member[0])
                info.size = len(member[1])
                archive.addfile(info, io.BytesIO(member[1]))
    return path


def _special(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def test_an_archive_is_unpacked_once_by_its_content(tmp_path: Path) -> None:
    environ = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    path = _archive(tmp_path / "pack.tgz", _MANIFEST, ("package/dist/index.js", b"1"))
    assert is_archive(path)
    assert not is_archive(tmp_path / "other.tgz")

    root = unpacked(path, environ)

    assert root.name == "package"
    assert (root / "dist" / "index.js").read_bytes() == b"1"
    assert unpacked(path.rename(tmp_path / "again.tar.gz"), environ) == root
    assert len(list((tmp_path / "cache" / "helmbench" / "archives").iterdir())) == 1


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ([("../evil", b"")], "the archive names '../evil', which does not lie inside of it"),
        ([("/etc/evil", b"")], "the archive names '/etc/evil', which"),
        ([("a\\..\\evil", b"")], "which does not lie inside of it"),
        ([_special("out", tarfile.SYMTYPE, "/etc")], "the archive holds a link, 'out'"),
        ([_special("out", tarfile.LNKTYPE, "/etc/passwd")], "the archive holds a link, 'out'"),
        ([_special("null", tarfile.CHRTYPE)], "the archive holds what is no file, 'null'"),
        ([_special("pipe", tarfile.FIFOTYPE)], "the archive holds what is no file, 'pipe'"),
        ([("twice", b"1"), ("twice", b"2")], "the archive names 'twice' twice"),
        ([("n" * 300, b"")], "which cannot be written: File name too long"),
        ([(f"f{number}", b"") for number in range(12)], "the archive holds more than 10 files and folders"),
        ([("large", b"0" * 3_000)], "the archive holds more than 2,000 bytes"),
        ([("readme", b"")], "the archive holds no benchmark"),
        ([("other/benchlocal.pack.json", b"{}")], "the archive holds 2 benchmarks"),
    ],
)
def test_what_is_no_plain_benchmark_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    members: Sequence[tuple[str, bytes] | tarfile.TarInfo],
    said: str,
) -> None:
    monkeypatch.setattr(archives, "_MOST_MEMBERS", 10)
    monkeypatch.setattr(archives, "_MOST_BYTES", 2_000)
    manifest = () if "no benchmark" in said else (_MANIFEST,)
    path = _archive(tmp_path / "pack.tgz", *manifest, *members)

    with pytest.raises(UnreadableBenchmarkError) as caught:
        unpacked(path, {"XDG_CACHE_HOME": str(tmp_path / "cache")})

    assert said in str(caught.value)
    assert not [place for place in tmp_path.rglob("*") if "evil" in place.name]


def test_what_is_no_archive_or_a_bomb_of_headers_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "_MOST_BYTES", 2_000)
    monkeypatch.setattr(archives, "_MOST_MEMBERS", 10)
    environ = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    (tmp_path / "pack.tgz").write_bytes(b"no gzip at all")
    long = tarfile.TarInfo("a" * 60_000)  # a header that is read before any member is seen
    for path in (tmp_path / "pack.tgz", _archive(tmp_path / "bomb.tgz", long)):
        with pytest.raises(UnreadableBenchmarkError, match="the archive cannot be unpacked"):
            unpacked(path, environ)


def _headers(kind: bytes, sizes: Sequence[int]) -> bytes:
    """Return members that only say more of the next one, each with that many bytes."""
    blocks = []
    for size in sizes:
        header = tarfile.TarInfo("more")
        header.type, header.size = kind, size
        blocks.append(header.tobuf(tarfile.GNU_FORMAT) + b"a" * size + b"\0" * (-size % 512))
    return b"".join(blocks)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (_headers(tarfile.XHDTYPE, [2**20 + 1]), "a header of it has 1,048,577 bytes"),
        (_headers(tarfile.GNUTYPE_LONGNAME, [2**20 + 1]), "a header of it has 1,048,577 bytes"),
        (_headers(tarfile.GNUTYPE_LONGLINK, [2] * 3_000), "the archive cannot be unpacked"),
        (tarfile.TarInfo("d/" * 65 + "x").tobuf(), "more than 64 folders in each other"),
    ],
)
def test_what_an_archive_says_of_a_file_is_bounded(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "pack.tgz"
    path.write_bytes(gzip.compress(content + b"\0" * 1024, 1))
    with pytest.raises(UnreadableBenchmarkError) as caught:
        unpacked(path, {"XDG_CACHE_HOME": str(tmp_path / "cache")})
    assert said in str(caught.value)


def test_a_long_name_and_a_deep_folder_are_unpacked(tmp_path: Path) -> None:
    deep = f"package/{'d/' * 60}{'x' * 200}"
    root = unpacked(
        _archive(tmp_path / "pack.tgz", _MANIFEST, (deep, b"1")), {"XDG_CACHE_HOME": str(tmp_path)}
    )
    assert (root.parent / deep).read_bytes() == b"1"
