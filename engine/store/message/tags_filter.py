"""Tag expressions: which messages of a queue a consumer asked for.

``*`` asks for all, ``A || B`` for those tagged A or B; tags are compared whole. Among
other tags ``*`` is a tag like any other, and a blank expression asks for no message.

Source: FilterAPI#buildSubscriptionData, DefaultMessageFilter, RocketMQ 5.3. Differs:
where the hash in the unit agrees, the text in the record is compared too; RocketMQ's
broker returns messages whose tags only share the hash, and the client drops them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from crashmq.engine.store.message.message import PROPERTY_TAGS, tags_code
from crashmq.engine.store.message.message_codec import properties_of
from crashmq.engine.store.message_filter import MessageFilter
from crashmq.engine.store.queue.consume_queue_ext import CqExtUnit

ANY_TAGS = "*"
Wanted: TypeAlias = str | MessageFilter
"""What a read asks for: a tag expression, or a filter."""
_OR = "||"
_HASH_END = 1 << 31


@dataclass(frozen=True, slots=True)
class TagsFilter:
    """A parsed tag expression."""

    tags: frozenset[str]
    codes: frozenset[int]

    def is_matched_by_consume_queue(
        self, tags_code: int | None, ext: CqExtUnit | None
    ) -> bool:
        """Whether the record of a unit with this tags code may match.

        True for a code that is no hash of tags: a delivery time, or an address.

        Source: DefaultMessageFilter#isMatchedByConsumeQueue; it takes the low half.
        """
        del ext
        if tags_code is None or tags_code in self.codes:
            return True
        return not -_HASH_END <= tags_code < _HASH_END

    def is_matched_by_commit_log(
        self, record: bytes | None, properties: Mapping[str, str] | None
    ) -> bool:
        """Whether the record's own tags match."""
        if properties is None:
            if record is None:
                return True
            properties = properties_of(record)
        return properties.get(PROPERTY_TAGS, "") in self.tags


@lru_cache(maxsize=1024)
def parse_tags(expression: str) -> TagsFilter | None:
    """Parse an expression; None if it asks for every message."""
    if expression in ("", ANY_TAGS):
        return None
    tags = frozenset(part.strip() for part in expression.split(_OR)) - {""}
    return TagsFilter(tags, frozenset(map(tags_code, tags)))
