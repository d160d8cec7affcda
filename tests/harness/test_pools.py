"""Worker processes that are told to stop, and end."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from concurrent.futures import wait
from itertools import count, repeat
from types import SimpleNamespace
from typing import Any

import pytest

from crashmq.harness.guards import pools

FOR_LONG_S = 60.0


def sleep(seconds: float, _: float) -> float:
    time.sleep(seconds)
    return seconds


def interrupted_at(number: int) -> Callable[..., Any]:
    """``wait``, of which one call is interrupted."""
    calls = count()

    def waits(*args: Any, **named: Any) -> Any:
        if next(calls) == number:
            time.sleep(0.1)  # the queue of tasks is full, and no worker is up yet
            raise KeyboardInterrupt
        return wait(*args, **named)

    return waits


@pytest.mark.slow
def test_a_pool_whose_workers_do_not_listen_is_ended_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A thread's traceback would be a warning, and so a failure."""

    def killed_and_noticed() -> list[Any]:
        for child in multiprocessing.active_children():
            child.kill()
        time.sleep(0.3)
        return []

    ours = SimpleNamespace(active_children=killed_and_noticed)
    monkeypatch.setattr(pools, "multiprocessing", ours)
    monkeypatch.setattr(pools, "wait", interrupted_at(0))
    began = time.monotonic()

    with pytest.raises(KeyboardInterrupt):
        list(pools.worked_off(2, sleep, repeat(FOR_LONG_S), began + FOR_LONG_S))

    assert time.monotonic() - began < FOR_LONG_S / 2


@pytest.mark.slow
def test_what_was_found_by_an_interrupt_is_yielded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pools, "wait", interrupted_at(2))
    found: list[float] = []

    with pytest.raises(KeyboardInterrupt):
        found.extend(pools.worked_off(2, sleep, repeat(0.05), time.monotonic() + 60))

    assert len(found) > 2
