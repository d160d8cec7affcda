"""The ops and events within an op, each with what came of it."""

from __future__ import annotations

from collections.abc import Iterator

from crashmq.models.observations import Interleaved, Interrupted, InTurn, Observation
from crashmq.models.ops import During, Event, Session, Together


def each_within(op: Event, seen: Observation) -> Iterator[tuple[Event, Observation]]:
    """The op itself, and then all that ran within it, in order.

    What a crash, a skip or a failure of the whole has cut short comes without parts.
    """
    yield op, seen
    match op, seen:
        case During(inner, _, event), Interrupted(of_inner, of_event):
            yield from each_within(inner, of_inner)
            yield from each_within(event, of_event)
        case (Together(ops), Interleaved(of_ops)) | (Session(ops), InTurn(of_ops)):
            for part, of_part in zip(ops, of_ops, strict=True):
                yield from each_within(part, of_part)
        case _:
            pass
