"""The laws that files must keep even before a start has mended them."""

from __future__ import annotations

from models.invariants.checkpoint import (
    dispatched_offset_is_in_the_queues,
    dispatched_time_is_in_the_queues,
    durable_mark_is_in_the_log,
    flushed_time_is_in_the_log,
    marked_bytes_are_unchanged,
)
from models.invariants.commit_log import every_record_is_whole
from models.invariants.index import ended_files_are_whole
from models.invariants.judged import Judged
from models.invariants.registry import Invariant
from models.invariants.topic_deletion import record_of_deletions_is_whole

CLAIMS: tuple[Invariant[[Judged]], ...] = (
    every_record_is_whole,
    durable_mark_is_in_the_log,
    flushed_time_is_in_the_log,
    dispatched_time_is_in_the_queues,
    dispatched_offset_is_in_the_queues,
    ended_files_are_whole,
    marked_bytes_are_unchanged,
    record_of_deletions_is_whole,
)
"""What no crash may break."""
