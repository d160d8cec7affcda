"""When a consumer has to send the next pull of each of its queues.

A consumer has one pull request for each queue assigned to it. The waits are those of
RocketMQ's client: 500 ms after the queue was assigned; none after an answer, but for
pullInterval after one with messages; 50 ms if flow control holds it back; 1 s after a
refusal; and 30 s plus 1 s after a pull without an answer.

Source: RebalanceImpl#dispatchPullRequest, DefaultMQPushConsumerImpl#pullMessage and its
PullCallback, DefaultMQPushConsumer#consumerTimeoutMillisWhenSuspend.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, TypeAlias

from crashmq.models.history import OneQueue
from crashmq.models.ops import ALL_TIME_MS
from crashmq.models.plain_state import Forked

FIRST_PULL_MS: Final = 500
FLOW_CONTROL_MS: Final = 50
REFUSED_MS: Final = 1_000
TIME_OUT_MS: Final = 30_000
ANY_TIME: Final = -ALL_TIME_MS
ANY_NUMBER: Final = 1 << 30

PullState: TypeAlias = Literal["waits", "sent", "refused", "found", "unsure"]


class DuePull(NamedTuple):
    """The pull request of one queue of a consumer.

    Attributes:
        state: waiting for its time; sent; refused, or answered with messages after
            which the consumer pauses, which the next round has to act on; or unknown.
        least_ms: the earliest time at which it may be sent.
        most_ms: the time from which on a round must send it or, if it was sent and has
            no answer, give it up.
        is_new: the queue was not pulled yet.
        brought: at most so many messages were in its answers.
    """

    state: PullState
    least_ms: int
    most_ms: int
    is_new: bool = False
    brought: int = 0

    def is_due(self, at_ms: int) -> bool:
        """Whether a round at ``at_ms`` must act on the request."""
        return self.state in ("refused", "found") or self.most_ms <= at_ms

    def was_sent(self, at_ms: int) -> DuePull:
        """The request after it was sent at ``at_ms``."""
        most_ms = at_ms + TIME_OUT_MS
        least_ms = most_ms + REFUSED_MS
        return DuePull("sent", least_ms, most_ms, brought=self.brought)

    def put_off(self, least_ms: int, most_ms: int) -> DuePull:
        """The request while it waits until a time in [``least_ms``, ``most_ms``]."""
        return self._replace(state="waits", least_ms=least_ms, most_ms=most_ms)

    def is_uncertain(self, at_ms: int) -> DuePull:
        """The request after something that may have sent or delayed it."""
        most_ms = max(self.most_ms, at_ms + TIME_OUT_MS)
        return self._replace(state="unsure", least_ms=ANY_TIME, most_ms=most_ms)


class PullLimit(NamedTuple):
    """How many messages of a queue may wait before its consumer stops pulling it.

    The consumer's own limit is between both.
    """

    least: int
    most: int

    def may_become(self, other: PullLimit) -> PullLimit:
        """The limit that is this one or the other."""
        least, most = min(self.least, other.least), max(self.most, other.most)
        return PullLimit(least, most)

    @classmethod
    def divided(cls, threshold: int, queues: int, at_most: int) -> PullLimit:
        """A topic's threshold, divided by that number of queues, up to ``at_most``.

        Source: RebalancePushImpl#messageQueueChanged.
        """
        return cls(
            max(1, threshold // max(1, at_most)), max(1, threshold // max(1, queues))
        )


@dataclass(slots=True)
class DuePulls(Forked):
    """The pull requests of all consumers.

    Attributes:
        pulls: the pull requests, by consumer and queue.
        unanswered: how many pulls of each queue are without an answer.
        halfway: by client, how many changes of subscriptions have begun and not ended.
        heard: the run of the broker from which each consumer certainly heard last.
        moved: the offset to which PULL_OFFSET_MOVED sent a consumer that has not pulled
            there yet.
        told: the offset at which its broker told a consumer to begin, which has not
            committed anything since.
        asked_ms: when each client's consumer was last asked to consume.
        begun_ms: when each client's consumer started, if nothing else ran meanwhile.
        looked_ms: when a round of the pull service last looked at a queue; it may have
            done so later, too.
        unsure_locks: queues where it is unknown which of several lock answers the
            consumer got last.
        suspended: the clients whose consumers are suspended, and whether that is
            certain.
        limits: those of consumers that divide a topic's threshold by their queues.
    """

    pulls: dict[OneQueue, DuePull] = field(default_factory=dict)
    unanswered: dict[OneQueue, int] = field(default_factory=dict)
    halfway: dict[str, int] = field(default_factory=dict)
    heard: dict[OneQueue, int] = field(default_factory=dict)
    moved: dict[OneQueue, int] = field(default_factory=dict)
    told: dict[OneQueue, int] = field(default_factory=dict)
    asked_ms: dict[str, int] = field(default_factory=dict)
    begun_ms: dict[str, int] = field(default_factory=dict)
    looked_ms: dict[OneQueue, int] = field(default_factory=dict)
    unsure_locks: set[OneQueue] = field(default_factory=set)
    suspended: dict[str, bool] = field(default_factory=dict)
    limits: dict[str, PullLimit] = field(default_factory=dict)

    def is_awaited(self, queue: OneQueue) -> bool:
        """Whether a consumer certainly waits for the only pull without an answer."""
        pull = self.pulls.get(queue)
        is_sent = pull is not None and pull.state == "sent"
        return is_sent and self.unanswered.get(queue, 0) <= 1

    def began(self, client: str, at_ms: int | None) -> None:
        """Record that a client's consumer has started; ``at_ms``: when, if known."""
        self.begun_ms.pop(client, None)
        self.limits.pop(client, None)
        if at_ms is not None:
            self.begun_ms[client] = at_ms

    def ended(self, client: str) -> None:
        """Record that a client's consumer has ended."""
        self.forget(client)
        self.suspended.pop(client, None)
        self.told = {one: at for one, at in self.told.items() if one.client != client}

    def forget(self, client: str, but_for: tuple[tuple[str, int], ...] = ()) -> None:
        """Record that only the queues ``but_for`` are assigned to a client now."""
        for table in (self.pulls, self.heard, self.moved, self.looked_ms):
            gone = [
                one
                for one in table
                if one.client == client and (one.topic, one.queue_id) not in but_for
            ]
            for one in gone:
                del table[one]

    def given(
        self, queue: OneQueue, at_ms: int, *, locks: bool, brought: int = 0
    ) -> None:
        """Record an assigned queue; ``locks``: or one whose offset is read again."""
        due_ms = least_ms = at_ms + FIRST_PULL_MS
        before = self.pulls.get(queue)
        may_wait = before is not None and (before.is_new or before.state == "unsure")
        if locks and before is not None and may_wait:
            least_ms = min(before.least_ms, due_ms)
        self.pulls[queue] = DuePull("waits", least_ms, due_ms, True, brought)

    def sent(self, queue: OneQueue, at_ms: int) -> None:
        """Record that a pull was sent."""
        self.unanswered[queue] = self.unanswered.get(queue, 0) + 1
        if queue in self.pulls:
            self.pulls[queue] = self.pulls[queue].was_sent(at_ms)

    def answered(
        self,
        queue: OneQueue,
        at_ms: int,
        brought: int,
        state: PullState,
        pause_ms: int = 0,
    ) -> bool:
        """Record an answer that leaves the pull request in ``state``.

        ``pause_ms``: for so long at least the consumer does not pull again.

        Returns whether the consumer certainly accepts the answer. It may not if two
        pulls are unanswered, since it is unknown which one this answers, or if the pull
        was given up.
        """
        is_the_only_one = self.unanswered.get(queue, 0) == 1
        self.unanswered[queue] = max(0, self.unanswered.get(queue, 0) - 1)
        pull = self.pulls.get(queue)
        if pull is None:
            return False
        pull = pull._replace(brought=pull.brought + brought)
        is_sure = is_the_only_one and pull.state == "sent"
        if pull.state == "sent":
            least_ms = at_ms + (pause_ms if is_sure else 0)
            most_ms = at_ms if is_sure else pull.most_ms
            now = state if is_sure else "unsure"
            pull = pull._replace(state=now, least_ms=least_ms, most_ms=most_ms)
        self.pulls[queue] = pull
        return is_sure

    def was_moved(self, queue: OneQueue, at_ms: int, *, is_sure: bool) -> None:
        """Record a PULL_OFFSET_MOVED: the consumer gives the queue up, and begins anew.

        Unless ``is_sure`` it may answer a pull of before the queue was assigned again.
        """
        pull = self.pulls.pop(queue, None)
        self.moved.pop(queue, None)
        self.looked_ms.pop(queue, None)
        if pull is not None and not is_sure:
            self.pulls[queue] = pull.is_uncertain(at_ms)

    def subscribes(self, client: str, at_ms: int, *, is_done: bool) -> None:
        """Record that a client begins to change its subscriptions, or has ended it."""
        self.halfway[client] = self.halfway.get(client, 0) + (-1 if is_done else 1)
        for queue, pull in self.pulls.items():
            if queue.client == client:
                most_ms = max(pull.most_ms, at_ms + REFUSED_MS)
                self.pulls[queue] = pull._replace(least_ms=ANY_TIME, most_ms=most_ms)

    def suspends(self, client: str, *, is_suspended: bool, certain: bool) -> None:
        """Record that a consumer was suspended or resumed; or perhaps not."""
        if is_suspended:
            self.suspended[client] = certain
        elif certain:
            self.suspended.pop(client, None)
        elif client in self.suspended:
            self.suspended[client] = False

    def unsure(self, at_ms: int, clients: frozenset[str] | None = None) -> None:
        """Record that what these clients have pulled is unknown; None: all clients."""
        for queue, pull in self.pulls.items():
            if clients is None or queue.client in clients:
                self.pulls[queue] = pull.is_uncertain(at_ms)
        for table in (self.moved, self.looked_ms):
            for queue in [*table]:
                if clients is None or queue.client in clients:
                    del table[queue]
