"""What ``fsck`` says of twenty-four damages of an operator's life, of three versions.

The messages that are whole are told by the bytes, and what the next start loses by
RocketMQ itself, started on a copy.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from corpus_features import THREE
from corpus_store import MADE, Real, real_store
from operator_damages import (
    DAMAGES,
    Damage,
    Truth,
    all_queues_gone,
    empty_file_behind,
    last_file_cut_short,
    misforetold,
    newest_file_under_an_older_name,
    nothing,
    page_of_garbage,
    page_of_zeros,
    queue_files_swapped,
    queue_folder_gone,
    queues_of_an_older_copy,
    taken_for_no_damage,
    topic_folder_gone,
    truth_of,
)
from rocketmq import Brokers, Server

from crashmq.harness.fsck.fsck import FsckReport, fsck
from crashmq.harness.fsck.releases import Release

RELEASES: dict[str, Release] = {
    "4.9.8": "4.9",
    "5.3.0": "5.1",
    "5.3.3": "5.3.2",
    "5.5.1": "5.4",
}
NAMES = [f"{version}-{end}" for version in THREE for end in ("plain", "plain-killed")]
NAMES.append("5.3.3-plain")
ALL = [(name, damage) for damage in DAMAGES for name in NAMES]
GATE = len(NAMES) + 1
"""The gate takes each of so many, so that all damages and stores are met."""
REFUSED = -1
STARTED = [page_of_zeros, last_file_cut_short, queue_files_swapped]


def damaged(name: str, damage: Damage, tmp_path: Path) -> tuple[Real, Path]:
    real = real_store(name, tmp_path)
    root = shutil.copytree(real.root, tmp_path / "damaged")
    damage(root)
    return real, root


def check_table(report: FsckReport, truth: Truth) -> None:
    """By queue, what is whole and what is damaged, and the first line."""
    told = {(q.topic, q.queue_id): (q.whole, q.damaged) for q in report.counts.queues}
    assert told == truth.table
    whole, gone = (sum(column) for column in zip(*truth.table.values(), strict=True))
    if not report.is_clean:
        line = f"DAMAGED: {gone} messages unreadable, {whole} whole"
        assert report.verdict == line
    elif lost := report.counts.lost:
        assert report.verdict == f"CLEAN, BUT A START LOSES {lost} MESSAGES"
    else:
        # A crash may have left the newest messages so.
        assert (report.verdict, report.counts.behind_damage) == ("CLEAN", 0)
        assert not gone or not truth.ended


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        pytest.param(
            *one, marks=[pytest.mark.slow] if number % GATE and not MADE else []
        )
        for number, one in enumerate(ALL)
    ],
)
def test_the_table_says_what_is_whole_and_what_is_lost(
    name: str, damage: Damage, tmp_path: Path
) -> None:
    real, root = damaged(name, damage, tmp_path)
    truth = truth_of(real, root)

    report = fsck(root, release=RELEASES[real.version])

    if taken_for_no_damage(damage, ended=name.endswith("plain")):
        told = [one for one in report.counts.queues if one.damaged]
        assert (report.verdict, told) == ("CLEAN", [])
        if damage is topic_folder_gone:
            assert any("payments" in note for note in report.notes)
        return
    check_table(report, truth)
    if damage is nothing:
        assert report.verdict == "CLEAN"


@pytest.mark.parametrize(
    ("name", "damage", "lost"),
    [
        ("5.3.0-plain-killed", newest_file_under_an_older_name, 77),
        ("5.3.0-plain-killed", queue_files_swapped, 27),
        ("5.5.1-plain", page_of_garbage, 0),
        ("5.5.1-plain", queue_folder_gone, 14),
        ("5.5.1-plain", queues_of_an_older_copy, 7),
        ("5.5.1-plain", all_queues_gone, 0),
        ("5.3.3-plain", queue_folder_gone, 14),
        ("5.3.3-plain", queues_of_an_older_copy, 7),
        ("5.3.3-plain", all_queues_gone, 0),
        ("5.3.3-plain-killed", queue_files_swapped, 27),
        ("4.9.8-plain", queue_folder_gone, 13),
        ("4.9.8-plain", empty_file_behind, REFUSED),
        ("5.5.1-plain", empty_file_behind, 0),
    ],
)
def test_so_many_were_lost_when_rocketmq_started(
    name: str, damage: Damage, lost: int, tmp_path: Path
) -> None:
    real, root = damaged(name, damage, tmp_path)

    counts = fsck(root, release=RELEASES[real.version]).counts

    told = REFUSED if counts.rocketmq_refuses else counts.lost_by_rocketmq
    assert told == lost


@pytest.mark.parametrize("version", RELEASES)
def test_the_report_says_which_records_an_orderly_start_dispatches(
    version: str, tmp_path: Path
) -> None:
    real, root = damaged(f"{version}-plain", queues_of_an_older_copy, tmp_path)

    report = fsck(root, release=RELEASES[real.version])

    left = [said for said in report.next_start if said.startswith("leaves ")]
    runs = [said for said in report.next_start if said.startswith("dispatches to ")]
    nothing_is_dispatched = version == "5.3.0"
    assert (runs == []) == nothing_is_dispatched
    assert len(left) == (version != "4.9.8")
    if not nothing_is_dispatched:
        assert all(said.startswith("leaves 1 records") for said in left)
        assert report.counts.lost_by_rocketmq <= len(left) * 7


@pytest.mark.slow
@pytest.mark.rocketmq
@pytest.mark.parametrize("name", NAMES)
def test_the_next_start_of_rocketmq_loses_what_fsck_says(
    name: str, brokers: Brokers, tmp_path: Path
) -> None:
    """All damages with $CRASHMQ_CORPUS; a start of RocketMQ takes some seconds."""
    wrong: dict[str, object] = {}
    for damage in DAMAGES if MADE else STARTED:
        home = tmp_path / damage.__name__
        home.mkdir()
        real, root = damaged(name, damage, home)
        if taken_for_no_damage(damage, ended=name.endswith("plain")):
            continue
        counts = fsck(root, release=RELEASES[real.version]).counts
        (home / "started").mkdir()
        server = Server(real.version, brokers)
        manifest = server.served(root, real.settings, home / "started")
        if counts.rocketmq_refuses or manifest["outcome"] != "served":
            if counts.rocketmq_refuses != (manifest["outcome"] == "refused"):
                wrong[damage.__name__] = manifest["outcome"], counts.rocketmq_refuses
            continue
        truth = truth_of(real, root)
        if differing := misforetold(manifest, truth, real, counts.queues):
            wrong[damage.__name__] = differing
    assert wrong == {}
