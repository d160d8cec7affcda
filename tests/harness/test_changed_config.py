"""A store whose configuration changes between two of its lives."""

from __future__ import annotations

import pytest

from crashmq.harness.episodes.episode import Episode, run_program
from crashmq.harness.explore.crash_point import record
from crashmq.harness.explore.explorer import Explorer
from crashmq.harness.explore.limits import Limits
from crashmq.models.observations import Done, Interrupted, Skipped
from crashmq.models.ops import (
    ChangeConfig,
    Crash,
    During,
    Op,
    PutMessage,
    Restart,
    RunService,
    Shutdown,
)
from crashmq.models.program import Program, Setup
from crashmq.models.verdict import Outcome

PUT = PutMessage("T0", 0, 100)
SYNC = ChangeConfig("flush_mode", "SYNC_FLUSH")
BUFFERS = ChangeConfig("transient_store_pool", True)
KILLED = During(PUT, 9, Crash("process_kill"))
CHANGED: tuple[Op, ...] = (PUT, KILLED, SYNC, BUFFERS, Restart(), PUT)


def test_the_next_life_has_the_other_configuration() -> None:
    episode = Episode("power_loss", Setup())
    for op in (PUT, RunService("reput"), Shutdown()):
        episode.step(op)
    before = episode.configured

    assert episode.step(SYNC) == Done()
    assert episode.step(BUFFERS) == Done()
    assert (before.flush_mode, episode.configured.flush_mode) == (
        "ASYNC_FLUSH",
        "SYNC_FLUSH",
    )
    assert episode.setup == Setup()

    episode.step(Restart())
    episode.step(PUT)
    known = episode.judge.known
    assert known.model.floor_power == known.model.end  # the put has waited for its sync
    assert known.model.buffers_appends
    episode.finish()


@pytest.mark.parametrize("op", [SYNC, During(Restart(), 2, SYNC)])
def test_a_store_that_runs_keeps_its_configuration(op: Op) -> None:
    episode = Episode("power_loss", Setup())
    episode.step(PUT)

    seen = episode.step(op)

    what = seen.event if isinstance(seen, Interrupted) else seen
    assert isinstance(what, Skipped), seen
    assert episode.configured == Setup()


def test_services_come_and_go_with_the_configuration() -> None:
    episode = Episode("power_loss", Setup())
    assert isinstance(episode.step(RunService("commit")), Skipped)
    for op in (Shutdown(), BUFFERS, Restart()):
        episode.step(op)

    assert not isinstance(episode.step(RunService("commit")), Skipped)


def test_what_a_changed_store_has_acknowledged_survives() -> None:
    lost = During(PUT, 9, Crash("power_loss"))

    result = run_program(Program(Setup(), (*CHANGED, lost, Restart())), "power_loss")

    assert result.outcome is Outcome.PASSED, result.message


def test_every_crash_of_a_changed_store_is_tried_as_it_is_configured_then() -> None:
    history = record(Program(Setup(), CHANGED), "power_loss")
    first, last = history.crash_points[0], history.crash_points[-1]
    assert history.breach is None
    changed = Setup(flush_mode="SYNC_FLUSH", transient_store_pool=True)
    assert (first.world[2], last.world[2]) == (Setup(), changed)
    assert last.program(Crash("power_loss")).setup == Setup()

    explorer = Explorer("power_loss", Limits(depth=1))
    explorer.explore(history)

    assert explorer.found == {}
    assert explorer.counts.starts > 0
