"""What fsck says the next start would do, held against those who start."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from fsck_archive import archive
from fsck_breaking import Broken
from fsck_damages import broken_copies
from test_fsck_power import judged

from crashmq.harness.fsck.next_start import end_after_start
from crashmq.models.files.store_image import read_store

GoldenWriter = Callable[..., "subprocess.CompletedProcess[str]"]

# One of each way a start can end; all kinds together take minutes of JVM starts.
SAMPLE = (
    *("record: a bit of size", "record: a bit of body", "record: a bit of phy_offset"),
    *("log: a record zeroed", "log: a filler's size", "log: a file emptied"),
    *("log: a file renamed by one", "log: a file renamed to a word"),
    *("queue: a file cut", "queue: a file renamed to a word"),
)


def sample(name: str) -> dict[str, Broken]:
    copies = broken_copies(archive(name), 1)
    return {kind: broken for kind, broken in copies if kind[:-3] in SAMPLE}


def loaded_by_rocketmq(writer: GoldenWriter, root: Path, name: str) -> int | None:
    """Where the log ends after RocketMQ has loaded it; None if it refuses."""
    store = archive(name)
    log, queue = str(store.log_file_size), str(store.queue_file_size)
    sizes = ("--log-file-size", log, "--queue-file-size", queue)
    done = writer("load", root, *sizes)
    if done.returncode:
        assert "refused" in done.stderr
        return None
    end: int = json.loads(done.stdout)["log_bytes"]
    return end


@pytest.mark.slow
@pytest.mark.rocketmq
@pytest.mark.parametrize("kind", SAMPLE)
@pytest.mark.parametrize("name", ["rolled-clean", "rolled-killed"])
def test_rocketmq_cuts_and_refuses_what_fsck_says(
    golden_writer: GoldenWriter, tmp_path: Path, name: str, kind: str
) -> None:
    broken = sample(name)[f"{kind} #0"]
    for path, data in broken.files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(data)

    assert loaded_by_rocketmq(golden_writer, tmp_path, name) == end_after_start(
        read_store(broken.files)
    )


@pytest.mark.slow
def test_the_sample_cuts_passes_over_and_refuses() -> None:
    told = {
        sentence.split(" ")[0].rstrip(":")
        for name in ("rolled-clean", "rolled-killed")
        for broken in sample(name).values()
        for sentence in judged(archive(name), broken).next_start
    }

    assert {"refuses", "cuts", "passes", "removes"} <= told


def test_no_start_cuts_anything_of_a_store_at_rest() -> None:
    store = archive("clean")

    assert judged(store, Broken(store.files, ())).next_start == ()
    assert end_after_start(read_store(store.files)) == 449067 + 204
