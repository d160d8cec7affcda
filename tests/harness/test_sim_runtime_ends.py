"""How activities of the simulated runtime end: errors, deadlocks, crashes."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable

import pytest

from crashmq.harness.disk.crash import PowerLost
from crashmq.harness.scheduling.sim_runtime import Deadlock, SimRuntime

START_MS = 1_000


class CrashingService:
    """A service whose first round is the end of the world."""

    name = "crashing"
    interval_ms = 10

    def run_once(self) -> int:
        raise PowerLost("now")


@pytest.fixture
def runtime() -> SimRuntime:
    return SimRuntime(START_MS)


def raising(error: BaseException) -> Callable[[], None]:
    def body() -> None:
        raise error

    return body


def test_a_failing_body_still_lets_the_others_end(runtime: SimRuntime) -> None:
    log: list[str] = []

    def left() -> None:
        runtime.sleep_ms(5)
        log.append("ended")

    def body() -> None:
        runtime.spawn(left)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        runtime.run(body)
    assert log == ["ended"]


def test_a_deadlock_names_each_activity_and_what_it_waits_for(
    runtime: SimRuntime,
) -> None:
    one, two = runtime.lock(), runtime.lock()

    def other() -> None:
        with two, one:
            raise AssertionError

    def body() -> None:
        with one:
            runtime.spawn(other, name="the flusher")
            with two:
                raise AssertionError

    with pytest.raises(Deadlock) as caught:
        runtime.run(body)
    assert str(caught.value).split(": ")[1].split(". ")[0] == (
        "the flusher waits for a lock that the main activity holds; "
        "the main activity waits for a lock that the flusher holds"
    )
    assert runtime.run(lambda: 7) == 7


def test_a_lock_is_not_reentrant(runtime: SimRuntime) -> None:
    lock = runtime.lock()

    def body() -> None:
        with lock, lock:
            raise AssertionError

    with pytest.raises(Deadlock, match="the main activity waits for a lock"):
        runtime.run(body)


def test_after_a_deadlock_every_lock_is_free_again(runtime: SimRuntime) -> None:
    one, two = runtime.lock(), runtime.lock()

    def other() -> None:
        with two, one:
            raise AssertionError

    def deadlocked() -> None:
        with one:
            runtime.spawn(other)
            with two:
                raise AssertionError

    def both() -> str:
        with one, two:
            return "both held"

    with pytest.raises(Deadlock):
        runtime.run(deadlocked)

    assert runtime.run(both) == "both held"


def test_activities_left_in_a_deadlock_are_unwound(runtime: SimRuntime) -> None:
    lock = runtime.lock()
    log: list[str] = []

    def left() -> None:
        try:
            with lock:
                pass
        finally:
            log.append("unwound")

    def body() -> None:
        lock.__enter__()
        runtime.spawn(left)

    with pytest.raises(Deadlock, match="activity 1 waits for a lock"):
        runtime.run(body)
    assert log == ["unwound"]


@pytest.mark.parametrize("crasher", ["main", "spawned", "service"])
def test_a_crash_anywhere_unwinds_everyone(runtime: SimRuntime, crasher: str) -> None:
    log: list[str] = []
    crash = raising(PowerLost("now"))

    def unwinding(name: str, inside: Callable[[], None]) -> None:
        try:
            inside()
        finally:
            log.append(name)

    def body() -> None:
        runtime.spawn(lambda: unwinding("sleeper", lambda: runtime.sleep_ms(50)))
        if crasher == "spawned":
            runtime.spawn(lambda: unwinding("crasher", crash))
        elif crasher == "main":
            crash()
        runtime.sleep_ms(60)

    runtime.serve([CrashingService()] if crasher == "service" else [])
    with pytest.raises(PowerLost, match="now"):
        runtime.run(lambda: unwinding("main", body))

    expected = ["main", "sleeper"]
    assert log == (["crasher", *expected] if crasher == "spawned" else expected)
    runtime.serve([])
    assert runtime.run(lambda: runtime.sleep_ms(1)) is None


def test_nobody_waits_again_while_a_crash_unwinds(runtime: SimRuntime) -> None:
    log: list[str] = []

    def stubborn() -> None:
        try:
            runtime.sleep_ms(50)
        finally:
            try:
                runtime.sleep_ms(50)
            finally:
                log.append("unwound")

    def body() -> None:
        runtime.spawn(stubborn)
        raise PowerLost("now")

    with pytest.raises(PowerLost):
        runtime.run(body)
    assert log == ["unwound"]
    assert runtime.now_ms() == START_MS


def test_a_crash_passes_through_the_spawner(runtime: SimRuntime) -> None:
    def middle() -> None:
        runtime.spawn(raising(PowerLost("deep")))
        raise AssertionError

    def body() -> None:
        runtime.spawn(middle)
        raise AssertionError

    with pytest.raises(PowerLost, match="deep"):
        runtime.run(body)


def test_the_error_of_an_activity_is_its_results(runtime: SimRuntime) -> None:
    def body() -> str:
        activity = runtime.spawn(raising(KeyError("its")))
        with pytest.raises(KeyError, match="its"):
            activity.result()
        return "went on"

    assert runtime.run(body) == "went on"


def test_an_error_nobody_asked_for_is_raised_at_the_end(runtime: SimRuntime) -> None:
    log: list[str] = []

    def body() -> None:
        runtime.spawn(raising(KeyError("unasked")))
        runtime.sleep_ms(1)
        log.append("main ended")

    with pytest.raises(KeyError, match="unasked"):
        runtime.run(body)
    assert log == ["main ended"]
    assert runtime.run(lambda: 7) == 7


@pytest.mark.slow
def test_a_runtime_that_is_dropped_leaves_nothing_behind() -> None:
    def used_and_dropped() -> weakref.ref[SimRuntime]:
        runtime = SimRuntime(START_MS)
        runtime.run(lambda: runtime.spawn(lambda: runtime.sleep_ms(1)).result())
        return weakref.ref(runtime)

    dropped = used_and_dropped()
    gc.collect()

    assert dropped() is None
