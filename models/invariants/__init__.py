"""The laws, by id prefix; importing this package declares them all."""

from models.invariants import (
    checkpoint,
    commit_log,
    consume_queue,
    marks,
    offsets,
    putting,
    reading,
    recovery,
    run,
    statistics,
)

__all__ = [
    "checkpoint",
    "commit_log",
    "consume_queue",
    "marks",
    "offsets",
    "putting",
    "reading",
    "recovery",
    "run",
    "statistics",
]
