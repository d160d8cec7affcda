"""A service in a thread of its own is woken whenever there is work."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from crashmq.engine.host.service import Service
from crashmq.engine.host.service_threads import ServiceThreads

INTERVAL_MS = 60_000
AT_ONCE_S = 10.0


@dataclass
class WokenService:
    """One whose rounds do what the test says; unless woken it rests for a minute."""

    body: Callable[[int], None]
    name: str = "woken"
    interval_ms: int = INTERVAL_MS
    rounds: int = 0
    wake: Callable[[], None] = lambda: None

    def on_work(self, wake: Callable[[], None]) -> None:
        self.wake = wake

    def run_once(self) -> int:
        self.rounds += 1
        self.body(self.rounds)
        return 1


@dataclass
class OneService:
    services: tuple[Service, ...]
    waited_for: tuple[Service, ...] = ()
    is_started: bool = True


def test_work_that_comes_amid_a_round_is_done_in_the_next_one_at_once() -> None:
    done = threading.Event()

    def wake_amid_it(number: int) -> None:
        if number == 1:
            service.wake()
        else:
            done.set()

    service = WokenService(wake_amid_it)
    with ServiceThreads(OneService((service,))):
        service.wake()
        was_done = done.wait(AT_ONCE_S)

    assert was_done
