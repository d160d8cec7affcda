"""Traced: the lines of the engine that run while a context lasts.

They are noted with Python's tracing, which takes three times as long; a program that
switches at lines turns it off for itself, so what runs in that alone is not seen.
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
    """Note file and line of what runs, the first line of each called function too."""

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
