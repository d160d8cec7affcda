"""DefaultMessageFilter: messages by their tags.

Source: org.apache.rocketmq.store.DefaultMessageFilter, RocketMQ 5.3. Differs: where the
hash agrees the text decides, as in ``tags_filter``.
"""

from __future__ import annotations

from collections.abc import Mapping

from crashmq.engine.remoting.subscription_data import SubscriptionData
from crashmq.engine.store.message.message import PROPERTY_TAGS
from crashmq.engine.store.message.tags_filter import TagsFilter
from crashmq.engine.store.queue.consume_queue_ext import CqExtUnit


class DefaultMessageFilter:
    """What a subscription by tags asks for; every message without tags in it."""

    def __init__(self, subscription: SubscriptionData) -> None:
        self._wanted = None
        if subscription.tags:
            codes = frozenset(subscription.codes)
            self._wanted = TagsFilter(frozenset(subscription.tags), codes)

    def is_matched_by_consume_queue(
        self, tags_code: int | None, ext: CqExtUnit | None
    ) -> bool:
        """Whether a message may match; ``tags_code`` None: nobody knows its tags."""
        del ext
        if self._wanted is None or tags_code is None:
            return True
        return self._wanted.may_take(tags_code)

    def is_matched_by_commit_log(
        self, record: bytes | None, properties: Mapping[str, str] | None
    ) -> bool:
        """Whether a message matches, by its properties or else by its record."""
        if self._wanted is None:
            return True
        if properties is not None:
            return properties.get(PROPERTY_TAGS, "") in self._wanted.tags
        return record is None or self._wanted.takes(record)
