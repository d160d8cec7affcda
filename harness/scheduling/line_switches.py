"""A switch point at each line of the store, for races that no call of the host shows.

Threads of a real host can be interrupted between any two lines. Python's own tracing
tells of each; what it calls may move control to another greenlet, whose lines are to be
told of as well, hence ``sys.call_tracing``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import engine.store
from scenarios.mutation import forget_results
from scenarios.swaps import MARK

_STORE = str(Path(engine.store.__file__).parent)
_EDITED = re.compile(re.escape(MARK) + r"\S+ of engine\.store\.")


@contextmanager
def at_each_line(pause: Callable[[], None], *, enabled: bool) -> Iterator[None]:
    """Call ``pause`` before each line of the store that runs meanwhile, if enabled."""
    if not enabled:
        yield
        return

    def in_store(_: FrameType, event: str, __: Any) -> Any:
        if event == "line":
            sys.call_tracing(pause, ())
        return in_store

    def begins(frame: FrameType, _: str, __: Any) -> Any:
        return in_store if _is_store(frame.f_code.co_filename) else None

    # What was worked out before takes no line again: a program's lines would depend on
    # the programs that ran before it.
    forget_results(("engine", "harness.subjects"))
    before = sys.gettrace()
    sys.settrace(begins)
    try:
        yield
    finally:
        sys.settrace(before)


@cache
def _is_store(filename: str) -> bool:
    """Whether code of this name is the store's, a bug planted in it or not."""
    return filename.startswith(_STORE) or _EDITED.match(filename) is not None
