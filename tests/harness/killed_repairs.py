"""Kills of this process's repairs, at the n-th call that changes a directory.

Calls are those of ``os`` that change names, lengths or bytes, and each opening of a
file to write; what happens in them comes whole, not at all, or by half.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import pytest

Part = Literal["none", "half"]
CALLS = (
    *("pwrite", "write", "truncate", "ftruncate", "rename", "replace"),
    *("mkdir", "rmdir", "unlink", "remove", "link"),
)
WRITES = os.O_WRONLY | os.O_RDWR
_TRUNCATE = os.truncate


class Killed(BaseException):
    """The process came to its end here."""


class Calls:
    """Counts calls; at the ``last`` one it dies.

    Attributes:
        made: calls so far.
        fresh: a file that was opened to be written anew, while nothing came after.
    """

    def __init__(self, last: int, part: Part) -> None:
        self.last, self.part = last, part
        self.made = 0
        self.fresh: Path | None = None

    def come(self) -> bool:
        """Count a call; whether it is the last."""
        if self.made > self.last:
            raise Killed  # a handler that runs on is no part of a killed process
        self.made += 1
        if self.made <= self.last:
            return False
        if self.part == "half" and self.fresh is not None and self.fresh.is_file():
            _TRUNCATE(self.fresh, self.fresh.stat().st_size // 2)
        return True


@contextmanager
def killed_at(
    last: int, part: Part, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Calls]:
    """Let the body be killed at its call number ``last`` (0: the first one)."""
    calls = Calls(last, part)
    pwrite, opened, opened_raw = os.pwrite, io.open, os.open

    def counted(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def do(*args: Any, **options: Any) -> Any:
            if calls.come():
                if name == "pwrite" and part == "half":
                    handle, data, at = args
                    pwrite(handle, bytes(data)[: len(data) // 2], at)
                raise Killed
            calls.fresh = None
            return call(*args, **options)

        return do

    def open_file(path: Any, mode: str = "r", *args: Any, **options: Any) -> Any:
        if set(mode) & set("wax+"):
            if calls.come():
                raise Killed
            calls.fresh = Path(path) if "w" in mode else None
        return opened(path, mode, *args, **options)

    def open_raw(path: Any, flags: int, *args: Any, **options: Any) -> int:
        if flags & WRITES:
            if calls.come():
                raise Killed
            calls.fresh = None
        return opened_raw(path, flags, *args, **options)

    with monkeypatch.context() as patch:
        for name in CALLS:
            patch.setattr(os, name, counted(name, getattr(os, name)))
        patch.setattr(os, "open", open_raw)
        patch.setattr(io, "open", open_file)
        try:
            yield calls
        except Killed:
            assert calls.made > last, "nobody else raises it"
