"""Closing: a history in a form in which every crash point can be closed.

Whether a record is whole follows from all of its sectors at once. A copy into a mapping
is cut at each 64 bytes, so that a sector has nine versions: of a record over eight
sectors there are 43 million combinations, each with a CRC of its own. The same
history with short records, read in small windows, asks the same of the store and has
hundreds.
"""

from __future__ import annotations

from dataclasses import replace

from crashmq.harness.failures.simplify import in_every_part
from crashmq.models.ops import Event, PutBatch, PutMessage
from crashmq.models.program import Program

BODY_SIZE_MAX = 768
READ_WINDOW = 256


def to_close(program: Program) -> Program:
    """The program with bodies of at most 768 bytes, and reads of 256."""
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
