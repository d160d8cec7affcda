from __future__ import annotations

import ast
import io
import tarfile
from pathlib import Path

import pytest
from unpacking import UnsafeArchive, unpacked

ROOT = Path(__file__).parents[1]
NEEDS_3_11_4 = {"extract", "extractall", "unpack_archive"}  # of their `filter`


def packed(archive: Path, *members: tarfile.TarInfo) -> Path:
    with tarfile.open(archive, "w") as tar:
        for member in members:
            member.size = 3 if member.isreg() else 0
            tar.addfile(member, io.BytesIO(b"abc"))
    return archive


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname = kind, link
    return made


def test_files_and_directories_are_unpacked(tmp_path: Path) -> None:
    archive = packed(
        tmp_path / "a.tar",
        member("./a/b.txt"),
        member("a/empty", tarfile.DIRTYPE),
    )

    target = unpacked(archive, tmp_path / "out")

    assert (target / "a" / "b.txt").read_bytes() == b"abc"
    assert (target / "a" / "empty").is_dir()


def test_a_python_without_filters_can_unpack(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in NEEDS_3_11_4 & set(vars(tarfile.TarFile)):
        monkeypatch.delattr(tarfile.TarFile, name)

    golden = ROOT / "tests" / "golden" / "rocketmq-5.3.0-clean.tar.xz"

    assert (unpacked(golden, tmp_path) / "manifest.jsonl").stat().st_size > 0


@pytest.mark.parametrize(
    "unsafe",
    [
        member("../out.txt"),
        member("/tmp/out.txt"),
        member("a/../../out.txt"),
        member("link", tarfile.SYMTYPE, "/etc/passwd"),
        member("link", tarfile.LNKTYPE, "../out.txt"),
        member("device", tarfile.CHRTYPE),
        member("pipe", tarfile.FIFOTYPE),
    ],
    ids=lambda member: f"{member.name} {member.type.decode()}",
)
def test_what_leads_out_or_is_no_file_is_refused(
    tmp_path: Path, unsafe: tarfile.TarInfo
) -> None:
    archive = packed(tmp_path / "a.tar", unsafe)

    with pytest.raises(UnsafeArchive, match=r"a\.tar: "):
        unpacked(archive, tmp_path / "out")

    assert not (tmp_path / "out.txt").exists()
    assert not (tmp_path / "out").exists()


def test_nobody_asks_for_what_3_11_4_brought() -> None:
    asked = [
        f"{path.relative_to(ROOT)}:{call.lineno}"
        for room in ("engine", "models", "scenarios", "harness", "reports", "tests")
        for path in sorted((ROOT / room).rglob("*.py"))
        if any(name in (text := path.read_text("utf-8")) for name in NEEDS_3_11_4)
        for call in ast.walk(ast.parse(text))
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in NEEDS_3_11_4
    ]

    assert asked == []
