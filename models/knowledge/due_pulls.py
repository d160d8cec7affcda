"""When the consumers of groups have to pull each of their queues again.

A consumer has one pull request for each queue that it works on. Its times are those of
RocketMQ's client: 500 ms after the consumer was given the queue, at once after an
answer, 50 ms after it had too much, 1 s after a refusal, and 30 s and 1 s after a pull
that nobody answers.

Source: RebalanceImpl#dispatchPullRequest, DefaultMQPushConsumerImpl#pullMessage and its
PullCallback, DefaultMQPushConsumer#consumerTimeoutMillisWhenSuspend.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, TypeAlias

from crashmq.models.history import OneQueue
from crashmq.models.plain_state import Forked

FIRST_PULL_MS: Final = 500
FLOW_CONTROL_MS: Final = 50
REFUSED_MS: Final = 1_000
TIME_OUT_MS: Final = 30_000
SPAN_MAX: Final = 2_000
"""So far apart may the messages of a queue be that wait at a consumer.

Source: DefaultMQPushConsumer#consumeConcurrentlyMaxSpan.
"""
ANY_TIME: Final = -1
ANY_NUMBER: Final = 1 << 30

PullState: TypeAlias = Literal["waits", "sent", "refused", "unsure"]


class DuePull(NamedTuple):
    """The pull request of one queue of a consumer.

    Attributes:
        state: it waits for its time; it was sent; it was refused, and a round has to
            take that up; or it is unknown which.
        least_ms: it is not sent before.
        most_ms: a round from then on sends it; or gives it up if it was sent and has no
            answer.
        is_new: the queue was not pulled yet.
        brought: at most so many messages its answers have brought.
    """

    state: PullState
    least_ms: int
    most_ms: int
    is_new: bool = False
    brought: int = 0

    def is_due(self, at_ms: int) -> bool:
        """Whether a round has to do something for it."""
        return self.state == "refused" or self.most_ms <= at_ms

    def was_sent(self, at_ms: int) -> DuePull:
        """The request once it was sent."""
        most_ms = at_ms + TIME_OUT_MS
        least_ms = most_ms + REFUSED_MS
        return DuePull("sent", least_ms, most_ms, brought=self.brought)

    def put_off(self, least_ms: int, most_ms: int) -> DuePull:
        """The request while it waits for a time between these."""
        return self._replace(state="waits", least_ms=least_ms, most_ms=most_ms)

    def is_uncertain(self, at_ms: int) -> DuePull:
        """The request after something that may have sent it or put it off."""
        most_ms = max(self.most_ms, at_ms + TIME_OUT_MS)
        return self._replace(state="unsure", least_ms=ANY_TIME, most_ms=most_ms)


@dataclass(slots=True)
class DuePulls(Forked):
    """Of all consumers.

    Attributes:
        pulls: the pull requests, by queue and consumer.
        unanswered: how many pulls each of them has sent that have no answer.
        halfway: how many changes of its subscriptions each client has begun, and not
            come to the end of.
        heard: of which life of its broker each consumer surely heard last.
        moved: where consumers were sent that have not begun again there.
        asked_ms: when each client's consumer was asked last to work on what it has.
        unsure_locks: the queues of which it is unknown which answer about their lock
            the consumer heard last.
    """

    pulls: dict[OneQueue, DuePull] = field(default_factory=dict)
    unanswered: dict[OneQueue, int] = field(default_factory=dict)
    halfway: dict[str, int] = field(default_factory=dict)
    heard: dict[OneQueue, int] = field(default_factory=dict)
    moved: dict[OneQueue, int] = field(default_factory=dict)
    asked_ms: dict[str, int] = field(default_factory=dict)
    unsure_locks: set[OneQueue] = field(default_factory=set)

    def forget(self, client: str, but_for: tuple[tuple[str, int], ...] = ()) -> None:
        """Record that a client works on these queues alone."""
        for table in (self.pulls, self.heard, self.moved):
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
        """Record that a consumer was given a queue; or, with ``locks``, reads again."""
        due_ms = least_ms = at_ms + FIRST_PULL_MS
        before = self.pulls.get(queue)
        if locks and before is not None and before.is_new:
            least_ms = min(before.least_ms, due_ms)
        self.pulls[queue] = DuePull("waits", least_ms, due_ms, True, brought)

    def sent(self, queue: OneQueue, at_ms: int) -> None:
        """Record that a pull was sent."""
        self.unanswered[queue] = self.unanswered.get(queue, 0) + 1
        if queue in self.pulls:
            self.pulls[queue] = self.pulls[queue].was_sent(at_ms)

    def answered(
        self, queue: OneQueue, at_ms: int, brought: int, state: PullState
    ) -> bool:
        """Record an answer, after which a request is in this state.

        Of two pulls without an answer it is unknown which one it is of; and a pull that
        was given up takes none. Returns whether the consumer surely takes it.
        """
        is_the_only_one = self.unanswered.get(queue, 0) == 1
        self.unanswered[queue] = max(0, self.unanswered.get(queue, 0) - 1)
        pull = self.pulls.get(queue)
        if pull is None:
            return False
        pull = pull._replace(brought=pull.brought + brought)
        is_sure = is_the_only_one and pull.state == "sent"
        if pull.state == "sent":
            least_ms = at_ms + (REFUSED_MS if is_sure and state == "refused" else 0)
            most_ms = at_ms if is_sure else pull.most_ms
            now = state if is_sure else pull.state
            pull = pull._replace(state=now, least_ms=least_ms, most_ms=most_ms)
        self.pulls[queue] = pull
        return is_sure

    def subscribes(self, client: str, at_ms: int, *, is_done: bool) -> None:
        """Record that a client changes its subscriptions, or has come to the end."""
        self.halfway[client] = self.halfway.get(client, 0) + (-1 if is_done else 1)
        for queue, pull in self.pulls.items():
            if queue.client == client:
                most_ms = max(pull.most_ms, at_ms + REFUSED_MS)
                self.pulls[queue] = pull._replace(least_ms=ANY_TIME, most_ms=most_ms)

    def unsure(self, at_ms: int, clients: frozenset[str] | None = None) -> None:
        """Record that it is unknown what these clients have pulled; None: all."""
        for queue, pull in self.pulls.items():
            if clients is None or queue.client in clients:
                self.pulls[queue] = pull.is_uncertain(at_ms)
        for queue in [*self.moved]:
            if clients is None or queue.client in clients:
                del self.moved[queue]
