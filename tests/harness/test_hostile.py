"""fsck on directories made to break it: it answers, and changes nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from golden_store import golden
from hostile import TEXTS, answer, fingerprint, made

from crashmq.harness.fsck.fsck import fsck
from crashmq.models.laws.file_laws import FILE_LAWS
from crashmq.models.laws.judged import Judged
from crashmq.models.laws.registry import Law
from crashmq.models.verdict import Violation

PIECES = 20
A_PIECE = 15
WORDS = ("CLEAN", "DAMAGED", "NOT A STORE", "FOREIGN LAYOUT")


@pytest.mark.slow
@pytest.mark.parametrize("piece", range(PIECES))
def test_whatever_lies_there_is_answered_and_left_as_it_is(
    piece: int, tmp_path: Path
) -> None:
    for number in range(piece * A_PIECE, (piece + 1) * A_PIECE):
        root = made(number, tmp_path)
        before = fingerprint(root)

        assert answer(root).startswith(WORDS), number

        assert fingerprint(root) == before, number
        shutil.rmtree(root)


@pytest.mark.slow
def test_as_many_as_one_likes_are_tried_by_a_command(tmp_path: Path) -> None:
    script = Path(__file__).parent / "hostile.py"
    done = subprocess.run(
        [sys.executable, script, "7000", "5"],
        capture_output=True,
        text=True,
        env=os.environ | {"TMPDIR": str(tmp_path)},
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "5 directories, 0 wrong" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
@pytest.mark.parametrize("name", ["topics.json", "consumerOffset.json"])
def test_odd_text_in_a_side_file_is_no_table_and_no_traceback(
    name: str, text: bytes, tmp_path: Path
) -> None:
    root = golden("rolled-clean").unpack(tmp_path / "store")
    (root / "config").mkdir()
    (root / "config" / name).write_bytes(text)

    assert answer(root).startswith(WORDS)


@pytest.mark.parametrize("name", ["deletedTopics", "config/topics.json", "checkpoint"])
def test_a_side_file_of_a_gibibyte_is_read_up_to_a_bound(
    name: str, tmp_path: Path
) -> None:
    root = golden("rolled-clean").unpack(tmp_path / "store")
    (root / "config").mkdir()
    (root / name).touch()
    os.truncate(root / name, 1 << 30)

    report = fsck(root)

    assert any("of them are read" in note for note in report.notes)
    assert any(finding.law == "DIR-1" for finding in report.violations)


def test_a_law_that_fails_itself_does_not_end_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = golden("rolled-clean").unpack(tmp_path / "store")

    def fails(judged: Judged) -> list[Violation]:
        raise ZeroDivisionError(judged.clean)

    law = FILE_LAWS[5]
    broken = Law(law.id, law.sentence, law.catalogue, fails, law.error)  # type: ignore[arg-type]
    others = (*FILE_LAWS[:5], broken, *FILE_LAWS[6:])
    monkeypatch.setattr("crashmq.harness.fsck.findings.FILE_LAWS", others)

    report = fsck(root)

    (finding,) = report.violations
    assert finding.law == law.id
    assert "this law failed itself: ZeroDivisionError" in finding.seen
    assert [cause.remedy for cause in report.causes] == ["report"]
