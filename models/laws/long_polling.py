"""Laws of pulls through a broker: each is answered once, in time, and for a reason.

A pull that finds no message can be held by the broker until one arrives (long polling).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set

from crashmq.models.appended import Appended
from crashmq.models.expressions import matches
from crashmq.models.files.offsets import OffsetKey
from crashmq.models.files.record import tags_code
from crashmq.models.knowledge.group_configs import GroupConfig
from crashmq.models.knowledge.pulls import OpenPull
from crashmq.models.knowledge.reference import VisibleQueue
from crashmq.models.laws.reading import wanted_tags
from crashmq.models.laws.registry import law
from crashmq.models.observations import CODES_OF_READS, BrokerCode, BrokerPulled
from crashmq.models.ops import PullThroughBroker
from crashmq.models.verdict import Violation

SCAN_ENTRIES_MAX = 800
_REFUSED_LATER = ("TOPIC_NOT_EXIST", "INVALID_PARAMETER", "SUBSCRIPTION_NOT_EXIST")
"""What a pull is refused with once a broker has looked at its own permission."""


def name_of_pull(pull: PullThroughBroker) -> str:
    """A pull in words, for reports."""
    return f"pull of {pull.group} on {pull.topic}/{pull.queue_id}"


def _from(pull: PullThroughBroker) -> str:
    return f"{name_of_pull(pull)} from {pull.queue_offset}"


@law(
    "LP-1",
    "a pull is answered exactly once, at once or after it was held, and never after "
    "the broker crashed",
    catalogue="I12",
)
def answered_once(
    pull: PullThroughBroker, answer: BrokerPulled, *, is_open: bool
) -> Iterator[Violation]:
    """``is_open``: it was sent in this run of the broker, and is not answered yet.

    Source: PullRequestHoldService#notifyMessageArriving.
    """
    if not is_open:
        seen = f"it is answered {answer.code}"
        yield Violation(
            _from(pull), seen, "no answer: it has had one, or the broker crashed"
        )


@law(
    "LP-2",
    "a broker that has shut down has answered every pull that it held",
    catalogue="I12",
)
def a_stop_answers_all(left: Sequence[OpenPull]) -> Iterator[Violation]:
    """``left`` are the pulls without an answer.

    Differs: RocketMQ answers none of them.
    """
    for pull in left:
        yield Violation(_from(pull.op), "it is left without an answer", "an answer")


@law(
    "LP-3",
    "with long polling, no pull is still held although a message that it asks for can "
    "be read",
    catalogue="I12",
)
def no_wakeup_is_lost(
    pull: PullThroughBroker, behind: Sequence[Appended]
) -> Iterator[Violation]:
    """Asked after each step; ``behind`` is a message at or past the pull's offset.

    Source: NotifyMessageArrivingListener#arriving.
    """
    for message in behind:
        if _asks_for(pull, message):
            expected = f"an answer, with the message at {message.queue_offset}"
            yield Violation(_from(pull), "it is still held", expected)
            return


def may_ask_for(pull: PullThroughBroker, appended: Appended) -> bool:
    """Whether a pull asks for a message, or for one whose tag has the same hash."""
    if pull.expression_type != "TAG":
        return _asks_for(pull, appended)
    wanted = wanted_tags(pull.tags)
    codes = {tags_code(tag) for tag in wanted}
    return not wanted or tags_code(appended.message.tags) in codes


def _asks_for(pull: PullThroughBroker, appended: Appended) -> bool:
    """Whether a message matches the expression of a pull, which the pull carries."""
    message = appended.message
    if pull.expression_type == "TAG":
        wanted = wanted_tags(pull.tags)
        return not wanted or message.tags in wanted
    told = pull.tags, pull.expression_type
    return matches(*told, message.tags, message.properties) in ("yes", "fails")


@law(
    "LP-4",
    "a held pull is answered without a message only after its timeout, when the "
    "broker shuts down or, if its queue has grown, after a check; a message that "
    "arrives wakes only pulls that may ask for it",
    catalogue="I12",
)
def woken_for_a_reason(
    pull: PullThroughBroker,
    answer: BrokerPulled,
    held_ms: int,
    patience_ms: int,
    *,
    may_fail: bool,
    may_wake: bool,
) -> Iterator[Violation]:
    """A pull that is woken before its message can be read finds nothing and asks again.

    One that is woken by messages that it does not want asks again at each of them.

    Args:
        pull: what was asked.
        answer: the broker's answer.
        held_ms: how long it was held at most.
        patience_ms: how long the broker holds such a pull; 0: a shutdown has begun.
        may_fail: the disk fails, something cannot be read, or a shutdown has begun.
        may_wake: a check, or a message that it may ask for, may have woken it.

    Source: PullRequestHoldService#notifyMessageArriving.
    """
    is_over = patience_ms <= 0 or held_ms >= patience_ms
    seen = f"{answer.code} after {held_ms} ms"
    if answer.code == "PULL_NOT_FOUND" and not is_over:
        yield Violation(_from(pull), seen, f"messages, or {patience_ms} ms of patience")
    may_wake |= is_over or may_fail
    if answer.code == "PULL_RETRY_IMMEDIATELY" and not may_wake:
        yield Violation(_from(pull), seen, "to be held: no message that it asks for")
    if answer.code == "SYSTEM_ERROR" and not may_fail:
        yield Violation(_from(pull), seen, "no error: all can be read")


@law(
    "LP-5",
    "a check of the held pulls answers each pull whose queue has grown past its "
    "offset or whose timeout is over",
    catalogue="I12",
)
def a_look_answers_all_that_is_due(
    held: Sequence[tuple[OpenPull, VisibleQueue]], now_ms: int, patience_ms: int
) -> Iterator[Violation]:
    """Asked after a check; ``held`` are the pulls that are still held.

    A broker holds a pull for ``patience_ms``.

    Source: PullRequestHoldService#checkHoldRequest.
    """
    for pull, queue in held:
        since_ms = pull.held_ms if pull.held_ms is not None else now_ms
        if queue.max_offset > pull.op.queue_offset:
            expected = f"an answer: its queue ends at {queue.max_offset}"
            yield Violation(_from(pull.op), "it is still held", expected)
        elif now_ms - since_ms >= patience_ms:
            seen = f"it has been held for {now_ms - since_ms} ms"
            yield Violation(_from(pull.op), seen, f"an answer after {patience_ms} ms")


@law(
    "LP-6",
    "a pull commits the offset that it carries when it arrives, unless a reset is "
    "pending, and commits nothing when it is woken",
    catalogue="I12",
)
def a_pull_commits_once(
    key: OffsetKey, kept: int, possible: Set[int], told: int | None
) -> Iterator[Violation]:
    """``kept`` is the group's offset after the pull; it must be one of ``possible``.

    Source: PullMessageProcessor#tryCommitOffset.
    """
    if kept not in possible:
        group, topic, queue_id = key
        how = "a woken pull" if told is None else f"a pull that carries {told}"
        expected = " or ".join([str(one) for one in sorted(possible)])
        where = f"{group} on {topic}/{queue_id}"
        yield Violation(where, f"offset {kept} after {how}", expected)


@law(
    "LP-7",
    "a pull that overlaps no other op gets the response code for where its offset "
    "lies in its queue, before its first message, in it, at its end or past it; at "
    "the end it is held if it allows that",
    catalogue="I12 I16",
)
def answered_by_its_code(
    pull: PullThroughBroker,
    answer: BrokerPulled | None,
    queue: VisibleQueue,
    reset_to: int | None,
) -> Iterator[Violation]:
    """``answer`` None: the pull is held.

    A pending reset takes precedence over all else.

    Source: PullMessageProcessor#composeResponseHeader.
    """
    codes, goes_on = _expected(pull, queue, reset_to)
    if answer is None:
        if "PULL_NOT_FOUND" not in codes or not pull.suspends:
            yield Violation(_from(pull), "it is held", " or ".join(codes))
        return
    if "PULL_NOT_FOUND" in codes and pull.suspends:
        yield Violation(_from(pull), answer.code, "to be held")
    elif answer.code not in codes:
        yield Violation(_from(pull), answer.code, " or ".join(codes))
    elif goes_on is not None and answer.next_begin_offset != goes_on:
        seen = f"{answer.code}, go on at {answer.next_begin_offset}"
        yield Violation(_from(pull), seen, f"go on at {goes_on}")


@law(
    "LP-9",
    "a pull is refused for its topic or queue if and only if that does not exist; a "
    "topic exists from its first message until it is deleted",
    catalogue="I16",
)
def refused_for_its_topic(
    pull: PullThroughBroker,
    code: BrokerCode | None,
    queue_nums: int | None,
    *,
    must_know: bool,
    may_know: bool,
) -> Iterator[Violation]:
    """Compares a refusal with the topics that the broker must, and may, know.

    Args:
        pull: what was asked.
        code: the answer's code; None: the pull is held.
        queue_nums: number of queues of its topic; None: unknown.
        must_know: a message was put there, and the topic was not deleted since.
        may_know: a put there was at least attempted.

    Source: PullMessageProcessor#processRequest, its checks of the topic.
    """
    if code == "NO_PERMISSION":
        return  # the broker or its group bars it, which is looked at first (LP-10)
    where, seen = name_of_pull(pull), code or "it is held"
    is_queue = queue_nums is None or 0 <= pull.queue_id < queue_nums
    if code == "TOPIC_NOT_EXIST":
        if must_know:
            yield Violation(where, seen, "an answer: the topic has had a message")
    elif not may_know:
        yield Violation(where, seen, "TOPIC_NOT_EXIST: no message was ever put there")
    elif code == "INVALID_PARAMETER":
        if is_queue and queue_nums is not None:
            yield Violation(where, seen, f"an answer: it has {queue_nums} queues")
    elif not is_queue:
        yield Violation(where, seen, f"INVALID_PARAMETER: it has {queue_nums} queues")


@law(
    "LP-10",
    "a pull is refused with NO_PERMISSION if and only if its broker or its topic must "
    "not be read, or its broker takes no lite pulls and it is one, or its group is "
    "configured not to consume, or not to broadcast while its consumers broadcast",
    catalogue="I16",
)
def refused_for_permission(
    where: str,
    code: str | None,
    possible: Set[GroupConfig],
    *,
    broadcasts: bool | None,
    is_barred: bool,
    is_open: bool,
) -> Iterator[Violation]:
    """Compares the answer to a pull with what an administrator has configured.

    Args:
        where: the pull, in words.
        code: the answer's code; None: the pull is held.
        possible: the configurations that its group may have; empty: unknown.
        broadcasts: whether the group's consumers broadcast; None: some do.
        is_barred: whether the broker is configured to refuse such pulls, whoever pulls.
        is_open: whether the topic may be read, for certain; nothing that we ask of a
            broker changes that, but somebody may edit its table, or the disk rot it.

    Source: PullMessageProcessor#processRequest, its checks of brokerPermission, of
    litePullMessageEnable, of SubscriptionGroupConfig and of TopicConfig.
    """
    if is_barred:
        if code is None or code in (*CODES_OF_READS, *_REFUSED_LATER):
            seen = code or "it is held"
            yield Violation(where, seen, "NO_PERMISSION: the broker must not be read")
        return
    kinds = (True, False) if broadcasts is None else (broadcasts,)
    may = {one.lets_consume(broadcasts=kind) for one in possible for kind in kinds}
    if code == "NO_PERMISSION":
        if may == {True} and is_open:
            yield Violation(where, code, "an answer: its group may consume")
    elif may == {False} and (code is None or code in CODES_OF_READS):
        seen = code or "it is held"
        yield Violation(where, seen, "NO_PERMISSION: its group must not consume")


def _expected(
    pull: PullThroughBroker, queue: VisibleQueue, reset_to: int | None
) -> tuple[tuple[BrokerCode, ...], int | None]:
    """The codes that may answer a pull, and its next_begin_offset; None: any."""
    offset, low, high = pull.queue_offset, queue.min_offset, queue.max_offset
    if reset_to is not None:
        return ("PULL_OFFSET_MOVED",), reset_to
    if high == 0:
        return ("PULL_NOT_FOUND" if offset == 0 else "PULL_OFFSET_MOVED",), 0
    if offset < low:
        return ("PULL_OFFSET_MOVED",), low
    if offset == high:
        return ("PULL_NOT_FOUND",), high
    if offset > high:
        return ("PULL_OFFSET_MOVED",), high
    return ("SUCCESS", "PULL_RETRY_IMMEDIATELY"), None


@law(
    "LP-8",
    "a pull's next_begin_offset lies between its offset and its queue's end, past all "
    "that it returns and, if nothing matches, at most 800 entries ahead",
    catalogue="I16",
)
def a_pull_makes_progress(
    pull: PullThroughBroker, answer: BrokerPulled, end: int
) -> Iterator[Violation]:
    """Uses only what the answer itself reports, so it can be asked amid other ops.

    ``end`` is where the queue ended when the answer was given; a read may see more than
    the bounds that it reports.

    Source: DefaultMessageStore#getMessage, its nextBeginOffset.
    """
    offset, goes_on = pull.queue_offset, answer.next_begin_offset
    seen = f"{answer.code} with {len(answer.messages)}, go on at {goes_on}"
    where = _from(pull)
    if answer.code == "SUCCESS":
        least = offset + len(answer.messages)
        if not (answer.messages and least <= goes_on <= end):
            expected = f"messages, and from {least} to {end}"
            yield Violation(where, seen, expected)
        return
    if answer.messages:
        yield Violation(where, seen, "no messages")
    if answer.code == "PULL_RETRY_IMMEDIATELY":
        looked_at = max(SCAN_ENTRIES_MAX, pull.max_msg_nums)
        least = offset + (pull.max_msg_nums > 0)
        most = min(end, offset + looked_at)
        if not least <= goes_on <= most:
            yield Violation(where, seen, f"from {least} to {most}")
    elif answer.code == "PULL_NOT_FOUND" and goes_on not in (offset, 0):
        yield Violation(where, seen, f"go on at {offset}")
