"""PullMessageProcessor: answers a pull, at once or when a message has come.

A pull is checked; if a reset is pending for its queue it is sent there, else the queue
is read. It commits the offset that it carries. If it finds nothing and allows that, it
is held. A held pull that is woken reads again, commits nothing, and is answered with
whatever is found.

Source: org.apache.rocketmq.broker.processor.PullMessageProcessor,
DefaultPullMessageResultHandler, RocketMQ 5.3. Differs: a pull that meets a reset does
not commit, since its offset is from before the reset; and what a woken pull cannot read
is answered as an error, where RocketMQ's client runs into its timeout.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from crashmq.engine.broker.broker_config import BrokerConfig
from crashmq.engine.broker.longpolling.pull_request import PullRequest
from crashmq.engine.broker.longpolling.pull_request_hold_service import (
    PullRequestHoldService,
)
from crashmq.engine.broker.offset.consumer_offset_manager import ConsumerOffsetManager
from crashmq.engine.broker.offset.recovered_ends import RecoveredEnds
from crashmq.engine.broker.processor.pull_checks import PullChecks, PullRefused
from crashmq.engine.host.probe import probe
from crashmq.engine.host.runtime import Runtime
from crashmq.engine.remoting.pull_message import (
    PullMessageRequest,
    PullMessageResponse,
    PullSysFlag,
)
from crashmq.engine.remoting.response_code import ResponseCode
from crashmq.engine.remoting.subscription_data import SUB_ALL, SubscriptionData
from crashmq.engine.store.errors import StoreStopped
from crashmq.engine.store.message.tags_filter import ANY_TAGS
from crashmq.engine.store.message_filter import MessageFilter
from crashmq.engine.store.message_store import MessageStore
from crashmq.engine.store.results import GetMessageResult, GetMessageStatus

RESET = probe("pull_message.reset", "a pull met the reset of its queue")
COMMITTED = probe("pull_message.committed", "a pull committed its group's offset")
WOKEN = probe("pull_message.woken", "a pull that was held was read again")
FAILED = probe("pull_message.failed", "what a pull asked for could not be read")

PullAnswer = Callable[[PullMessageResponse], None]

_MOVED_UNLESS_AT_0: Final = frozenset(
    {GetMessageStatus.NO_MESSAGE_IN_QUEUE, GetMessageStatus.NO_MATCHED_LOGIC_QUEUE}
)
_CODES: Final = {
    GetMessageStatus.FOUND: ResponseCode.SUCCESS,
    GetMessageStatus.NO_MATCHED_MESSAGE: ResponseCode.PULL_RETRY_IMMEDIATELY,
    GetMessageStatus.MESSAGE_WAS_REMOVING: ResponseCode.PULL_RETRY_IMMEDIATELY,
    GetMessageStatus.OFFSET_OVERFLOW_ONE: ResponseCode.PULL_NOT_FOUND,
    GetMessageStatus.OFFSET_FOUND_NULL: ResponseCode.PULL_NOT_FOUND,
    GetMessageStatus.OFFSET_OVERFLOW_BADLY: ResponseCode.PULL_OFFSET_MOVED,
    GetMessageStatus.OFFSET_TOO_SMALL: ResponseCode.PULL_OFFSET_MOVED,
    GetMessageStatus.OFFSET_RESET: ResponseCode.PULL_OFFSET_MOVED,
}


def code_of(status: GetMessageStatus, queue_offset: int) -> ResponseCode:
    """The code that answers a pull from ``queue_offset``.

    Source: PullMessageProcessor#composeResponseHeader.
    """
    if status in _MOVED_UNLESS_AT_0:
        is_at_0 = queue_offset == 0
        return (
            ResponseCode.PULL_NOT_FOUND if is_at_0 else ResponseCode.PULL_OFFSET_MOVED
        )
    return _CODES[status]


class PullMessageProcessor:
    """Answers pulls; ``hold`` has those that are held."""

    def __init__(
        self,
        store: MessageStore,
        offsets: ConsumerOffsetManager,
        runtime: Runtime,
        config: BrokerConfig,
        checks: PullChecks,
        ends: RecoveredEnds,
        filter_of: Callable[[PullMessageRequest, SubscriptionData], MessageFilter],
    ) -> None:
        self._store = store
        self._offsets = offsets
        self._runtime = runtime
        self._config = config
        self._checks = checks
        self._ends = ends
        self._filter_of = filter_of
        self.hold = PullRequestHoldService(
            store, config, runtime, self.execute_request_when_wakeup
        )

    def process_request(self, request: PullMessageRequest, answer: PullAnswer) -> None:
        """Answer a pull: during this call, or later if it is held.

        ``answer`` is called exactly once; never if the broker crashes.

        Source: PullMessageProcessor#processRequest.
        """
        self._process(request, answer, broker_allow_suspend=True)

    def execute_request_when_wakeup(self, pull: PullRequest) -> None:
        """Answer a pull that was held: it is not held again, and commits nothing.

        Source: PullMessageProcessor#executeRequestWhenWakeup.
        """
        WOKEN.hit()
        self._process(pull.request, pull.answer, broker_allow_suspend=False)

    def _process(
        self,
        request: PullMessageRequest,
        answer: PullAnswer,
        *,
        broker_allow_suspend: bool,
    ) -> None:
        try:
            subscription = self._checks.check(request)
            life = self._ends.tell(request.client_id)
            result = self._result_of(request, subscription)
        except PullRefused as refused:
            answer(PullMessageResponse(refused.code, remark=str(refused)))
            return
        except (StoreStopped, OSError) as error:
            FAILED.hit()
            answer(PullMessageResponse(ResponseCode.SYSTEM_ERROR, remark=str(error)))
            return
        self._try_commit_offset(request, result, broker_allow_suspend)
        response = self._response_of(request, result, life)
        may_wait = broker_allow_suspend and response.code is ResponseCode.PULL_NOT_FOUND
        if not (may_wait and self._is_held(request, subscription, answer)):
            answer(response)

    def _result_of(
        self, request: PullMessageRequest, subscription: SubscriptionData
    ) -> GetMessageResult:
        group, topic, queue_id = (
            request.consumer_group,
            request.topic,
            request.queue_id,
        )
        low = self._store.get_min_offset_in_queue(topic, queue_id)
        high = self._store.get_max_offset_in_queue(topic, queue_id)
        target = self._offsets.query_then_erase_reset_offset(topic, group, queue_id)
        if target is None:
            target = self._where_to_begin_again(request)
        if target is not None:
            RESET.hit()
            return GetMessageResult(GetMessageStatus.OFFSET_RESET, target, low, high)
        takes_all = subscription.sub_string == SUB_ALL
        is_asked_again = self._config.filter_support_retry
        return self._store.get_message(
            topic,
            queue_id,
            request.queue_offset,
            request.max_msg_nums,
            ANY_TAGS
            if takes_all and not is_asked_again
            else self._filter_of(request, subscription),
        )

    def _where_to_begin_again(self, request: PullMessageRequest) -> int | None:
        """Where a client of an earlier life must continue; None: it is current.

        It gets again what it has not consumed yet, and also what took the place of lost
        messages.
        """
        group, topic, queue_id = (
            request.consumer_group,
            request.topic,
            request.queue_id,
        )
        client_id, ends, life = request.client_id, self._ends, request.broker_life
        if not ends.is_stale(client_id, topic, queue_id, request.queue_offset, life):
            ends.knows(client_id, topic, queue_id)
            return None
        end = ends.end_of(topic, queue_id, life)
        if self._checks.is_broadcasting(group):
            return end  # it asks nobody where to begin, and then comes from there
        begin = request.commit_offset
        if PullSysFlag.COMMIT_OFFSET not in request.sys_flag:
            begin = max(0, self._offsets.query_offset(group, topic, queue_id))
        return min(begin, end)

    def _try_commit_offset(
        self,
        request: PullMessageRequest,
        result: GetMessageResult,
        is_first_arrival: bool,
    ) -> None:
        """Commit the offset that a pull carries, when it first arrives.

        Source: PullMessageProcessor#tryCommitOffset, of 4.9 with the role.
        """
        group, topic, queue_id = (
            request.consumer_group,
            request.topic,
            request.queue_id,
        )
        self._offsets.commit_pull_offset(
            group, topic, queue_id, result.next_begin_offset
        )
        tells = PullSysFlag.COMMIT_OFFSET in request.sys_flag
        may_commit = is_first_arrival and not self._store.config.is_slave
        has_met_reset = result.status is GetMessageStatus.OFFSET_RESET
        is_offset = request.commit_offset >= 0
        if tells and may_commit and is_offset and not has_met_reset:
            COMMITTED.hit()
            self._offsets.commit_offset(group, topic, queue_id, request.commit_offset)

    def _response_of(
        self, request: PullMessageRequest, result: GetMessageResult, life: int
    ) -> PullMessageResponse:
        code = code_of(result.status, request.queue_offset)
        next_begin = result.next_begin_offset
        config = self._store.config
        is_moved = code is ResponseCode.PULL_OFFSET_MOVED
        if is_moved and config.is_slave and not config.offset_check_in_slave:
            # It may lag behind its master, which knows the bounds.
            code, next_begin = (
                ResponseCode.PULL_RETRY_IMMEDIATELY,
                request.queue_offset,
            )
        return PullMessageResponse(
            code,
            next_begin,
            result.min_offset,
            result.max_offset,
            result.messages,
            broker_life=life,
        )

    def _is_held(
        self,
        request: PullMessageRequest,
        subscription: SubscriptionData,
        answer: PullAnswer,
    ) -> bool:
        """Hold a pull that found nothing, if it allows that; returns whether."""
        if PullSysFlag.SUSPEND not in request.sys_flag:
            return False
        timeout_ms = request.suspend_timeout_millis
        if not self._config.long_polling_enable:
            timeout_ms = self._config.short_polling_time_mills
        held = PullRequest(
            request,
            answer,
            timeout_ms,
            self._runtime.now_ms(),
            request.queue_offset,
            self._filter_of(request, subscription),
        )
        return self.hold.suspend_pull_request(held)
