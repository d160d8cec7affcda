"""DefaultMQPushConsumerImpl: the pull loop of a push consumer.

Before each pull it checks that the queue is still assigned to the client, that the
consumer runs, and that not too many pulled messages wait. After a pull, whatever its
result, the request goes on at once or after a delay, unless the queue was given up.

Source: org.apache.rocketmq.client.impl.consumer.DefaultMQPushConsumerImpl#pullMessage,
its PullCallback, RocketMQ 5.3. Differs: if a queue ends before the offset that was
pulled, the client goes back to the broker's offset of the group, if that is lower than
the queue's end; in RocketMQ, what was written since is skipped. And the messages of a
pull count only if the topic's subscription has not changed since it was sent, since a
broker answers a held pull by the present subscription; RocketMQ's client drops messages
that the earlier subscription did not match, and goes on after them.
"""

from __future__ import annotations

from dataclasses import dataclass

from crashmq.engine.client.consumer.pull_from_where import PullFromNowhere
from crashmq.engine.client.consumer.push_consumer_config import OFF, PushConsumerConfig
from crashmq.engine.client.consumer.store.offset_store import (
    OffsetStore,
    ReadOffsetType,
)
from crashmq.engine.client.consumer.store.remote_broker_offset_store import BrokerFailed
from crashmq.engine.client.impl.consumer.consume_message_service import (
    ConsumeMessageService,
)
from crashmq.engine.client.impl.consumer.process_queue import ProcessQueue
from crashmq.engine.client.impl.consumer.pull_api_wrapper import (
    PullAPIWrapper,
    messages_that_match,
)
from crashmq.engine.client.impl.consumer.pull_message_service import (
    OutstandingPull,
    PullMessageService,
)
from crashmq.engine.client.impl.consumer.pull_request import PullRequest
from crashmq.engine.client.impl.consumer.rebalance_service import RebalanceService
from crashmq.engine.common.message_queue import MessageQueue
from crashmq.engine.host.probe import probe
from crashmq.engine.host.runtime import Runtime
from crashmq.engine.remoting.pull_message import PullMessageResponse
from crashmq.engine.remoting.response_code import ResponseCode

DELAY_MS_WHEN_EXCEPTION = 1_000
DELAY_MS_WHEN_SUSPENDED = 1_000
DELAY_MS_WHEN_FLOW_CONTROL = 50
DELAY_MS_WHEN_BROKER_FLOW_CONTROL = 20
MIB = 1024 * 1024
_READ = (
    ResponseCode.SUCCESS,
    ResponseCode.PULL_NOT_FOUND,
    ResponseCode.PULL_RETRY_IMMEDIATELY,
)
"""The answers to a pull that say where it is in the queue."""
_TOLD = (*_READ, ResponseCode.PULL_OFFSET_MOVED)
"""The answers after which a client knows where it is in this life of the broker."""

FLOW_CONTROL = probe("pull.flow_control", "too much was pulled and not consumed")
NOT_LOCKED = probe("pull.not_locked", "a queue was due that is not locked")
GONE = probe("pull.gone", "an answer came to a pull of a queue that was dropped")
FOUND = probe("pull.found", "a pull brought messages")
NOTHING = probe("pull.nothing", "a pull brought nothing")
ILLEGAL = probe("pull.offset_illegal", "a pull's offset was not of its queue")
BEYOND = probe("pull.beyond", "a pull's offset was beyond the end of its queue")
OUTDATED = probe("pull.outdated", "a pull asked for what is not subscribed any more")
REFUSED = probe("pull.refused", "a pull failed, or the broker did not answer it")


@dataclass(slots=True)
class FlowLimits:
    """How much of a queue may wait to be consumed: in messages, and in MiB."""

    messages: int
    mib: int

    def divide(self, config: PushConsumerConfig, queues: int) -> None:
        """Divide the thresholds of a topic, if it has any, by the number of queues.

        Source: RebalancePushImpl#messageQueueChanged, which counts those of all topics.
        """
        if queues and config.pull_threshold_for_topic != OFF:
            self.messages = max(1, config.pull_threshold_for_topic // queues)
        if queues and config.pull_threshold_size_for_topic != OFF:
            self.mib = max(1, config.pull_threshold_size_for_topic // queues)


class DefaultMQPushConsumerImpl:
    """The pull loop of one consumer."""

    def __init__(
        self,
        config: PushConsumerConfig,
        pull_api_wrapper: PullAPIWrapper,
        offset_store: OffsetStore,
        rebalance_service: RebalanceService,
        consume_message_service: ConsumeMessageService,
        runtime: Runtime,
    ) -> None:
        self.pull_message_service = PullMessageService(runtime)
        self.paused = False
        self.limits = FlowLimits(
            config.pull_threshold_for_queue, config.pull_threshold_size_for_queue
        )
        self._config = config
        self._pull_api_wrapper = pull_api_wrapper
        self._offset_store = offset_store
        self._rebalance_service = rebalance_service
        self._rebalance_impl = rebalance_service.rebalance_impl
        self._consume_message_service = consume_message_service
        self._runtime = runtime

    def pull_message(self, request: PullRequest) -> int:
        """Send a request, or delay it; returns how many were sent."""
        if request.process_queue.dropped:
            return 0  # Only with its queue a request ends.
        request.process_queue.last_pull_timestamp = self._runtime.now_ms()
        delay_ms = self._delay_of(request)
        if delay_ms:
            self._later(request, delay_ms)
            return 0
        return self._send(request)

    def _delay_of(self, request: PullRequest) -> int:
        """For how many ms a request has to wait; 0: not at all."""
        if self.paused:
            return DELAY_MS_WHEN_SUSPENDED
        if self._has_enough(request.process_queue):
            FLOW_CONTROL.hit()
            return DELAY_MS_WHEN_FLOW_CONTROL
        if self._config.is_orderly and not self._begins_locked(request):
            NOT_LOCKED.hit()
            return DELAY_MS_WHEN_EXCEPTION
        return 0

    def _has_enough(self, queue: ProcessQueue) -> bool:
        if queue.msg_count > self.limits.messages:
            return True
        if queue.msg_size // MIB > self.limits.mib:
            return True
        span_max = self._config.consume_concurrently_max_span
        return not self._config.is_orderly and queue.max_span > span_max

    def _begins_locked(self, request: PullRequest) -> bool:
        """Whether a queue is locked, and its offset was read again after that."""
        if not self._config.is_clustering:
            return True
        if not request.process_queue.lease.locked:
            return False
        if request.previously_locked:
            return True
        try:
            offset = self._rebalance_impl.compute_pull_from_where(request.queue)
        except PullFromNowhere:
            return False
        request.next_offset = offset
        request.previously_locked = True
        return True

    def _send(self, request: PullRequest) -> int:
        subscription = self._rebalance_impl.subscriptions.get(request.queue.topic)
        if subscription is None:
            self._later(request, DELAY_MS_WHEN_EXCEPTION)
            return 0
        answer = self.pull_message_service.sent(request, subscription)
        try:
            self._pull_api_wrapper.pull_kernel_impl(request, subscription, answer)
        except BrokerFailed:
            REFUSED.hit()
            self.pull_message_service.unsent(request)
            self._later(request, DELAY_MS_WHEN_EXCEPTION)
        return 1

    def on_answer(self, pull: OutstandingPull, response: PullMessageResponse) -> None:
        """Continue a request after its answer.

        Source: PullCallback#onSuccess, #onException.
        """
        request = pull.request
        if request.process_queue.dropped:
            GONE.hit()
            return
        if response.code in _TOLD:
            self._offset_store.heard_of(request.queue, response.broker_life)
        is_asked = self._rebalance_impl.subscriptions.is_still_asked(pull.subscription)
        if response.code in _READ and not is_asked:
            OUTDATED.hit()
            self.pull_message_service.execute_pull_request_immediately(request)
            return
        match response.code:
            case ResponseCode.SUCCESS:
                self._on_found(pull, response)
            case ResponseCode.PULL_NOT_FOUND | ResponseCode.PULL_RETRY_IMMEDIATELY:
                NOTHING.hit()
                request.next_offset = response.next_begin_offset
                self._correct_tags_offset(request)
                self.pull_message_service.execute_pull_request_immediately(request)
            case ResponseCode.PULL_OFFSET_MOVED:
                ILLEGAL.hit()
                self._on_offset_illegal(request, response)
            case ResponseCode.FLOW_CONTROL:
                self._later(request, DELAY_MS_WHEN_BROKER_FLOW_CONTROL)
            case _:
                REFUSED.hit()
                self._later(request, DELAY_MS_WHEN_EXCEPTION)

    def on_timeout(self, pull: OutstandingPull) -> None:
        """Continue a request whose answer did not come in time."""
        REFUSED.hit()
        self._later(pull.request, DELAY_MS_WHEN_EXCEPTION)

    def _later(self, request: PullRequest, delay_ms: int) -> None:
        self.pull_message_service.execute_pull_request_later(request, delay_ms)

    def _on_found(self, pull: OutstandingPull, response: PullMessageResponse) -> None:
        request = pull.request
        messages = messages_that_match(response.messages, pull.subscription)
        if messages:
            FOUND.hit()
            is_new_run = request.process_queue.put_message(messages)
            self._consume_message_service.submit_consume_request(
                messages,
                request.process_queue,
                request.queue,
                dispatch_to_consume=is_new_run,
            )
        # Only now: a request that is broken off before would skip the messages.
        request.next_offset = response.next_begin_offset
        if messages and self._config.pull_interval > 0:
            self._later(request, self._config.pull_interval)
        else:
            self.pull_message_service.execute_pull_request_immediately(request)

    def _correct_tags_offset(self, request: PullRequest) -> None:
        """Commit past messages that do not match, if no other message waits."""
        if request.process_queue.msg_count == 0:
            request.process_queue.commit_offset(
                request.queue,
                request.next_offset,
                self._offset_store,
                increase_only=True,
            )

    def _on_offset_illegal(
        self, request: PullRequest, response: PullMessageResponse
    ) -> None:
        """Restart the queue at the offset that the broker answered."""
        offset = response.next_begin_offset
        if not self._config.is_clustering:
            offset = self._where_it_is(request.queue, response)
        elif request.next_offset > response.max_offset:
            BEYOND.hit()
            offset = self._where_the_group_is(request.queue, offset)
        self._rebalance_impl.begin_anew(request.queue, offset, request.process_queue)
        self._rebalance_service.rebalance_immediately()

    def _where_it_is(self, queue: MessageQueue, response: PullMessageResponse) -> int:
        """Where to continue if only the consumer itself knows its offset.

        What it has pulled and not consumed is dropped, so it has to be pulled again.
        """
        own = self._offset_store.read_offset(
            queue, ReadOffsetType.MEMORY_FIRST_THEN_STORE
        )
        is_there = response.min_offset <= own <= response.next_begin_offset
        return own if is_there else response.next_begin_offset

    def _where_the_group_is(self, queue: MessageQueue, end: int) -> int:
        """Where to continue in a queue that has lost its end: at most at ``end``."""
        stored = self._offset_store.read_offset(queue, ReadOffsetType.READ_FROM_STORE)
        return min(stored, end) if stored >= 0 else end
