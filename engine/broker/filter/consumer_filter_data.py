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
        condition: what the expression says; None if this broker cannot read it.
        born_time: when it was registered.
        dead_time: when the group was gone; before ``born_time`` while it is there.
        client_version: of the subscription; the newest one counts.
        covers_after: the bit map of a message stored after it says whether the message
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
        """Whether the group is gone."""
        return self.dead_time >= self.born_time

    def covers(self, msg_store_time: int) -> bool:
        """Whether the bit map of a message stored then knows of this filter.

        Source: ConsumerFilterData#isMsgInLive.
        """
        return msg_store_time > self.covers_after

    def asks_as(self, other: ConsumerFilterData) -> bool:
        """Whether it has the expression of another one, and its positions."""
        return (
            self.expression == other.expression
            and self.expression_type == other.expression_type
            and self.bloom_filter_data == other.bloom_filter_data
        )


def condition_of(expression: str) -> Condition | None:
    """What an expression says; None if it is none. Source: FilterFactory, SqlFilter."""
    try:
        return parse(expression)
    except InvalidSelector:
        return None
