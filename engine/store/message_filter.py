"""MessageFilter: which messages of a queue a reader wants, asked in two stages.

The first stage knows what the ConsumeQueue knows, so it may let too much through, and
never too little; the second one sees the message itself.

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
        """Whether a message may match; ``tags_code`` None: unknown its tags."""

    def is_matched_by_commit_log(
        self, record: bytes | None, properties: Mapping[str, str] | None
    ) -> bool:
        """Whether a message matches, by its properties or else by its record."""
