"""Closing: changes a history so that every crash point can be closed.

Whether a record is intact depends on all of its sectors together. A copy into a mapping
can be cut at each 64 bytes, so a sector has nine versions; a record over eight sectors
has 43 million combinations, each with its own CRC. The same history with short records,
read in small windows, asks the same of the store and has hundreds.
"""

from __future__ import annotations

from dataclasses import replace

from crashmq.harness.failures.simplify import in_every_part
from crashmq.models.ops import Event, PutBatch, PutMessage
from crashmq.models.program import Program

BODY_SIZE_MAX = 768
READ_WINDOW = 256


def to_close(program: Program) -> Program:
    """The program with bodies of at most 768 bytes, and with reads of 256 bytes."""
    setup = replace(program.setup, read_window=READ_WINDOW)
    ops = tuple(in_every_part(op, _short) for op in program.ops)
    return Program(setup, ops)


def _short(event: Event) -> Event:
    match event:
        case PutMessage(body_size=size):
            return replace(event, body_size=min(size, BODY_SIZE_MAX))
        case PutBatch(body_sizes=sizes):
            return replace(
                event, body_sizes=tuple(min(n, BODY_SIZE_MAX) for n in sizes)
            )
        case _:
            return event
