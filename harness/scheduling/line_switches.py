"""A switch point at each line of the engine, for races between calls of the host.

Threads of a real host can be interrupted between any two lines. Python's tracing
reports each line; what it calls may switch to another greenlet, whose lines must be
reported as well, hence ``sys.call_tracing``. Lines that no other activity can tell
apart are left out, so that a schedule's few switches meet those that matter.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any, Final

from crashmq import engine
from crashmq.harness.mutants.mutation import forget_results
from crashmq.harness.mutants.swaps import MARK

LINED: Final = ("broker", "client", "common", "remoting", "store")
"""The packages of the engine whose lines are switch points."""

NOT_LINED: Final[Mapping[str, str]] = {
    "client.consumer.rebalance": "a strategy reckons from what it is given alone",
    "common.fastjson": "it makes and reads texts, which nobody shares",
    "filter": "an expression and its bits share nothing, and parsing takes a thousand "
    "lines; what uses them is in broker.filter",
    "host": "it is the host's: its calls are switch points already",
}
"""Packages and modules of the engine without such lines, and why."""

_ENGINE = Path(engine.__file__).parent
_EDITED = re.compile(re.escape(MARK) + r"\S+ of crashmq\.engine\.([\w.]+)>")


@contextmanager
def at_each_line(pause: Callable[[], None], *, enabled: bool) -> Iterator[None]:
    """While the context lasts, if enabled, ``pause`` before each line of the engine.

    Only those of ``LINED`` count, and none of ``NOT_LINED``.
    """
    if not enabled:
        yield
        return

    def in_engine(_: FrameType, event: str, __: Any) -> Any:
        if event == "line":
            sys.call_tracing(pause, ())
        return in_engine

    def begins(frame: FrameType, _: str, __: Any) -> Any:
        return in_engine if has_lines(frame.f_code.co_filename) else None

    # What was worked out before takes no line again: a program's lines would depend on
    # the programs that ran before it.
    lined = tuple([f"crashmq.engine.{package}" for package in LINED])
    forget_results((*lined, "crashmq.harness.subjects"))
    with tracing(begins):
        yield


def no_line_switches() -> AbstractContextManager[None]:
    """Within the context no line is a switch point, so observers disturb nothing."""
    return tracing(None)


@contextmanager
def tracing(begins: Callable[[FrameType, str, Any], Any] | None) -> Iterator[None]:
    """Within the context Python calls ``begins`` at each call; None: no tracing."""
    before = sys.gettrace()
    sys.settrace(begins)
    try:
        yield
    finally:
        sys.settrace(before)


@cache
def has_lines(filename: str) -> bool:
    """Whether lines of the code in a file count, with a planted bug or without."""
    edited = _EDITED.match(filename)
    if edited is not None:
        return _is_lined(edited[1])
    path = Path(filename)
    if not path.is_relative_to(_ENGINE):
        return False
    return _is_lined(".".join(path.relative_to(_ENGINE).with_suffix("").parts))


def _is_lined(module: str) -> bool:
    """Whether a module's lines count; its name is relative to ``crashmq.engine``."""
    if module.partition(".")[0] not in LINED:
        return False
    return not any(f"{module}.".startswith(f"{name}.") for name in NOT_LINED)
