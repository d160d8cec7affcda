"""Stories of clients whose connection breaks, and that come back on another one."""

from __future__ import annotations

from client_stories import C0, Story, begins

from crashmq.models.history import HeartbeatTaken, MembersAnswered
from crashmq.models.ops import (
    AdvanceClock,
    EndConsumer,
    Restart,
    RunService,
    Shutdown,
    StartConsumer,
    TurnConsumer,
)

C1 = StartConsumer("c1", "g", "T0")
RECONNECT = TurnConsumer("c0", "reconnect")
DISCONNECT = TurnConsumer("c0", "disconnect")
ALMOST_SILENT = AdvanceClock(119_000)


def two_clients() -> Story:
    return Story(*begins(C0), *begins(C1))


def members(story: Story) -> tuple[str, ...]:
    """Whom the broker lists when the other client rebalances."""
    story.does(TurnConsumer("c1", "rebalance"))
    told = [one for one in story.events if isinstance(one, MembersAnswered)]
    return told[-1].members


def test_who_comes_on_a_new_connection_stays_when_the_old_one_closes() -> None:
    story = two_clients()
    before = len(story.told(HeartbeatTaken))
    story.does(RECONNECT)
    assert len(story.told(HeartbeatTaken)) == before + 1
    story.does(DISCONNECT, DISCONNECT)

    assert members(story) == ("c0", "c1")
    story.ends_well()


def test_an_old_connection_that_is_silent_takes_nobody_along() -> None:
    story = two_clients()
    beats = TurnConsumer("c0", "heartbeat"), TurnConsumer("c1", "heartbeat")
    story.does(RECONNECT, ALMOST_SILENT, *beats, ALMOST_SILENT, *beats)
    story.does(RunService("client_housekeeping"))

    assert members(story) == ("c0", "c1")
    story.ends_well()


def test_nothing_closes_before_a_heartbeat_has_come_on_the_new_connection() -> None:
    story = two_clients()
    story.does(Shutdown(), RECONNECT, Restart(), DISCONNECT)
    beats = TurnConsumer("c0", "heartbeat"), TurnConsumer("c1", "heartbeat")
    story.does(*beats, DISCONNECT)

    assert members(story) == ("c0", "c1")
    story.ends_well()


def test_a_client_that_is_killed_is_gone_on_all_its_connections() -> None:
    story = two_clients()
    story.does(RECONNECT, RECONNECT, EndConsumer("c0", "kill"))

    assert members(story) == ("c1",)
    story.ends_well()
