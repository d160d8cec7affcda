"""ConsumerFilterManager: the expressions that groups subscribe by, topic by topic.

A group's filter is registered when its client sends its subscription. The filter of a
group without members is kept for a day, and bit maps are still computed for it, so that
a consumer that comes back finds them. The table is written to
``config/consumerFilter.json`` every ten seconds; ``ConfigFile`` replaces the file. A
crash takes what was registered since then, and clients register again.

A bit map is only valid for a filter if dispatch knew the filter when it computed it. So
a filter is published first, and then covers what is stored after the newest message of
that moment: any message stored later is dispatched later. After a start it is unknown
with which filters old bit maps were computed, so a loaded filter covers what is stored
from then on.

Source: org.apache.rocketmq.broker.filter.ConsumerFilterManager, RocketMQ 5.3.0, and its
file byte for byte. Differs: in RocketMQ a filter covers what is stored after the wall
clock's time of its registration, also after a restart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from crashmq.engine.broker.broker_config import BrokerConfig
from crashmq.engine.broker.filter.consumer_filter_data import (
    ConsumerFilterData,
    condition_of,
)
from crashmq.engine.broker.filter.filter_table import decode_table, encode_table
from crashmq.engine.common.config_file import ConfigFile
from crashmq.engine.filter.bloom_filter import BloomFilter, BloomFilterData
from crashmq.engine.host.disk import Disk
from crashmq.engine.host.probe import probe
from crashmq.engine.host.runtime import Runtime
from crashmq.engine.remoting.subscription_data import SubscriptionData

PATH = "config/consumerFilter.json"
_BACK_MS = 30_000  # so long before a start its consumers were seen last
_BORN_FIRST_MS = 1  # one born at 0 would count as dead: its deadTime is 0, too

REGISTERED = probe("consumer_filter.register", "a group registered an expression")
REFUSED = probe("consumer_filter.refused", "a text that is no expression was refused")
OUTDATED = probe("consumer_filter.outdated", "an older subscription was passed over")
CHANGED = probe("consumer_filter.changed", "a group changed its expression")
REVIVED = probe("consumer_filter.revived", "a group that was gone came back")
DIED = probe("consumer_filter.died", "a group has unsubscribed a topic")
CLEANED = probe("consumer_filter.cleaned", "a group that is gone was forgotten")
RESHAPED = probe(
    "consumer_filter.reshaped", "a table was passed over, as bit maps have changed"
)
RELOADED = probe("consumer_filter.reloaded", "a start found expressions of groups")


class ConsumerFilterManager:
    """The filters of all groups, in memory, and their file.

    Invariants:
        each filter is stored under its own topic and group
    """

    def __init__(self, config: BrokerConfig, disk: Disk, runtime: Runtime) -> None:
        self._config = config
        self._file = ConfigFile(disk, PATH, runtime)
        self._runtime = runtime
        self._lock = runtime.lock()
        self._table: dict[str, dict[str, ConsumerFilterData]] = {}
        self._newest: Callable[[], int] | None = None
        self.bloom_filter = BloomFilter(
            config.max_error_rate_of_bloom_filter, config.expect_consumer_num_use_filter
        )

    def _check(self) -> None:
        for topic, groups in self._table.items():
            for group, data in groups.items():
                assert (data.topic, data.consumer_group) == (topic, group), data

    def load(self) -> None:
        """Read the file, or its backup; changes nothing on the disk.

        Raises:
            StoreCorrupted: there was a table, and no copy of it can be read.
        """
        self._file.load(self.decode)

    def settle(self) -> None:
        """Make durable what was loaded. Raises OSError if the disk failed."""
        self._file.settle()

    def open(self, newest_store_time: Callable[[], int]) -> None:
        """Let loaded filters cover messages; the started store has not dispatched yet.

        Args:
            newest_store_time: returns the newest store time of all messages, in
                milliseconds.
        """
        with self._lock:
            self._newest = newest_store_time
            for data in self._all():
                self._publish(data)

    def persist(self) -> None:
        """Write the table to its file, durably.

        Raises:
            OSError: the disk failed; the file has the previous table or this one.
        """
        self._file.persist(self.encode())

    def register(self, group: str, subscriptions: Sequence[SubscriptionData]) -> None:
        """Adopt all subscriptions of a group; its other filters become dead.

        Source: ConsumerFilterManager#register.
        """
        for one in subscriptions:
            if one.expression_type != "TAG":
                self.register_one(group, one)
        named = {one.topic: one for one in subscriptions}
        with self._lock:
            for data in self._all():
                if data.consumer_group != group:
                    continue
                told = named.get(data.topic)
                if told is None or _is_by_tags_now(data, told):
                    self._die(data)

    def build(self, group: str, subscription: SubscriptionData) -> ConsumerFilterData:
        """The filter of an expression that a pull carries; it is not registered.

        Source: ConsumerFilterManager#build.
        """
        return ConsumerFilterData(
            group,
            subscription.topic,
            subscription.sub_string,
            subscription.expression_type,
            condition_of(subscription.sub_string),
            max(_BORN_FIRST_MS, self._runtime.now_ms()),
            0,
            self.bloom_filter.generate(f"{group}#{subscription.topic}"),
            subscription.sub_version,
        )

    def register_one(self, group: str, subscription: SubscriptionData) -> bool:
        """Adopt one expression; False if it is invalid, or not newer than the present.

        An invalid expression of a newer version removes the filter that it replaces.

        Source: FilterDataMapByTopic#register.
        """
        topic = subscription.topic
        if not subscription.sub_string:
            return False
        made = self.build(group, subscription)
        with self._lock:
            old = self._table.get(topic, {}).get(group)
            if old is None:
                return self._take(made)
            if made.client_version <= old.client_version:
                return self._pass_over(made, old)
            if made.asks_as(old):
                kept = replace(old, client_version=made.client_version)
                self._table[topic][group] = _revived(kept)
                return True
            CHANGED.hit()
            del self._table[topic][group]
            return self._take(made)

    def _take(self, made: ConsumerFilterData) -> bool:
        if made.condition is None:
            REFUSED.hit()
            return False
        REGISTERED.hit()
        self._publish(made)
        return True

    def _pass_over(self, made: ConsumerFilterData, old: ConsumerFilterData) -> bool:
        """Handle a subscription that is not newer: it may revive the same filter."""
        if made.client_version == old.client_version and old.is_dead:
            self._table[old.topic][old.consumer_group] = _revived(old)
            return True
        OUTDATED.hit()
        return False

    def _publish(self, data: ConsumerFilterData) -> None:
        """Make a filter visible to dispatch, and only then determine what it covers."""
        groups = self._table.setdefault(data.topic, {})
        groups[data.consumer_group] = data
        if self._newest is not None:
            covered = replace(data, covers_after=self._newest())
            groups[data.consumer_group] = covered

    def unregister(self, group: str) -> None:
        """Mark a group's filters as dead: it has no member. Source: #unRegister."""
        with self._lock:
            for data in self._all():
                if data.consumer_group == group:
                    self._die(data)

    def _die(self, data: ConsumerFilterData) -> None:
        if not data.is_dead:
            DIED.hit()
            now = max(data.born_time, self._runtime.now_ms())
            self._table[data.topic][data.consumer_group] = replace(data, dead_time=now)

    def get(self, topic: str, group: str) -> ConsumerFilterData | None:
        """The filter of a group on a topic; None if it has none. Source: #get."""
        with self._lock:
            return self._table.get(topic, {}).get(group)

    def get_by_topic(self, topic: str) -> list[ConsumerFilterData]:
        """The filters of all groups on a topic, dead ones too. Source: #get."""
        with self._lock:
            return list(self._table.get(topic, {}).values())

    def get_all(self) -> list[ConsumerFilterData]:
        """The filters of all groups on all topics, dead ones too."""
        with self._lock:
            return [*self._all()]

    def is_registered(self, data: ConsumerFilterData) -> bool:
        """Whether dispatch still computes bit maps with this filter."""
        now = self.get(data.topic, data.consumer_group)
        return (
            now is not None
            and now.asks_as(data)
            and now.covers_after == data.covers_after
        )

    def clean(self) -> None:
        """Drop filters that have been dead for too long. Source: #clean."""
        now, most = self._runtime.now_ms(), self._config.filter_data_clean_time_span
        with self._lock:
            for data in self._all():
                if data.is_dead and now - data.dead_time >= most:
                    CLEANED.hit()
                    del self._table[data.topic][data.consumer_group]
            self._table = {topic: one for topic, one in self._table.items() if one}

    def encode(self) -> str:
        """The table as its file has it. Source: ConsumerFilterManager#encode."""
        self.clean()
        with self._lock:
            return encode_table(self._all())

    def decode(self, text: str) -> None:
        """Adopt a table that was written, with all its filters dead.

        A table with positions of another Bloom filter is skipped as a whole.

        Raises:
            ValueError: it is not a complete table; nothing has changed.

        Source: ConsumerFilterManager#decode.
        """
        found = decode_table(text)
        if not all(self._is_valid(data.bloom_filter_data) for data in found):
            RESHAPED.hit()
            return
        now = self._runtime.now_ms()
        table: dict[str, dict[str, ConsumerFilterData]] = {}
        for data in found:
            groups = table.setdefault(data.topic, {})
            groups[data.consumer_group] = _without_a_member(data, now)
            RELOADED.hit()
        with self._lock:
            self._table = table

    def _is_valid(self, data: BloomFilterData) -> bool:
        is_within = all(0 <= position < data.bit_num for position in data.bit_pos)
        return is_within and self.bloom_filter.is_valid(data)

    def _all(self) -> Iterable[ConsumerFilterData]:
        """Every filter; a list, so that the table may change meanwhile."""
        return [data for groups in self._table.values() for data in groups.values()]


def _without_a_member(data: ConsumerFilterData, now: int) -> ConsumerFilterData:
    """A loaded filter as that of a group without a member; its times are past.

    Source: ConsumerFilterManager#decode. Differs: RocketMQ takes the times as they are
    written, be they later than now or of before the filter's birth.
    """
    born = max(_BORN_FIRST_MS, min(data.born_time, now))
    dead = data.dead_time if data.is_dead else now - _BACK_MS
    return replace(data, born_time=born, dead_time=max(born, min(dead, now)))


def _is_by_tags_now(data: ConsumerFilterData, told: SubscriptionData) -> bool:
    """Whether a group has a newer subscription by tags instead of its expression.

    Source: none in RocketMQ, where such an expression lives as long as the group.
    """
    is_newer = told.sub_version > data.client_version
    return told.expression_type == "TAG" and is_newer


def _revived(data: ConsumerFilterData) -> ConsumerFilterData:
    if data.is_dead:
        REVIVED.hit()
    return replace(data, dead_time=0)
