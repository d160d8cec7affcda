"""Traced: the lines of the engine that run while a context lasts.

They are recorded with Python's tracing, which makes a run three times as long. A
program with switch points at lines turns tracing off, so its lines are not recorded.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from crashmq import engine
from crashmq.harness.scheduling.line_switches import tracing

_ENGINE = str(Path(engine.__file__).parent)


@contextmanager
def traced(met: set[tuple[str, int]]) -> Iterator[None]:
    """Record file and line of all that runs, and the first lines of functions."""

    def line(frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            met.add((frame.f_code.co_filename, frame.f_lineno))
        return line

    def call(frame: FrameType, _: str, __: Any) -> Any:
        met.add((frame.f_code.co_filename, frame.f_code.co_firstlineno))
        return line

    def begins(frame: FrameType, event: str, arg: Any) -> Any:
        if frame.f_code.co_filename.startswith(_ENGINE):
            return call(frame, event, arg)
        return None

    with tracing(begins):
        yield
