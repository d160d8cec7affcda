"""Who runs when, and what time does, on the simulated runtime."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from crashmq.harness.scheduling.sim_runtime import SWEEPS_MAX, SimRuntime

START_MS = 1_000


class Turned:
    """A service whose rounds are the given calls, then idle."""

    interval_ms = 10

    def __init__(self, name: str, *rounds: Callable[[], int]) -> None:
        self.name = name
        self.turns = 0
        self._rounds = list(rounds)

    def run_once(self) -> int:
        self.turns += 1
        return self._rounds.pop(0)() if self._rounds else 0


class Busy(Turned):
    """A service that always finds work and never helps anyone."""

    def run_once(self) -> int:
        self.turns += 1
        return 1


@pytest.fixture
def runtime() -> SimRuntime:
    return SimRuntime(START_MS)


def raising(error: BaseException) -> Callable[[], None]:
    def body() -> None:
        raise error

    return body


def test_run_returns_what_its_body_returns(runtime: SimRuntime) -> None:
    assert runtime.run(lambda: 7) == 7


def test_run_raises_what_its_body_raises(runtime: SimRuntime) -> None:
    with pytest.raises(KeyError, match="mine"):
        runtime.run(raising(KeyError("mine")))
    assert runtime.run(lambda: 7) == 7


def test_time_moves_only_when_told_and_may_step_back(runtime: SimRuntime) -> None:
    runtime.advance(250)
    assert runtime.now_ms() == START_MS + 250
    runtime.advance(-500)
    assert runtime.now_ms() == START_MS - 250


def test_a_sleep_takes_its_time_and_no_more(runtime: SimRuntime) -> None:
    runtime.run(lambda: runtime.sleep_ms(70))

    assert runtime.now_ms() == START_MS + 70


def test_a_clock_set_back_does_not_lengthen_a_wait(runtime: SimRuntime) -> None:
    def body() -> None:
        sleeper = runtime.spawn(lambda: runtime.sleep_ms(100))
        runtime.advance(-5_000)
        sleeper.result()

    runtime.run(body)

    assert runtime.now_ms() == START_MS - 5_000 + 100


def test_a_spawned_activity_runs_at_once_until_it_waits(runtime: SimRuntime) -> None:
    log: list[str] = []

    def other() -> str:
        log.append("other starts")
        runtime.sleep_ms(1)
        log.append("other ends")
        return "its result"

    def body() -> str:
        activity = runtime.spawn(other)
        log.append("main goes on")
        return activity.result()

    assert runtime.run(body) == "its result"
    assert log == ["other starts", "main goes on", "other ends"]


def test_run_waits_for_activities_left_behind(runtime: SimRuntime) -> None:
    log: list[int] = []

    def left(ms: int) -> None:
        runtime.sleep_ms(ms)
        log.append(ms)

    def body() -> None:
        for ms in (30, 10, 20):
            runtime.spawn(lambda ms=ms: left(ms))  # type: ignore[misc]

    runtime.run(body)

    assert log == [10, 20, 30]
    assert runtime.now_ms() == START_MS + 30


def test_a_lock_keeps_others_out_and_goes_to_the_longest_waiting(
    runtime: SimRuntime,
) -> None:
    lock = runtime.lock()
    log: list[str] = []

    def ask(name: str) -> None:
        with lock:
            log.append(f"{name} in")
            runtime.sleep_ms(1)
            log.append(f"{name} out")

    def body() -> None:
        with lock:
            for name in ("a", "b", "c"):
                runtime.spawn(lambda name=name: ask(name))  # type: ignore[misc]
            log.append("main out")

    runtime.run(body)

    assert log == ["main out", "a in", "a out", "b in", "b out", "c in", "c out"]


def test_a_lock_given_up_and_asked_for_again_goes_to_the_waiter_first(
    runtime: SimRuntime,
) -> None:
    lock = runtime.lock()
    log: list[str] = []

    def ask() -> None:
        with lock:
            log.append("waiter")

    def body() -> None:
        with lock:
            runtime.spawn(ask)
        with lock:
            log.append("main again")

    runtime.run(body)

    assert log == ["waiter", "main again"]


def test_a_lock_is_free_after_an_error_inside_it(runtime: SimRuntime) -> None:
    lock = runtime.lock()

    def body() -> None:
        with lock:
            raise KeyError

    for _ in range(2):
        with pytest.raises(KeyError):
            runtime.run(body)


def test_an_event_wakes_all_who_wait(runtime: SimRuntime) -> None:
    event = runtime.event()
    log: list[tuple[str, bool]] = []

    def wait(name: str) -> None:
        log.append((name, event.wait(1_000)))

    def body() -> None:
        for name in ("a", "b"):
            runtime.spawn(lambda name=name: wait(name))  # type: ignore[misc]
        assert not event.is_set()
        event.set()
        assert event.is_set()
        assert event.wait(0)

    runtime.run(body)

    assert log == [("a", True), ("b", True)]
    assert runtime.now_ms() == START_MS


def test_an_event_that_does_not_happen_is_waited_for_so_long(
    runtime: SimRuntime,
) -> None:
    event = runtime.event()

    assert runtime.run(lambda: event.wait(40)) is False
    assert runtime.run(lambda: event.wait(0)) is False
    assert runtime.now_ms() == START_MS + 40


def test_the_nearest_time_out_comes_first_and_ties_in_order_of_waiting(
    runtime: SimRuntime,
) -> None:
    log: list[tuple[str, int]] = []

    def sleep(name: str, ms: int) -> None:
        runtime.sleep_ms(ms)
        log.append((name, runtime.now_ms() - START_MS))

    def body() -> None:
        for name, ms in (("a", 9), ("b", 5), ("c", 5)):
            runtime.spawn(lambda n=name, ms=ms: sleep(n, ms))  # type: ignore[misc]

    runtime.run(body)

    assert log == [("b", 5), ("c", 5), ("a", 9)]


def test_time_that_passes_ends_the_waits_it_covers(runtime: SimRuntime) -> None:
    log: list[str] = []

    def sleep() -> None:
        runtime.sleep_ms(10)
        log.append("slept")

    def body() -> None:
        runtime.spawn(sleep)
        runtime.advance(500)
        runtime.sleep_ms(1)
        log.append("main")

    runtime.run(body)

    assert log == ["slept", "main"]
    assert runtime.now_ms() == START_MS + 501


def test_services_are_turned_in_order_while_everyone_waits(runtime: SimRuntime) -> None:
    event = runtime.event()
    log: list[str] = []

    def work() -> int:
        log.append("first worked")
        return 1

    def help_out() -> int:
        log.append("second set")
        event.set()
        return 1

    idle = Turned("third")
    runtime.serve([Turned("first", work), Turned("second", lambda: 0, help_out), idle])

    assert runtime.run(lambda: event.wait(1_000))
    assert runtime.now_ms() == START_MS
    assert log == ["first worked", "second set"]
    assert idle.turns == 1


def test_a_wait_that_is_over_ends_before_services_are_turned(
    runtime: SimRuntime,
) -> None:
    service = Turned("s")
    runtime.serve([service])

    def sleeper() -> int:
        runtime.sleep_ms(10)
        return service.turns

    def body() -> int:
        activity = runtime.spawn(sleeper)
        runtime.advance(500)
        return activity.result()

    assert runtime.run(body) == 0


def test_services_are_not_turned_while_nobody_waits(runtime: SimRuntime) -> None:
    service = Turned("s")
    runtime.serve([service])
    runtime.run(lambda: runtime.spawn(lambda: 1).result())

    assert service.turns == 0


def test_a_service_that_is_always_busy_does_not_stop_time(runtime: SimRuntime) -> None:
    service = Busy("busy")
    runtime.serve([service])

    assert runtime.run(lambda: runtime.event().wait(25)) is False
    assert runtime.now_ms() == START_MS + 25
    assert service.turns == SWEEPS_MAX


def test_a_round_that_waits_is_not_begun_twice(runtime: SimRuntime) -> None:
    lock = runtime.lock()

    def locked_round() -> int:
        with lock:
            return 1

    service = Turned("s", locked_round)
    runtime.serve([service, Turned("another", lambda: 1)])

    def body() -> None:
        with lock:
            runtime.sleep_ms(3)
            assert service.turns == 1

    runtime.run(body)


def test_the_same_bodies_take_the_same_turns(runtime: SimRuntime) -> None:
    def turns() -> list[str]:
        host = SimRuntime(START_MS)
        lock, event, log = host.lock(), host.event(), list[str]()

        def work(name: str, ms: int) -> None:
            for n in range(4):
                with lock:
                    host.sleep_ms(ms)
                    log.append(f"{name}{n}")
            event.set()

        def body() -> None:
            for name, ms in (("a", 3), ("b", 2), ("c", 5)):
                host.spawn(lambda n=name, ms=ms: work(n, ms))  # type: ignore[misc]
            event.wait(20)
            log.append(f"main at {host.now_ms()}")

        host.run(body)
        return log

    assert turns() == turns()
    assert len(turns()) == 13
