"""A store that stops lets rounds end, and turns nobody's round into an error."""

from __future__ import annotations

from store_builder import StoreBuilder

from crashmq.engine.host.probe import recording
from crashmq.engine.store.rounds import Rounds
from crashmq.harness.scheduling.sim_runtime import SimRuntime


class Sleeper:
    """A service whose round takes a while."""

    name = "sleeper"
    interval_ms = 1

    def __init__(self, runtime: SimRuntime) -> None:
        self.ended = 0
        self._runtime = runtime

    def run_once(self) -> int:
        self._runtime.sleep_ms(10)
        self.ended += 1
        return 1


def test_a_stop_waits_for_the_round_in_progress(store: StoreBuilder) -> None:
    sleeper = Sleeper(store.runtime)
    rounds = Rounds(sleeper, store.runtime)

    def body() -> int:
        store.runtime.spawn(rounds.run_once)
        rounds.stop()
        return sleeper.ended

    assert store.runtime.run(body) == 1


def test_a_round_after_the_stop_does_nothing(store: StoreBuilder) -> None:
    store.put().reput()
    services = store.live.services
    store.stop()

    with recording() as hits:
        assert [store.runtime.run(service.run_once) for service in services] == [
            0 for _ in services
        ]

    assert hits["rounds.too_late"] == len(services)


def test_a_last_round_leaves_nothing_for_later(store: StoreBuilder) -> None:
    store.configured(transient_store_pool_enable=True).put()
    store.turn("commit")
    store.put()
    (commit,) = [s for s in store.live.services if s.name == "commit"]
    assert store.turn("commit") == 0

    assert isinstance(commit, Rounds)
    assert store.runtime.run(commit.run_last) == 1
