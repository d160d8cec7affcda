"""Brokers in memory for the tests of clients: queues, offsets, groups, locks, holds.

They answer as RocketMQ's broker does: a pull of nothing is held, an offset outside its
queue is told where to go, and a stored offset is overwritten by whatever comes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from crashmq.engine.client.consumer.default_mq_push_consumer import (
    DefaultMQPushConsumer,
)
from crashmq.engine.client.consumer.store.remote_broker_offset_store import (
    BrokerFailed,
    KeptOffset,
    OffsetNotFound,
)
from crashmq.engine.client.impl.broker_api import PullAnswer
from crashmq.engine.common.message_ext import PROPERTY_RETRY_TOPIC, decode_message
from crashmq.engine.common.message_queue import MessageQueue
from crashmq.engine.remoting.heartbeat_data import ConsumerData
from crashmq.engine.remoting.pull_message import (
    PullMessageRequest,
    PullMessageResponse,
    PullSysFlag,
)
from crashmq.engine.remoting.response_code import ResponseCode
from crashmq.engine.store.message.message import (
    PROPERTY_TAGS,
    Message,
    tags_code,
)
from crashmq.engine.store.message.message_encoder import encode_message
from crashmq.harness.scheduling.sim_runtime import SimRuntime

BROKER = "broker-a"
SCANNED_MAX = 800
LOCK_MAX_LIVE_MS = 60_000


class ClientKilled(BaseException):
    """What ends a round in its middle, as a crash of the process does."""


def queue_of(topic: str, queue_id: int = 0, broker: str = BROKER) -> MessageQueue:
    return MessageQueue(topic, broker, queue_id)


@dataclass
class FakeQueue:
    """One queue; ``records`` begins with the one at ``base``."""

    base: int = 0
    records: list[bytes] = field(default_factory=list)

    @property
    def min_offset(self) -> int:
        return self.base

    @property
    def max_offset(self) -> int:
        return self.base + len(self.records)


@dataclass
class HeldPull:
    request: PullMessageRequest
    answer: PullAnswer
    until_ms: int


class FakeBroker:
    """One broker; while ``down`` every call fails."""

    def __init__(self, runtime: SimRuntime) -> None:
        self.runtime = runtime
        self.queues: dict[MessageQueue, FakeQueue] = {}
        self.offsets: dict[tuple[str, MessageQueue], int] = {}
        self.clients: dict[str, dict[str, ConsumerData]] = {}
        self.locks: dict[tuple[str, MessageQueue], tuple[str, int]] = {}
        self.held: list[HeldPull] = []
        self.pulls: list[PullMessageRequest] = []
        self.sent_back: list[tuple[int, int]] = []
        self.bodies_sent_back: set[str] = set()
        self.dead: list[bytes] = []
        self.commits: list[tuple[MessageQueue, int]] = []
        self.down = False
        self.loses_updates = False
        self.bounds_commits = False
        self.lists_backwards = 0
        self.refuse_next: list[bool] = []
        self.pending_resets: dict[tuple[str, MessageQueue], int] = {}
        self.refuses: dict[str, ResponseCode] = {}
        self.calls = 0
        self.breaks_at_call = 0

    # what producers and administrators do

    def create(self, topic: str, queues: int = 1, base: int = 0) -> None:
        for queue_id in range(queues):
            self.queues[queue_of(topic, queue_id)] = FakeQueue(base)

    def put(
        self,
        topic: str,
        queue_id: int = 0,
        count: int = 1,
        tags: str = "",
        body: bytes = b"",
    ) -> list[int]:
        """Put messages; their queue_offsets. Held pulls are answered."""
        queue, put = queue_of(topic, queue_id), []
        for _ in range(count):
            offset = self.queues[queue].max_offset
            text = body or f"{topic}/{queue_id}/{offset}".encode()
            properties = {PROPERTY_TAGS: tags} if tags else {}
            self._append(queue, Message(topic, queue_id, text, properties))
            put.append(offset)
        self.wake()
        return put

    def _append(self, queue: MessageQueue, message: Message) -> None:
        there = self.queues[queue]
        record = encode_message(message, 1 << 24).placed(
            there.max_offset, 1000 * there.max_offset, self.runtime.now_ms() + 1
        )
        there.records.append(record)

    def lose_tail(self, queue: MessageQueue, count: int) -> None:
        del self.queues[queue].records[-count:]

    def expire(self, queue: MessageQueue, count: int) -> None:
        del self.queues[queue].records[:count]
        self.queues[queue].base += count

    def reset(self, group: str, queue: MessageQueue, offset: int) -> None:
        """Reset at the broker's side: pending until the next pull."""
        self.offsets[group, queue] = self.pending_resets[group, queue] = offset

    def kill(self, group: str, client_id: str) -> None:
        """A client is found to be dead."""
        self.clients.get(group, {}).pop(client_id, None)

    def wake(self) -> None:
        """Answer held pulls that can be answered, or that were held for long enough."""
        held, self.held = self.held, []
        for each in held:
            queue = queue_of(each.request.topic, each.request.queue_id)
            has_more = self.queues[queue].max_offset > each.request.queue_offset
            if has_more or self.runtime.now_ms() >= each.until_ms:
                each.answer(self._read(each.request, queue))
            else:
                self.held.append(each)

    def restart(self) -> None:
        """Forget what is only in memory; held pulls are never answered."""
        self.held, self.locks, self.clients, self.pending_resets = [], {}, {}, {}

    def break_in(self, calls: int) -> None:
        """End whatever makes the n-th call from now on in its middle."""
        self.breaks_at_call = self.calls + calls

    # what clients ask

    def _call(self) -> None:
        self.runtime.pause()  # whoever else is at work may go on here
        self.calls += 1
        if self.calls == self.breaks_at_call:
            raise ClientKilled("killed")
        if self.down:
            raise BrokerFailed("the broker is down")

    def query_consumer_offset(self, group: str, queue: MessageQueue) -> KeptOffset:
        self._call()
        if (group, queue) not in self.offsets:
            raise OffsetNotFound
        return KeptOffset(self.offsets[group, queue])

    def update_consumer_offset_oneway(
        self, group: str, queue: MessageQueue, offset: int, broker_life: int
    ) -> None:
        self._call()
        if self.loses_updates or (group, queue) in self.pending_resets:
            return
        self._commit(group, queue, offset)

    def _commit(self, group: str, queue: MessageQueue, offset: int) -> None:
        if self.bounds_commits and offset > self.queues[queue].max_offset:
            return
        self.offsets[group, queue] = offset
        self.commits.append((queue, offset))

    def max_offset(self, queue: MessageQueue) -> int:
        self._call()
        return self.queues[queue].max_offset

    def search_offset(self, queue: MessageQueue, timestamp: int) -> int:
        self._call()
        there = self.queues[queue]
        later = (
            decode_message(record).queue_offset
            for record in there.records
            if decode_message(record).store_timestamp >= timestamp
        )
        return next(later, there.max_offset)

    def topic_queues(self, topic: str) -> Sequence[MessageQueue]:
        self._call()
        queues = (queue for queue in self.queues if queue.topic == topic)
        return sorted(queues, reverse=bool(self.lists_backwards))

    def consumer_id_list(self, group: str) -> Sequence[str]:
        self._call()
        clients = self.clients.get(group, {})
        return sorted(clients, reverse=bool(self.lists_backwards))

    def send_heartbeat(self, client_id: str, consumers: Sequence[ConsumerData]) -> None:
        self._call()
        for consumer in consumers:
            self.clients.setdefault(consumer.group, {})[client_id] = consumer
            retry = queue_of(f"%RETRY%{consumer.group}")
            self.queues.setdefault(retry, FakeQueue())

    def unregister_client(self, client_id: str, group: str) -> None:
        self._call()
        self.kill(group, client_id)

    def pull_message(self, request: PullMessageRequest, answer: PullAnswer) -> None:
        self._call()
        self.pulls.append(request)
        if request.topic in self.refuses:
            answer(PullMessageResponse(self.refuses[request.topic]))
            return
        queue = queue_of(request.topic, request.queue_id)
        key = (request.consumer_group, queue)
        reset = self.pending_resets.pop(key, None)
        if PullSysFlag.COMMIT_OFFSET in request.sys_flag:
            self._commit(request.consumer_group, queue, request.commit_offset)
        if reset is not None:
            answer(self._moved(queue, reset))
            return
        response = self._read(request, queue)
        if response.code is ResponseCode.PULL_NOT_FOUND:
            until_ms = self.runtime.now_ms() + request.suspend_timeout_millis
            self.held.append(HeldPull(request, answer, until_ms))
        else:
            answer(response)

    def _moved(self, queue: MessageQueue, offset: int) -> PullMessageResponse:
        there = self.queues[queue]
        code = ResponseCode.PULL_OFFSET_MOVED
        return PullMessageResponse(code, offset, there.min_offset, there.max_offset)

    def _read(
        self, request: PullMessageRequest, queue: MessageQueue
    ) -> PullMessageResponse:
        there, begin = self.queues[queue], request.queue_offset
        if begin < there.min_offset:
            return self._moved(queue, there.min_offset)
        if begin > there.max_offset:
            return self._moved(queue, there.max_offset)
        bounds = (there.min_offset, there.max_offset)
        if begin == there.max_offset:
            return PullMessageResponse(ResponseCode.PULL_NOT_FOUND, begin, *bounds)
        codes = self._codes_of(request)
        found: list[bytes] = []
        scanned = there.records[begin - there.base :][:SCANNED_MAX]
        for record in scanned:
            if len(found) == request.max_msg_nums:
                break
            begin += 1
            tags = decode_message(record).properties.get(PROPERTY_TAGS, "")
            if not codes or tags_code(tags) in codes:
                found.append(record)
        code = ResponseCode.SUCCESS if found else ResponseCode.PULL_RETRY_IMMEDIATELY
        return PullMessageResponse(code, begin, *bounds, tuple(found))

    def _codes_of(self, request: PullMessageRequest) -> tuple[int, ...]:
        consumers = self.clients.get(request.consumer_group, {})
        for consumer in consumers.values():
            for subscription in consumer.subscriptions:
                if subscription.topic == request.topic:
                    return subscription.codes
        return ()

    def lock_batch(
        self, group: str, client_id: str, queues: Sequence[MessageQueue]
    ) -> Sequence[MessageQueue]:
        self._call()
        now_ms, locked = self.runtime.now_ms(), []
        for queue in queues:
            owner, since_ms = self.locks.get((group, queue), (client_id, now_ms))
            if owner == client_id or now_ms - since_ms > LOCK_MAX_LIVE_MS:
                self.locks[group, queue] = client_id, now_ms
                locked.append(queue)
        return locked

    def unlock_batch(
        self, group: str, client_id: str, queues: Sequence[MessageQueue]
    ) -> None:
        self._call()
        for queue in queues:
            if self.locks.get((group, queue), ("", 0))[0] == client_id:
                del self.locks[group, queue]

    def send_message_back(
        self, group: str, record: bytes, delay_level: int, max_reconsume_times: int
    ) -> None:
        self._call()
        if self.refuse_next and self.refuse_next.pop(0):
            raise BrokerFailed("the broker has no room")
        message = decode_message(record)
        self.sent_back.append((message.queue_offset, delay_level))
        self.bodies_sent_back.add(message.body.decode())
        if delay_level < 0 or message.reconsume_times >= max_reconsume_times:
            self.dead.append(record)
            return
        retry = queue_of(f"%RETRY%{group}")
        self.queues.setdefault(retry, FakeQueue())
        properties = {PROPERTY_RETRY_TOPIC: message.topic} | message.properties
        again = Message(
            retry.topic,
            0,
            message.body,
            properties,
            reconsume_times=message.reconsume_times + 1,
        )
        self._append(retry, again)
        self.wake()


def turn(consumer: DefaultMQPushConsumer, name: str) -> int:
    """Do one round of a service."""
    return next(s for s in consumer.services if s.name == name).run_once()


def waits(consumer: DefaultMQPushConsumer) -> int:
    """How many requests wait to be consumed."""
    return len(consumer.waiting)
