"""The engine in a child process on real files: a kill there is SIGKILL."""

from __future__ import annotations

from pathlib import Path

import pytest

from crashmq.harness.episodes.episode import Episode
from crashmq.harness.subjects.child_store import ChildStore
from crashmq.models.observations import Crashed, Put, Skipped, Started, Stopped
from crashmq.models.ops import (
    Crash,
    DiskFault,
    During,
    Op,
    PullMessage,
    PutMessage,
    Restart,
    RunService,
    Shutdown,
)
from crashmq.models.program import Program, Setup
from crashmq.scenarios.catalogue.scenarios import SCENARIOS
from crashmq.scenarios.programs.workload import program_for

KILL = Crash("process_kill", cut=30)


def judged(program: Program, root: Path) -> Episode:
    """Run a program on real files to its judged end."""
    root.mkdir()
    subject = ChildStore(program.setup, root)
    episode = Episode("process_kill", program.setup, subject=subject)
    try:
        for op in program.ops:
            episode.step(op)
        episode.finish()
    finally:
        episode.close()
    return episode


def test_a_kill_amid_a_put_is_survived_by_what_was_acknowledged(tmp_path: Path) -> None:
    ops: tuple[Op, ...] = (
        PutMessage("T0", 0, 100),
        During(PutMessage("T0", 0, 100), 1, KILL),
        Restart(),
        PullMessage("T0", 0, 0),
    )

    episode = judged(Program(Setup(), ops), tmp_path / "store")

    seen = [step.observation for step in episode.trace[1:5]]
    assert isinstance(seen[0], Put)
    assert isinstance(seen[1], Crashed)
    assert isinstance(seen[2], Started)
    assert not seen[2].last_exit_ok
    assert episode.checks_of("REC-2") >= 2


def test_an_op_amid_another_is_skipped(tmp_path: Path) -> None:
    during = During(PutMessage("T0", 0, 9), 1, RunService("reput"))

    episode = judged(Program(Setup(), (during,)), tmp_path / "store")

    assert isinstance(episode.trace[1].observation, Skipped)


def test_a_failed_sync_is_met_in_the_child(tmp_path: Path) -> None:
    fault = DiskFault("sync", "EIO", 3)
    ops = (PutMessage("T0", 0, 9), During(Shutdown(), 1, fault), Restart())

    episode = judged(Program(Setup(), ops), tmp_path / "store")

    assert "Stopped(clean=False" in str(episode.trace[2].observation)


def test_closing_ends_the_child(tmp_path: Path) -> None:
    subject = ChildStore(Setup(), tmp_path)
    assert isinstance(subject.start(), Started)
    subject.close()

    assert not subject.is_up
    assert isinstance(subject.start(), Started)
    assert isinstance(subject.shutdown(), Stopped)
    subject.close()


@pytest.mark.slow
@pytest.mark.parametrize("scenario", ["process_kill", "reput_behind", "clean_restart"])
def test_no_law_fires_on_real_files(scenario: str, tmp_path: Path) -> None:
    for number in range(12):
        program = program_for(SCENARIOS[scenario], 7, number)

        episode = judged(program, tmp_path / str(number))

        assert episode.checks_of("REC-1") > 0
