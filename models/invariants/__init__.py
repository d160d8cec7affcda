"""The laws, by id prefix; importing this package declares them all."""

from models.invariants import (
    around,
    checkpoint,
    commit_log,
    consume_queue,
    deletion,
    index,
    marks,
    offsets,
    putting,
    querying,
    queue_ext,
    reading,
    recovery,
    run,
    statistics,
    topic_deletion,
)

__all__ = [
    "around",
    "checkpoint",
    "commit_log",
    "consume_queue",
    "deletion",
    "index",
    "marks",
    "offsets",
    "putting",
    "querying",
    "queue_ext",
    "reading",
    "recovery",
    "run",
    "statistics",
    "topic_deletion",
]
