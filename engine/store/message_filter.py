"""MessageFilter: which messages of a queue a reader wants, asked in two stages.

The first stage sees only the unit and its consumequeue_ext entry, so it may accept a
message that does not match, but never rejects one that does. The second stage sees the
message.

Source: org.apache.rocketmq.store.MessageFilter, RocketMQ 5.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from crashmq.engine.store.queue.consume_queue_ext import CqExtUnit


class MessageFilter(Protocol):
    """What one reader asks for."""

    def is_matched_by_consume_queue(
        self, tags_code: int | None, ext: CqExtUnit | None
    ) -> bool:
        """Whether a message may match; with ``tags_code`` None its tags are unknown."""

    def is_matched_by_commit_log(
        self, record: bytes | None, properties: Mapping[str, str] | None
    ) -> bool:
        """Whether a message matches, by its properties if given, else its record."""
