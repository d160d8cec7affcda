"""A switch point at each line of the store, for races between calls of the host.

Threads of a real host can be interrupted between any two lines. Python's tracing
reports each line; what it calls may switch to another greenlet, whose lines must be
reported as well, hence ``sys.call_tracing``.
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

from crashmq.engine import store
from crashmq.harness.mutants.mutation import forget_results
from crashmq.harness.mutants.swaps import MARK

_STORE = str(Path(store.__file__).parent)
_EDITED = re.compile(re.escape(MARK) + r"\S+ of crashmq\.engine\.store\.")


@contextmanager
def at_each_line(pause: Callable[[], None], *, enabled: bool) -> Iterator[None]:
    """While the context lasts, if enabled, ``pause`` before each line of the store."""
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
    forget_results(("crashmq.engine", "crashmq.harness.subjects"))
    before = sys.gettrace()
    sys.settrace(begins)
    try:
        yield
    finally:
        sys.settrace(before)


@cache
def _is_store(filename: str) -> bool:
    """Whether a code name belongs to the store, with or without a planted bug."""
    return filename.startswith(_STORE) or _EDITED.match(filename) is not None
