"""CommitLogDispatcherCalcBitMap: computes which groups may want a message.

It is the first of all dispatchers. The bit map has the Bloom filter positions of every
group on the topic whose expression the message matches, or may match. It is stored next
to the message's unit, and a pull skips a message without reading it if not all
positions of its group are set.

Source: org.apache.rocketmq.broker.filter.CommitLogDispatcherCalcBitMap, RocketMQ 5.3.
Differs: a message on which an expression fails has the group's positions; in RocketMQ
it has not, and the group never gets it.
"""

from __future__ import annotations

from crashmq.engine.broker.filter.consumer_filter_data import ConsumerFilterData
from crashmq.engine.broker.filter.consumer_filter_manager import ConsumerFilterManager
from crashmq.engine.filter.bits_array import BitsArray
from crashmq.engine.filter.errors import EvaluationFailed
from crashmq.engine.filter.expression import Properties
from crashmq.engine.host.probe import probe
from crashmq.engine.store.dispatch import DispatchRequest
from crashmq.engine.store.message.message_codec import properties_from_bytes

CALCULATED = probe("calc_bit_map.calculated", "a bit map was computed for a message")
FAILED = probe("calc_bit_map.failed", "an expression failed on a message in dispatch")


class CommitLogDispatcherCalcBitMap:
    """Computes the bit maps of messages by the filters of their topic."""

    def __init__(self, manager: ConsumerFilterManager) -> None:
        self._manager = manager

    def calc(self, request: DispatchRequest) -> bytes:
        """The bit map of a message; empty if no group filters its topic.

        Source: CommitLogDispatcherCalcBitMap#dispatch.
        """
        filters = self._manager.get_by_topic(request.topic)
        if not filters:
            return b""
        bloom = self._manager.bloom_filter
        bits = BitsArray(bloom.m)
        properties = properties_from_bytes(request.properties)
        for data in filters:
            if _may_match(data, properties):
                bloom.hash_to(data.bloom_filter_data, bits)
        CALCULATED.hit()
        return bits.to_bytes()


def _may_match(data: ConsumerFilterData, properties: Properties) -> bool:
    if data.condition is None:
        return True
    try:
        return data.condition.evaluate(properties) is True
    except EvaluationFailed:
        FAILED.hit()
        return True
