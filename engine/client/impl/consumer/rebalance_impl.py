"""RebalanceImpl: which queues are assigned to a consumer, and where each begins.

For each topic a client computes its own share. A queue that is not in it any more is
dropped, its offset is persisted, and only then it leaves the table; a new queue gets a
process queue and one pull request. What fails is tried again in the next round.

Source: org.apache.rocketmq.client.impl.consumer.RebalanceImpl, RebalancePushImpl,
RocketMQ 5.3. Differs: a queue of an unsubscribed topic is persisted (and unlocked)
before it goes. A dropped queue that could not be removed is tried again in each round,
even if it is assigned to the client again, and never while a listener consumes it in
order, there after 20 s at the latest, so that what the listener consumes is committed
too. Where a group begins without an offset is committed at once, since otherwise a
crash before the first commit would skip messages put meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from crashmq.engine.client.consumer.pull_from_where import (
    PullFromNowhere,
    offset_of_group,
    where_a_group_begins,
)
from crashmq.engine.client.consumer.push_consumer_config import PushConsumerConfig
from crashmq.engine.client.consumer.rebalance.allocate_message_queue_strategy import (
    AllocationRefused,
)
from crashmq.engine.client.consumer.store.offset_store import (
    OffsetStore,
    ReadOffsetType,
)
from crashmq.engine.client.consumer.store.remote_broker_offset_store import BrokerFailed
from crashmq.engine.client.impl.broker_api import BrokerApi
from crashmq.engine.client.impl.consumer.process_queue import ProcessQueue
from crashmq.engine.client.impl.consumer.pull_request import PullRequest
from crashmq.engine.client.impl.consumer.subscription_table import SubscriptionTable
from crashmq.engine.common.message_queue import MessageQueue
from crashmq.engine.host.probe import probe
from crashmq.engine.host.runtime import Runtime

FIRST_PULL_DELAY_MS = 500
HALF_AN_HOUR_MS = 30 * 60 * 1000

BEGINS = probe("rebalance.begins", "a group began a queue for which it had no offset")
ADDED = probe("rebalance.added", "a client was given a queue")
REMOVED = probe("rebalance.removed", "a client gave up a queue")
BUSY = probe("rebalance.busy", "a queue to be given up was being consumed in order")
EXPIRED = probe("rebalance.expired", "a queue was not pulled for too long")
UNLOCKED = probe("rebalance.unlocked", "a queue was another client's lock")
NOWHERE = probe("rebalance.nowhere", "the begin of a new queue was unknown")
UNKNOWN = probe("rebalance.unknown", "the queues or clients could not be asked for")


class RebalanceImpl:
    """The queues of one consumer."""

    def __init__(
        self,
        config: PushConsumerConfig,
        api: BrokerApi,
        offset_store: OffsetStore,
        runtime: Runtime,
    ) -> None:
        self.subscriptions = SubscriptionTable(runtime)
        self._config = config
        self._api = api
        self._offset_store = offset_store
        self._runtime = runtime
        self._lock = runtime.lock()
        self._removing = runtime.lock()
        self._table: dict[MessageQueue, ProcessQueue] = {}
        self._begun_ms = runtime.now_ms()
        self._dispatch: Callable[[PullRequest, int], None] = _nowhere
        self._queues_changed: Callable[[str], None] = _untold

    def start(
        self,
        dispatch: Callable[[PullRequest, int], None],
        queues_changed: Callable[[str], None],
    ) -> None:
        """Set the callbacks for pull requests (with a delay) and for changed queues."""
        self._begun_ms = self._runtime.now_ms()
        self._dispatch = dispatch
        self._queues_changed = queues_changed

    @property
    def process_queue_table(self) -> Mapping[MessageQueue, ProcessQueue]:
        """The client's queues, sorted; dropped ones are about to be removed."""
        with self._lock:
            return {queue: self._table[queue] for queue in sorted(self._table)}

    def do_rebalance(self) -> tuple[bool, int]:
        """Rebalance each topic; returns whether all succeeded, and queues changed.

        Raises:
            OSError: a broadcasting client could not persist an offset; the next round
                does the rest.
        """
        balanced, changes = True, 0
        for subscription in self.subscriptions.all():
            share = self._share_of(subscription.topic)
            if share is None:
                balanced = balanced and subscription.topic.startswith("%RETRY%")
                continue
            changed = self._update_process_queue_table(subscription.topic, share)
            if changed:
                self._queues_changed(subscription.topic)
            changes += changed
            balanced = balanced and share == self._working(subscription.topic)
        return balanced, changes + self._truncate_message_queue_not_my_topic()

    def _share_of(self, topic: str) -> set[MessageQueue] | None:
        """The client's queues of a topic; None: unknown."""
        config = self._config
        try:
            queues = sorted(self._api.topic_queues(topic))
            if not queues:
                return None
            if not config.is_clustering:
                return set(queues)
            clients = sorted(self._api.consumer_id_list(config.group))
        except BrokerFailed:
            UNKNOWN.hit()
            return None
        strategy = config.allocate_message_queue_strategy
        try:
            share = strategy.allocate(config.group, config.client_id, queues, clients)
        except AllocationRefused:
            UNKNOWN.hit()
            return None
        return set(share)

    def _working(self, topic: str) -> set[MessageQueue]:
        table = self.process_queue_table.items()
        return {q for q, each in table if q.topic == topic and not each.dropped}

    def _update_process_queue_table(
        self, topic: str, share: Collection[MessageQueue]
    ) -> int:
        """Give up queues outside the share, add new ones; returns how many."""
        now_ms, changed = self._runtime.now_ms(), 0
        for queue, process_queue in self.process_queue_table.items():
            if queue.topic != topic:
                continue
            if queue in share and process_queue.is_pull_expired(now_ms):
                EXPIRED.hit()
                process_queue.drop()
            if queue not in share or process_queue.dropped:
                changed += self.remove_process_queue(queue, process_queue)
        for queue in sorted(set(share) - self.process_queue_table.keys()):
            changed += self._add(queue)
        return changed

    def remove_process_queue(
        self, queue: MessageQueue, process_queue: ProcessQueue
    ) -> bool:
        """Drop a queue, persist its offset, and forget it; False: not now.

        Raises:
            OSError: a broadcasting client could not persist the offset; the queue is
                dropped, and stays in the table.

        Source: RebalancePushImpl#removeUnnecessaryMessageQueue.
        """
        process_queue.drop()
        with self._removing:
            return self._remove(queue, process_queue)

    def begin_anew(
        self,
        queue: MessageQueue,
        offset: int,
        process_queue: ProcessQueue | None = None,
    ) -> None:
        """Drop a queue and set its offset, at which the next rebalance begins it again.

        Args:
            queue: the queue; without a process queue there is nothing to do.
            offset: where it begins, lower or higher than the known offset.
            process_queue: the process queue to drop; None: whichever the queue has.

        Raises:
            OSError: a broadcasting client could not persist the offset; the queue is
                dropped, and stays in the table.

        Source: DefaultMQPushConsumerImpl, its case OFFSET_ILLEGAL, which may also drop
        a later process queue of the same queue; MQClientInstance#resetOffset.
        """
        with self._removing:
            current = self.process_queue_table.get(queue)
            if current is None or process_queue not in (None, current):
                return
            current.drop()
            current.clear()
            self._offset_store.update_and_freeze_offset(queue, offset)
            self._remove(queue, current)

    def _remove(self, queue: MessageQueue, process_queue: ProcessQueue) -> bool:
        if self.process_queue_table.get(queue) is not process_queue:
            return False
        if self._config.is_locking and process_queue.is_held:
            BUSY.hit()
            return False
        self._offset_store.persist(queue)
        with self._lock:
            self._offset_store.remove_offset(queue)
            self._table.pop(queue, None)
        if self._config.is_locking:
            process_queue.lease.refuse()
            self._unlock([queue])
        REMOVED.hit()
        return True

    def _add(self, queue: MessageQueue) -> bool:
        """Begin with a queue; False: not possible now."""
        process_queue = ProcessQueue(self._runtime)
        if self._config.is_locking and not self.lock(queue, process_queue):
            UNLOCKED.hit()
            return False
        self._offset_store.remove_offset(queue)
        try:
            next_offset = self.compute_pull_from_where(queue)
        except PullFromNowhere:
            NOWHERE.hit()
            return False
        with self._lock:
            if queue in self._table:
                return False
            self._table[queue] = process_queue
        self._dispatch(
            PullRequest(self._config.group, queue, process_queue, next_offset),
            FIRST_PULL_DELAY_MS,
        )
        ADDED.hit()
        return True

    def compute_pull_from_where(self, queue: MessageQueue) -> int:
        """Where to begin a queue; a group without an offset commits that at once.

        Raises:
            PullFromNowhere: it is unknown.
        """
        offset = offset_of_group(queue, self._offset_store)
        if offset >= 0:
            return offset
        timestamp = self._config.consume_timestamp
        if timestamp < 0:
            timestamp = self._begun_ms - HALF_AN_HOUR_MS
        where = self._config.consume_from_where
        begin = where_a_group_begins(queue, self._api, where, timestamp)
        return self._noted(queue, begin)

    def _noted(self, queue: MessageQueue, begin: int) -> int:
        """Store where a group without an offset begins: asked again, it would be later.

        Returns:
            The beginning, or a lower one that was stored before and that the broker
            does not have. A higher one belongs to a log that has lost its end since.
        """
        kept = self._offset_store.read_offset(queue, ReadOffsetType.READ_FROM_MEMORY)
        if 0 <= kept < begin:
            begin = kept
        BEGINS.hit()
        self._offset_store.update_offset(queue, begin, increase_only=False)
        self._offset_store.persist(queue)
        return begin

    def _truncate_message_queue_not_my_topic(self) -> int:
        """Give up queues of topics no longer subscribed; returns how many."""
        return sum(
            self.remove_process_queue(queue, process_queue)
            for queue, process_queue in self.process_queue_table.items()
            if self.subscriptions.get(queue.topic) is None
        )

    def lock(self, queue: MessageQueue, process_queue: ProcessQueue) -> bool:
        """Lock a queue at the broker; returns whether this client holds it now."""
        now_ms = self._runtime.now_ms()
        config = self._config
        try:
            locked = self._api.lock_batch(config.group, config.client_id, (queue,))
        except BrokerFailed:
            return False
        if queue not in locked:
            process_queue.lease.refuse()  # RocketMQ keeps it, and pulls on
            return False
        process_queue.lease.grant(now_ms)
        return True

    def lock_all(self) -> int:
        """Renew all locks; returns how many are held. Source: RebalanceImpl#lockAll.

        If a broker cannot be asked, the leases stay as they are, and run out.
        """
        return sum(map(self._lock_at_broker, self._by_broker()))

    def _lock_at_broker(self, queues: Sequence[MessageQueue]) -> int:
        now_ms, config = self._runtime.now_ms(), self._config
        try:
            locked = self._api.lock_batch(config.group, config.client_id, queues)
        except BrokerFailed:
            return 0
        table = self.process_queue_table
        for queue in queues:
            process_queue = table.get(queue)
            if process_queue is None:
                continue
            if queue in locked:
                process_queue.lease.grant(now_ms)
            else:
                process_queue.lease.refuse()
        return len(locked)

    def _by_broker(self) -> list[list[MessageQueue]]:
        brokers: dict[str, list[MessageQueue]] = {}
        for queue, process_queue in self.process_queue_table.items():
            if not process_queue.dropped:
                brokers.setdefault(queue.broker_name, []).append(queue)
        return list(brokers.values())

    def _unlock(self, queues: Sequence[MessageQueue]) -> None:
        config = self._config
        try:
            self._api.unlock_batch(config.group, config.client_id, queues)
        except BrokerFailed:
            return  # The lock runs out by itself.

    def drop_all(self) -> None:
        """Drop all queues; they stay in the table. Source: RebalanceImpl#destroy."""
        for process_queue in self.process_queue_table.values():
            process_queue.drop()

    def destroy(self) -> None:
        """Give up all queues and release their locks."""
        queues = tuple(self.process_queue_table)
        with self._lock:
            self._table.clear()
        if queues and self._config.is_locking:
            self._unlock(queues)


def _nowhere(request: PullRequest, delay_ms: int) -> None:
    """The callback before the start: no request is pulled."""


def _untold(topic: str) -> None:
    """The callback before the start: changes are ignored."""
