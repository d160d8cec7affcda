"""Clients: the consumers of a subject, each in a process of its own.

A client asks whichever broker runs at that moment, if any; it survives the broker's
crashes. All its requests and answers, and all that its listener receives, are recorded
as events.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Final

from crashmq.engine.broker.broker_controller import BrokerController
from crashmq.engine.client.consumer.default_mq_push_consumer import (
    DefaultMQPushConsumer,
)
from crashmq.engine.client.consumer.store.local_file_offset_store import (
    LocalFileOffsetStore,
)
from crashmq.engine.client.consumer.store.remote_broker_offset_store import (
    BrokerFailed,
    KeptOffset,
    OffsetNotFound,
    RemoteBrokerOffsetStore,
)
from crashmq.engine.client.impl.broker_api import PullAnswer
from crashmq.engine.common.message_ext import MessageExt, decode_message
from crashmq.engine.common.message_queue import RETRY_GROUP_TOPIC_PREFIX, MessageQueue
from crashmq.engine.remoting.heartbeat_data import ConsumerData
from crashmq.engine.remoting.pull_message import (
    PullMessageRequest,
    PullMessageResponse,
    PullSysFlag,
)
from crashmq.engine.remoting.response_code import ResponseCode
from crashmq.engine.store.errors import StoreStopped
from crashmq.harness.disk.crash import StoreCrashed
from crashmq.harness.scheduling.sim_runtime import SimRuntime
from crashmq.harness.subjects.connections import Connections, Notified
from crashmq.harness.subjects.consumer_config import config_of
from crashmq.harness.subjects.listeners import Calls, Concurrently, Orderly
from crashmq.harness.subjects.machines import Machines
from crashmq.harness.subjects.observed_offsets import ObservedOffsets
from crashmq.harness.subjects.one_at_a_time import OneAtATime
from crashmq.models.brokers import brokers_of
from crashmq.models.history import (
    Consumed,
    ConsumerBegan,
    ConsumerEnded,
    ConsumerMade,
    ConsumerSuspended,
    ExpiredCleaned,
    Happening,
    HeartbeatTaken,
    ListenerReturned,
    LocksAnswered,
    LocksReturned,
    MembersAnswered,
    NextRebalance,
    OffsetRead,
    OffsetSent,
    OneQueue,
    PullReceived,
    PullSent,
    QueuesHeld,
    ResetTold,
    Resubscribed,
    SendBackRefused,
    SentBack,
    Shown,
)
from crashmq.models.observations import Done, Observation, Ran, Skipped
from crashmq.models.ops import (
    Consume,
    ConsumerEnd,
    ConsumerTask,
    ConsumeStatus,
    Resubscribe,
    StartConsumer,
)
from crashmq.models.program import Setup

NOT_KNOWN = -2
_SERVICES: Final[dict[ConsumerTask, str]] = {
    "rebalance": "rebalance",
    "pull": "pull_message",
    "persist": "persist_all_consumer_offset",
    "heartbeat": "heartbeat",
    "lock": "lock_mq_periodically",
    "clean": "clean_expired_msg",
    "reconnect": "heartbeat",
}
_IN_ORDER: Final[dict[ConsumeStatus, ConsumeStatus]] = {
    "hangs": "success",
    "partly": "success",
}
"""What results mean to a listener in order, which has no time limit."""
_OUT_OF_ORDER: Final[dict[ConsumeStatus, ConsumeStatus]] = {
    "uncommitted": "success",
    "commit": "success",
    "rollback": "later",
    "suspends": "later",
}
_NO_CONSUMER = Skipped("the client has no consumer")
_ENDED = Skipped("the client has ended meanwhile")


class ClientEnded(BaseException):
    """Raised in what a client still does after its process has ended."""


class ListenerHangs(BaseException):
    """Raised by a listener that goes on with its messages when its turn comes again."""


class _Client:
    """One client: its connection to the broker, its listener and its consumer.

    Attributes:
        op: what its consumer is and subscribes now.
        again: what its listener says of messages that fail now, as in ``Consume``.
        is_ended: whether its process has ended; what it does then raises
            ``ClientEnded`` before others could see it.
        connections: those to its broker.
    """

    def __init__(self, clients: Clients, op: StartConsumer) -> None:
        self.op = op
        self.again = 0
        self.is_ended = False
        self.connections = Connections(op.client)
        self._clients = clients
        self._status: ConsumeStatus = "success"
        self._calls = Calls(clients.runtime)
        self._had_by: dict[int, BrokerController] = {}
        self._refused = False
        self.consumer = DefaultMQPushConsumer(
            config_of(op, clients.setup),
            self,
            self._offset_store(op, clients),
            clients.runtime,
            Orderly(self) if op.is_orderly else Concurrently(self),
        )
        self._services = {
            service.name: OneAtATime(service, clients.runtime)
            for service in self.consumer.services
        }
        self._subscribing = clients.runtime.lock()

    def check(self) -> None:
        """Raise ``ClientEnded`` if the process has ended."""
        if self.is_ended:
            raise ClientEnded

    def _offset_store(
        self, op: StartConsumer, clients: Clients
    ) -> RemoteBrokerOffsetStore | ObservedOffsets:
        if not op.broadcasts:
            return RemoteBrokerOffsetStore(op.group, self, clients.runtime)
        mount = clients.machines.disk_of(op.client).mount()
        store = LocalFileOffsetStore(mount, op.client, op.group, clients.runtime)
        return ObservedOffsets(store, self.queue_of_mine, self.check, clients.tell)

    def run(self, task: ConsumerTask, times: int) -> int:
        """Run some rounds of a task; returns how much work they did."""
        if task in ("suspend", "resume"):
            return self._suspend(suspends=task == "suspend")
        if task == "disconnect":
            return self.connections.close_old(self._clients.broker)
        if task == "reconnect":
            self.connections.renew()
        self._refused = False
        service, work = self._services.get(_SERVICES[task]), 0
        for _ in range(times if service is not None else 0):
            assert service is not None
            done = service.run_once()
            work += done
            if not done:
                break
        return work

    def work_by_itself(self) -> int:
        """What a round of each service does while the consumer does not run."""
        return sum([service.run_once() for service in self.consumer.services])

    def _suspend(self, *, suspends: bool) -> int:
        """Suspend or resume the consumer; who is noted as suspended certainly is."""
        if suspends:
            self.consumer.suspend()
        self._clients.note(ConsumerSuspended(self.op.client, suspends))
        if not suspends:
            self.consumer.resume()
        return 1

    def consume(self, op: Consume) -> int:
        """Let the listener consume waiting messages; returns how many."""
        meant = _IN_ORDER if self.op.is_orderly else _OUT_OF_ORDER
        self._status, self.again = meant.get(op.status, op.status), op.again
        self._calls.takes_ms = op.takes_ms
        ran = 0
        for _ in range(op.times):
            try:
                if not self.consumer.consume(op.nth):
                    break
            except ListenerHangs:
                pass  # its messages wait for it to go on
            ran += 1
        return ran

    def take_batch(
        self, messages: Sequence[MessageExt], queue: MessageQueue
    ) -> list[ConsumeStatus]:
        """What the listener does with a batch that it may have begun before.

        Raises:
            ListenerHangs: it does not return yet.
        """
        self.check()
        hanging = self._calls.hanging
        hung = next((one for one in hanging if one[0] is messages), None)
        begins_or_returns = self.take if hung is None else self._return
        if hung is None:
            began_ms = messages[0].consume_start_timestamp
        else:
            self._calls.hanging = [one for one in hanging if one is not hung]
            _, began_ms = hung
            for message in messages:  # it is still the same call
                message.consume_start_timestamp = began_ms
        told = [
            begins_or_returns(message, queue, status)
            for message, status in self._results(messages)
        ]
        if "hangs" in told:
            self._calls.hanging.append((messages, began_ms))
            raise ListenerHangs
        return told

    def _results(
        self, messages: Sequence[MessageExt]
    ) -> Iterator[tuple[MessageExt, ConsumeStatus]]:
        """Each message of a batch, with what the listener returns for it."""
        acked = (len(messages) + 1) // 2
        for number, message in enumerate(messages):
            if self._status != "partly":
                yield message, self._status
            else:
                yield message, "success" if number < acked else "later"

    def _return(
        self, message: MessageExt, queue: MessageQueue, status: ConsumeStatus
    ) -> ConsumeStatus:
        """What a listener that hung returns for a message now, if it does."""
        if status != "hangs":
            self._clients.note(
                ListenerReturned(
                    self.queue_of_mine(queue),
                    message.queue_offset,
                    message.record,
                    status,
                    message.reconsume_times,
                )
            )
        return status

    def take_one(self, message: MessageExt, queue: MessageQueue) -> ConsumeStatus:
        """What a listener in order does with a message."""
        return self.take(message, queue, self._status)

    def take(
        self, message: MessageExt, queue: MessageQueue, status: ConsumeStatus
    ) -> ConsumeStatus:
        """What the listener does with a message."""
        self.check()
        where = self.queue_of_mine(queue)
        self._clients.note(
            Consumed(
                where,
                message.queue_offset,
                message.record,
                status,
                message.reconsume_times,
                Shown(
                    message.topic,
                    message.queue_id,
                    message.queue_offset,
                    message.phy_offset,
                    message.store_timestamp,
                    message.body,
                    message.properties,
                ),
                self._calls.count(queue) - 1,
            )
        )
        return status

    def calls(self, queue: MessageQueue) -> AbstractContextManager[None]:
        """Mark a queue as one of which the listener has a batch, for a while."""
        return self._calls.begin(queue)

    def resubscribe(self, op: Resubscribe) -> None:
        """Subscribe the new topics, and unsubscribe those not wanted any more.

        The retries of its own group stay as the consumer has subscribed them itself.
        """
        with self._subscribing:
            self.check()
            self._clients.note(Resubscribed(op, is_done=False))
            before, now = (self._wanted_by(one) for one in (self.op, op))
            for topic in now:
                self.consumer.subscribe(topic, op.expression, op.expression_type)
            for topic in before:
                if topic not in now:
                    self.consumer.unsubscribe(topic)
            self.check()
            self.op = replace(
                self.op,
                topics=op.topics,
                expression=op.expression,
                expression_type=op.expression_type,
            )
            self._clients.note(Resubscribed(op, is_done=True))

    def _wanted_by(self, op: StartConsumer | Resubscribe) -> list[str]:
        """The topics that an op names, but for the retries of the consumer's group."""
        own = RETRY_GROUP_TOPIC_PREFIX + self.op.group
        if self.op.broadcasts:
            own = ""  # it has none
        return [topic for topic in op.topics.split(",") if topic != own]

    def begin_elsewhere(self, topic: str, queue_id: int, offset: int) -> Observation:
        """Do what the broker tells it: begin a queue that it has at an offset."""
        table = self.consumer.process_queue_table.items()
        its = [
            queue
            for queue, of_queue in table
            if (queue.topic, queue.queue_id) == (topic, queue_id)
            and not of_queue.dropped
        ]
        if not its or self.op.broadcasts:
            return Skipped("the consumer has no such queue, or broadcasts")
        self._clients.note(ResetTold(self.queue_of_mine(its[0]), offset))
        self.consumer.reset_offset(topic, {its[0]: offset})
        return Done()

    def tell_queues(self) -> None:
        """Record which queues the consumer has now."""
        table = self.consumer.process_queue_table
        self.check()
        held = [queue for queue, its in table.items() if not its.dropped]
        self._clients.note(QueuesHeld(self.op.client, _keys(held)))

    def tell_when_next(self) -> None:
        """Record when the next round of the rebalance is due."""
        after_ms = self._services["rebalance"].interval_ms
        self._clients.note(NextRebalance(self.op.client, after_ms))

    def tell_first(self) -> None:
        """Record the first message that the consumer still holds of each queue."""
        if self._clients.runtime.turns_taken is not None:
            return  # others may change the queues meanwhile
        table = self.consumer.process_queue_table.items()
        held = [(one, its.offsets) for one, its in table if not its.dropped]
        first = [(one.topic, one.queue_id, its[0]) for one, its in held if its]
        self._clients.note(
            ExpiredCleaned(self.op.client, tuple(sorted(first)), self._refused)
        )

    def queue_of_mine(self, queue: MessageQueue) -> OneQueue:
        """A queue, with the client and group that work on it."""
        return OneQueue(self.op.client, self.op.group, queue.topic, queue.queue_id)

    @contextmanager
    def _asked(self) -> Iterator[BrokerController]:
        """The present broker, for one request.

        Raises:
            BrokerFailed: there is none, or it could not answer.
            ClientEnded: the client's process has ended.
        """
        self.check()
        broker = self._clients.broker
        if broker is None or not broker.is_started:
            raise BrokerFailed("the broker is down")
        try:
            yield broker
        except (StoreStopped, OSError) as error:
            raise BrokerFailed(str(error)) from None
        self.check()

    @contextmanager
    def _questioned(self) -> Iterator[BrokerController]:
        """The same for a question, whose answer may be lost."""
        if self.connections.loses_question():
            raise BrokerFailed("no answer comes")
        with self._asked() as broker:
            yield broker

    def query_consumer_offset(self, group: str, queue: MessageQueue) -> KeptOffset:
        """Ask for a group's offset."""
        with self._questioned() as broker:
            answer = broker.consumer_manage_processor.query_consumer_offset(
                group, queue.topic, queue.queue_id, self.op.client
            )
            kept = self._kept(broker, queue)
            self._clients.note(
                OffsetRead(self.queue_of_mine(queue), answer.offset, kept)
            )
        if answer.code is not ResponseCode.SUCCESS:
            raise OffsetNotFound(answer.broker_life)
        return KeptOffset(answer.offset, answer.broker_life)

    def update_consumer_offset_oneway(
        self, group: str, queue: MessageQueue, offset: int, broker_life: int
    ) -> None:
        """Commit a group's offset."""
        with self._asked() as broker:
            broker.consumer_manage_processor.update_consumer_offset(
                group, queue.topic, queue.queue_id, offset, self.op.client, broker_life
            )
            kept = self._kept(broker, queue)
            self._clients.note(OffsetSent(self.queue_of_mine(queue), offset, kept))

    def _kept(self, broker: BrokerController, queue: MessageQueue) -> int:
        return broker.consumer_offset_manager.query_offset(
            self.op.group, queue.topic, queue.queue_id
        )

    def max_offset(self, queue: MessageQueue) -> int:
        """The end of a queue."""
        with self._questioned() as broker:
            return broker.admin_broker_processor.get_max_offset(
                queue.topic, queue.queue_id, self.op.client
            )

    def search_offset(self, queue: MessageQueue, timestamp: int) -> int:
        """The first message of a queue stored at or after a time."""
        with self._questioned() as broker:
            return broker.admin_broker_processor.search_offset_by_timestamp(
                queue.topic, queue.queue_id, timestamp, self.op.client
            )

    def topic_queues(self, topic: str) -> Sequence[MessageQueue]:
        """The queues of a topic."""
        with self._questioned():
            brokers = brokers_of(topic, self._clients.setup)
        return [MessageQueue(topic, one, number) for number, one in enumerate(brokers)]

    def consumer_id_list(self, group: str) -> Sequence[str]:
        """The clients of a group, as the broker knows them."""
        with self._questioned() as broker:
            members = broker.consumer_manager.consumer_id_list(group)
            self._clients.note(MembersAnswered(self.op.client, group, tuple(members)))
            return members

    def send_heartbeat(self, client_id: str, consumers: Sequence[ConsumerData]) -> None:
        """Send a heartbeat to the broker."""
        with self._asked() as broker:
            newest = self.connections.newest
            broker.client_manage_processor.heart_beat(client_id, consumers, newest)
            self.connections.was_heard(newest)
            for consumer in consumers:
                subscribed = [
                    (one.topic, one.sub_string, one.expression_type)
                    for one in consumer.subscriptions
                ]
                self._clients.note(
                    HeartbeatTaken(client_id, consumer.group, tuple(sorted(subscribed)))
                )

    def unregister_client(self, client_id: str, group: str) -> None:
        """Tell the broker that this client leaves the group."""
        with self._asked() as broker:
            broker.client_manage_processor.unregister_client(client_id, group)

    def pull_message(self, request: PullMessageRequest, answer: PullAnswer) -> None:
        """Ask for messages; the answer may come later."""
        queue = OneQueue(
            self.op.client, request.consumer_group, request.topic, request.queue_id
        )
        tells = PullSysFlag.COMMIT_OFFSET in request.sys_flag
        with self._asked() as broker:
            told = request.commit_offset if tells else -1
            self._clients.note(PullSent(queue, request.queue_offset, told))
            manager = broker.consumer_offset_manager

            def take(response: PullMessageResponse) -> None:
                if not self._clients.setup.sends_records:
                    self._remember(response, broker)
                kept = NOT_KNOWN
                if tells:
                    kept = manager.query_offset(
                        request.consumer_group, request.topic, request.queue_id
                    )
                self._clients.note(
                    PullReceived(
                        queue,
                        request.queue_offset,
                        response.code.name,
                        response.next_begin_offset,
                        response.messages,
                        kept,
                    )
                )
                answer(response)

            broker.pull_message_processor.process_request(request, take)

    def _remember(
        self, response: PullMessageResponse, broker: BrokerController
    ) -> None:
        """Remember which broker has a message in its log, in its present life."""
        for record in response.messages:
            self._had_by[decode_message(record).phy_offset] = broker

    def lock_batch(
        self, group: str, client_id: str, queues: Sequence[MessageQueue]
    ) -> Sequence[MessageQueue]:
        """Lock queues."""
        with self._asked() as broker:
            locks = broker.rebalance_lock_manager
            granted = locks.try_lock_batch(group, queues, client_id)
            refused = [queue for queue in queues if queue not in granted]
            self._clients.note(
                LocksAnswered(client_id, group, _keys(granted), _keys(refused))
            )
            return granted

    def unlock_batch(
        self, group: str, client_id: str, queues: Sequence[MessageQueue]
    ) -> None:
        """Unlock queues."""
        with self._asked() as broker:
            self._clients.note(LocksReturned(client_id, group, _keys(queues)))
            broker.rebalance_lock_manager.unlock_batch(group, queues, client_id)

    def send_message_back(
        self, group: str, record: bytes, delay_level: int, max_reconsume_times: int
    ) -> None:
        """Send a message back to the broker."""
        was_refused, self._refused = self._refused, True
        message = decode_message(record)
        with self._asked() as broker:
            if broker.schedule is None:
                raise BrokerFailed("the broker delivers no message again")
            is_there = self._had_by.get(message.phy_offset) is broker
            answer = broker.send_message_processor.consumer_send_msg_back(
                group,
                message.phy_offset,
                delay_level,
                max_reconsume_times,
                None if is_there else record,
            )
            queue = OneQueue(self.op.client, group, message.topic, message.queue_id)
            if answer.code is not ResponseCode.SUCCESS:
                code, is_put = answer.code.name, answer.result is not None
                self._clients.note(SendBackRefused(queue, code, is_put, record))
                raise BrokerFailed(answer.remark)
            self._clients.note(SentBack(queue, record))
        self._refused = was_refused


class Clients:
    """All clients that a subject ever had.

    Attributes:
        broker: the present one; None while it is down.
        note: is called with each event of a consumer.
        machines: those that the clients run on.
    """

    def __init__(self, setup: Setup, runtime: SimRuntime) -> None:
        self.setup = setup
        self.runtime = runtime
        self.machines = Machines(setup)
        self.broker: BrokerController | None = None
        self.note: Callable[[Happening], None] = _tell_nobody
        self._running: dict[str, _Client] = {}
        self._beginning = runtime.lock()

    def listen_to(self, broker: BrokerController) -> None:
        """Ask a broker that has started from now on, and hear whom it notifies."""
        self.broker = broker
        broker.consumer_manager.append_listener(Notified(self.tell))

    def tell(self, event: Happening) -> None:
        """Pass an event of a consumer to ``note``."""
        self.note(event)

    def start(self, op: StartConsumer) -> Observation:
        """Start a client's consumer."""
        with self._beginning:
            if op.client in self._running:
                return Skipped("the client has a consumer")
            self._running[op.client] = _Client(self, op)
            self.note(ConsumerBegan(op))

        def begin(client: _Client) -> Observation:
            self.note(ConsumerMade(op.client, client.work_by_itself()))
            client.consumer.start()
            return Done()

        return self._by(op.client, begin, dies=True)

    def _by(
        self,
        name: str,
        does: Callable[[_Client], Observation],
        *,
        dies: bool = False,
    ) -> Observation:
        """Let a client's consumer do something, until it ends or its process does.

        ``dies``: a crash of the broker amid it ends the process too, since nobody does
        the rest.
        """
        client = self._running.get(name)
        if client is None or client.is_ended:
            return _NO_CONSUMER
        try:
            return does(client)
        except ClientEnded:
            return _ENDED
        except StoreCrashed:
            if dies and not client.is_ended:
                client.is_ended = True
                self._gone(client, "kill")
            raise

    def resubscribe(self, op: Resubscribe) -> Observation:
        """Let a client's consumer subscribe something else."""

        def subscribe(client: _Client) -> Observation:
            client.resubscribe(op)
            client.tell_queues()
            return Done()

        return self._by(op.client, subscribe, dies=True)

    def end(self, client: str, how: ConsumerEnd) -> Observation:
        """End a client's consumer."""

        def end(running: _Client) -> Observation:
            work = 0
            if how == "stop":
                running.consumer.shutdown()
                running.check()
                work = running.work_by_itself()
            running.is_ended = True
            try:
                if how == "kill" and self.broker is not None:
                    running.connections.close_all(self.broker)
            finally:
                self._gone(running, how, work)
            return Done()

        return self._by(client, end, dies=True)

    def _gone(self, running: _Client, how: ConsumerEnd, work: int = 0) -> None:
        client = running.op.client
        del self._running[client]
        if running.op.broadcasts:
            self.machines.process_ended(client, how)
        self.note(ConsumerEnded(client, how, work))

    def turn(
        self, client: str, task: ConsumerTask, times: int, lost: int
    ) -> Observation:
        """Do some rounds of a task of a client's consumer."""

        def turn(running: _Client) -> Observation:
            running.connections.lost = lost
            try:
                work = running.run(task, times)
            finally:
                running.connections.lost = 0
            if task == "clean":
                running.tell_first()
            if task == "rebalance":
                running.tell_when_next()
            running.tell_queues()
            return Ran(work)

        return self._by(client, turn)

    def tell_reset(
        self, client: str, topic: str, queue_id: int, offset: int
    ) -> Observation:
        """Let the broker tell a client's consumer to begin a queue at an offset."""

        def reset(running: _Client) -> Observation:
            seen = running.begin_elsewhere(topic, queue_id, offset)
            running.tell_queues()
            return seen

        return self._by(client, reset, dies=True)

    def consume(self, op: Consume) -> Observation:
        """Let a client's consumer work on messages that wait."""
        return self._by(op.client, lambda one: Ran(one.consume(op)))


def _keys(queues: Collection[MessageQueue]) -> tuple[tuple[str, int], ...]:
    """Queues by topic and queue_id, sorted."""
    return tuple(sorted([(queue.topic, queue.queue_id) for queue in queues]))


def _tell_nobody(event: Happening) -> None:
    """Pass on nothing: no one has asked for it yet."""
    del event
