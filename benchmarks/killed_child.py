"""Crash states a second the honest way: SIGKILL to a child process on a real disk.

Run ``python benchmarks/killed_child.py [DIR]`` from the checkout; DIR names a directory
on the disk to use. Each state costs a process, the kill, a start that reads real files
and syncs them, and its laws. ``benchmarks/explore.py`` is the same on a disk in memory.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / ".ci" / "checkout"))

from crashmq.harness.episodes.episode import Episode
from crashmq.harness.subjects.child_store import ChildStore
from crashmq.models.ops import Crash, During, PutMessage, Restart, RunService
from crashmq.models.program import Setup

SECONDS = 10.0
ACTIONS_MAX = 6


def crash_states(root: Path, *, flush_mode: str) -> tuple[int, float]:
    """How many kills were survived and judged, and in what time."""
    setup = Setup(
        flush_mode="SYNC_FLUSH" if flush_mode == "SYNC_FLUSH" else "ASYNC_FLUSH"
    )
    episode = Episode("kill", setup, subject=ChildStore(setup, root), keep_trace=False)
    states, started = 0, time.perf_counter()
    try:
        while time.perf_counter() - started < SECONDS:
            put = PutMessage("T0", states % 2, 60)
            kill = Crash("process_kill", cut=states % 60)
            episode.step(During(put, 1 + states % ACTIONS_MAX, kill))
            episode.step(Restart())
            episode.step(RunService("reput"))
            states += 1
    finally:
        seconds = time.perf_counter() - started
        episode.close()
    return states, seconds


def main() -> None:
    above = sys.argv[1] if len(sys.argv) > 1 else None
    for flush_mode in ("ASYNC_FLUSH", "SYNC_FLUSH"):
        with tempfile.TemporaryDirectory(prefix="killed-child-", dir=above) as root:
            states, seconds = crash_states(Path(root), flush_mode=flush_mode)
        print(
            f"{flush_mode}: {states} kills judged in {seconds:.1f} s, "
            f"{states / seconds:.1f} a second on one core"
        )


if __name__ == "__main__":
    main()
