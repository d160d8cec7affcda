"""What fsck says beside breaches: what a start will leave, and no flood of it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from golden_store import golden

from crashmq.harness.fsck.fsck import FsckReport, report_on
from crashmq.harness.fsck.next_start import some_of

GoldenWriter = Callable[..., "subprocess.CompletedProcess[str]"]
FIRST = "commitlog/" + "0" * 20 + " byte 0 (phy_offset 0)"
SIZES = ("--log-file-size", "65536", "--queue-file-size", "6000")
ENDS = {
    "orderly": (
        [],
        f"leaves 1200 records without a unit, the first of them at {FIRST}",
    ),
    "killed": (["abort"], "dispatches to "),
}


def without_queues(*added: str) -> dict[str, bytes]:
    """The store as it is left by who takes its queues away, and ``added`` put there."""
    files = {
        path: data
        for path, data in golden("clean").files.items()
        if not path.startswith("consumequeue/")
    }
    if "abort" in added:
        del files["checkpoint"]
    return files | dict.fromkeys(added, b"")


def judged(files: dict[str, bytes]) -> FsckReport:
    return report_on("store", files, ())


@pytest.mark.parametrize("end", ENDS)
def test_of_queues_taken_away_a_start_makes_what_it_replays(end: str) -> None:
    added, sentence = ENDS[end]

    told = judged(without_queues(*added)).next_start

    assert told
    assert all(line.startswith(sentence) for line in told)


@pytest.mark.slow
@pytest.mark.rocketmq
@pytest.mark.parametrize(("end", "served"), [("orderly", 0), ("killed", 1200)])
def test_rocketmq_serves_what_fsck_says_it_dispatches(
    golden_writer: GoldenWriter, tmp_path: Path, end: str, served: int
) -> None:
    for path, data in without_queues(*ENDS[end][0]).items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(data)

    done = golden_writer("read", tmp_path, *SIZES)

    assert len(done.stdout.splitlines()) == served, done


def test_units_that_are_missing_are_told_once() -> None:
    found = judged(without_queues()).violations

    assert len({breach.where for breach in found}) == len(found) == 7
    assert {breach.law for breach in found} == {"CQ-4"}


def test_queues_that_rocksdb_keeps_are_not_judged() -> None:
    kept = ("CURRENT", "MANIFEST-000005", "OPTIONS-000007", "000011.sst", "LOG.old.1")

    report = judged(without_queues(*(f"consumequeue/{name}" for name in kept)))

    assert report.is_clean
    assert report.notes == (
        "consumequeue: RocksDB keeps the queues, and they are not judged.",
    )


def test_of_many_sentences_the_first_are_told_and_the_others_counted() -> None:
    told = [*some_of((f"{n}." for n in range(5_020)), "such files")]

    assert told[:2] == ["0.", "1."]
    assert told[20:] == ["... and 5,000 such files more."]
    assert [*some_of(["one."], "such files")] == ["one."]
