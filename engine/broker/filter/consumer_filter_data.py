"""ConsumerFilterData: what one group asks for of one topic, by an expression.

Source: org.apache.rocketmq.broker.filter.ConsumerFilterData, RocketMQ 5.3. Differs: the
messages whose bit map knows of the filter are those stored after ``covers_after``,
which only holds in the life of the broker that registered it; there, those stored after
``born_time``.
"""

from __future__ import annotations

from dataclasses import dataclass

from crashmq.engine.filter.bloom_filter import BloomFilterData
from crashmq.engine.filter.errors import InvalidSelector
from crashmq.engine.filter.expression import Condition
from crashmq.engine.filter.selector_parser import parse
from crashmq.engine.remoting.subscription_data import ExpressionType

NOTHING_COVERED = 1 << 62
"""Later than any message is stored."""


@dataclass(frozen=True, slots=True)
class ConsumerFilterData:
    """The filter of a group on a topic; times are milliseconds since the epoch.

    Attributes:
        condition: the parsed expression; None if this broker cannot parse it.
        born_time: when it was registered.
        dead_time: when the group lost its last member; before ``born_time`` while
            it has one.
        client_version: the version of the subscription; the highest is in effect.
        covers_after: the bit map of a message stored later says whether the message
            matches.
    """

    consumer_group: str
    topic: str
    expression: str
    expression_type: ExpressionType
    condition: Condition | None
    born_time: int
    dead_time: int
    bloom_filter_data: BloomFilterData
    client_version: int
    covers_after: int = NOTHING_COVERED

    @property
    def is_dead(self) -> bool:
        """Whether the group has no member."""
        return self.dead_time >= self.born_time

    def covers(self, msg_store_time: int) -> bool:
        """Whether a message stored then has a bit map computed with this filter.

        Source: ConsumerFilterData#isMsgInLive.
        """
        return msg_store_time > self.covers_after

    def asks_as(self, other: ConsumerFilterData) -> bool:
        """Whether expression and Bloom filter positions are those of another filter."""
        return (
            self.expression == other.expression
            and self.expression_type == other.expression_type
            and self.bloom_filter_data == other.bloom_filter_data
        )


def condition_of(expression: str) -> Condition | None:
    """The parsed expression; None if it is invalid.

    Source: FilterFactory, SqlFilter.
    """
    try:
        return parse(expression)
    except InvalidSelector:
        return None
