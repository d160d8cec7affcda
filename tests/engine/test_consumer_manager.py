from __future__ import annotations

from collections.abc import Sequence

import pytest

from crashmq.engine.broker.client.client_housekeeping_service import (
    ClientHousekeepingService,
)
from crashmq.engine.broker.client.consumer_manager import ConsumerManager
from crashmq.engine.remoting.heartbeat_data import ConsumerData
from crashmq.engine.remoting.subscription_data import SubscriptionData
from crashmq.harness.scheduling.sim_runtime import SimRuntime

EPOCH_MS = 1_700_000_000_000


class Heard:
    """What a listener is told, in order."""

    def __init__(self) -> None:
        self.told: list[tuple[object, ...]] = []

    def consumer_ids_changed(self, group: str, client_ids: Sequence[str]) -> None:
        self.told.append(("changed", group, *client_ids))

    def group_registered(
        self, group: str, subscriptions: Sequence[SubscriptionData]
    ) -> None:
        topics = [f"{one.topic} {one.sub_string}" for one in subscriptions]
        self.told.append(("registered", group, *topics))

    def group_unregistered(self, group: str) -> None:
        self.told.append(("unregistered", group))

    @property
    def changes(self) -> list[tuple[object, ...]]:
        return [one[1:] for one in self.told if one[0] == "changed"]


def member(group: str = "g", *wanted: str, version: int = 1) -> ConsumerData:
    pairs = [one.partition(" ") for one in wanted or ("T *",)]
    return ConsumerData(
        group,
        subscriptions=tuple(
            SubscriptionData(topic, expression, sub_version=version)
            for topic, _, expression in pairs
        ),
    )


@pytest.fixture
def runtime() -> SimRuntime:
    return SimRuntime(EPOCH_MS)


@pytest.fixture
def manager(runtime: SimRuntime) -> ConsumerManager:
    return ConsumerManager(runtime)


@pytest.fixture
def heard(manager: ConsumerManager) -> Heard:
    heard = Heard()
    manager.append_listener(heard)
    return heard


def test_members_are_told_of_who_comes_and_goes(
    manager: ConsumerManager, heard: Heard
) -> None:
    assert manager.register_consumer("c2", member())
    assert manager.register_consumer("c1", member())
    assert not manager.register_consumer("c1", member())
    assert manager.consumer_id_list("g") == ("c1", "c2")
    manager.unregister_consumer("g", "c2")
    manager.unregister_consumer("g", "c2")
    manager.unregister_consumer("none", "c2")
    manager.unregister_consumer("g", "c1")

    assert manager.consumer_id_list("g") == ()
    assert heard.changes == [("g", "c2"), ("g", "c1", "c2"), ("g", "c1")]
    assert heard.told[-1] == ("unregistered", "g")


def test_groups_know_nothing_of_each_other(manager: ConsumerManager) -> None:
    manager.register_consumer("c1", member("g", "T *"))
    manager.register_consumer("c1", member("h", "U *"))
    manager.unregister_consumer("g", "c1")

    assert manager.consumer_id_list("h") == ("c1",)
    assert manager.find_subscription_data("g", "T") is None
    assert manager.find_subscription_data("h", "T") is None
    assert manager.groups_of_topic("U") == ("h",)
    assert manager.message_model_of("h") == "CLUSTERING"
    assert manager.message_model_of("g") is None


def test_the_newest_subscription_of_a_group_counts(
    manager: ConsumerManager, heard: Heard
) -> None:
    manager.register_consumer("c1", member("g", "T a", "U *", version=5))
    manager.register_consumer("c2", member("g", "T b", "U *", version=4))
    kept = manager.find_subscription_data("g", "T")
    assert kept is not None
    assert kept.sub_string == "a"

    manager.register_consumer("c2", member("g", "T c", version=6))

    newest = manager.find_subscription_data("g", "T")
    assert newest is not None
    assert newest.sub_string == "c"
    assert manager.find_subscription_data("g", "U") is None
    assert heard.changes == [("g", "c1"), ("g", "c1", "c2"), ("g", "c1", "c2")]


def test_a_channel_that_closes_late_takes_no_newer_one(
    manager: ConsumerManager, heard: Heard
) -> None:
    manager.register_consumer("c1", member(), channel="one")
    manager.register_consumer("c1", member(), channel="two")
    manager.do_channel_close_event("one")
    assert manager.consumer_id_list("g") == ("c1",)
    manager.do_channel_close_event("one")
    manager.do_channel_close_event("two")

    assert manager.consumer_id_list("g") == ()
    assert heard.changes == [("g", "c1")] * 3


def test_a_silent_client_expires_and_the_others_hear_of_it(
    manager: ConsumerManager, heard: Heard, runtime: SimRuntime
) -> None:
    service = ClientHousekeepingService(manager)
    manager.register_consumer("c1", member())
    manager.register_consumer("c2", member())
    runtime.advance(120_000)
    manager.register_consumer("c2", member())
    assert service.run_once() == 0

    runtime.advance(1)
    assert service.run_once() == 1
    assert manager.consumer_id_list("g") == ("c2",)
    assert heard.changes[-1] == ("g", "c2")

    runtime.advance(120_001)
    assert service.run_once() == 1
    assert service.run_once() == 0
    assert heard.told[-1] == ("unregistered", "g")


def test_nobody_is_told_where_the_group_wants_no_word(
    manager: ConsumerManager, heard: Heard
) -> None:
    manager.register_consumer("c1", member(), notify=False)
    manager.register_consumer("c2", member(), notify=False)
    manager.unregister_consumer("g", "c2", notify=False)

    assert heard.changes == []
    assert heard.told == [("registered", "g", "T *")] * 2
