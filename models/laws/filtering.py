"""Laws of filtered pulls: a group gets every message that it asked for, and no other.

``models.expressions`` evaluates expressions. A message on which an expression fails is
treated as matching: the broker cannot decide, and the group can still drop it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import partial
from typing import TypeAlias

from crashmq.models.appended import Appended, differs
from crashmq.models.expressions import is_readable, matches
from crashmq.models.files.config_files import config_pair
from crashmq.models.files.filters import (
    FILTERS_PATH,
    FilterKey,
    FilterRows,
    whole_filters,
)
from crashmq.models.files.store_image import BadRecord, decode_record
from crashmq.models.knowledge.filters import NOTHING
from crashmq.models.knowledge.reference import VisibleQueue
from crashmq.models.laws.reading import names_no_tag
from crashmq.models.laws.registry import law
from crashmq.models.limits import FILTERS_KEPT_MS
from crashmq.models.observations import CODES_OF_READS, BrokerCode, FilteredPull
from crashmq.models.ops import PullFiltered, PullThroughBroker
from crashmq.models.verdict import Violation

SCAN_UNITS_MAX = 800
TRANSFER_COUNT_MAX = 32
TRANSFER_BYTES_MAX = 262_144
FAR_TRANSFER_COUNT_MAX = 8
FAR_TRANSFER_BYTES_MAX = 65_536
Asked: TypeAlias = tuple[str, str]
RETRY_TOPIC = "RETRY_TOPIC"
"""The property that says from which topic a message was sent back."""
EVERYTHING = frozenset({("*", "TAG")})


def is_wanted(answer: FilteredPull, appended: Appended) -> bool:
    """Whether a group must get a message, by the expression its pull was filtered by.

    Raises:
        UnknownShape: no program draws such an expression.
    """
    message = (appended.listed_as or appended).message
    told = answer.expression, answer.expression_type
    return matches(*told, message.tags, message.properties) in ("yes", "fails")


def _where(pull: PullFiltered, answer: FilteredPull) -> str:
    return f"{pull.group} from {pull.queue_offset} by {answer.expression}"


@law(
    "FLT-1",
    "a filtered pull returns only messages that its group's expression matches, in "
    "queue order, each byte for byte as appended",
    catalogue="I3 I15",
)
def returns_what_was_asked_for(
    pull: PullFiltered, answer: FilteredPull, queue: Sequence[Appended]
) -> Iterator[Violation]:
    """``queue`` has every message appended to the queue, expired ones included.

    Source: ExpressionMessageFilter#isMatchedByCommitLog.
    """
    at = {message.phy_offset: message for message in queue}
    before = pull.queue_offset - 1
    for data in answer.pulled.messages:
        where = _where(pull, answer)
        try:
            record = decode_record(data)
        except BadRecord as flaw:
            yield Violation(where, str(flaw), "a whole record")
            return
        here = at.get(record.phy_offset)
        if here is None or not before < here.queue_offset:
            seen = f"the message at phy_offset {record.phy_offset}"
            yield Violation(where, seen, "the next ones")
            return
        before = here.queue_offset
        if difference := differs(record, here):
            yield Violation(where, difference, "what was appended")
        elif not is_wanted(answer, here):
            seen = f"message {before} with {here.message.properties}"
            yield Violation(where, seen, "a message that was asked for")
    if answer.pulled.messages and before >= answer.pulled.next_begin_offset:
        seen = f"next_begin_offset {answer.pulled.next_begin_offset}"
        yield Violation(_where(pull, answer), seen, f"behind message {before}")


@law(
    "FLT-2",
    "a filtered pull skips a message only if its group's expression is false for it; "
    "one on which the expression fails is returned",
    catalogue="I3 I15",
)
def passes_over_nothing_asked_for(
    pull: PullFiltered, answer: FilteredPull, there: Sequence[Appended]
) -> Iterator[Violation]:
    """Looks at the messages below next_begin_offset that were not returned.

    The group never gets them, since its next pull begins behind them. So a Bloom filter
    bit map must never reject a message that matches.

    ``there`` are the messages of the queue that a reader must find.

    Source: ExpressionMessageFilter#isMatchedByConsumeQueue.
    """
    returned = {_phy_offset(data) for data in answer.pulled.messages}
    for message in there:
        number = message.queue_offset
        is_passed = pull.queue_offset <= number < answer.pulled.next_begin_offset
        is_passed = is_passed and message.phy_offset not in returned
        if is_passed and is_wanted(answer, message):
            seen = f"message {number} is passed over"
            told = message.message.properties
            yield Violation(_where(pull, answer), seen, f"it is returned: {told}")


def _phy_offset(data: bytes) -> int:
    try:
        return decode_record(data).phy_offset
    except BadRecord:
        return -1


@law(
    "FLT-3",
    "a filtered pull continues behind every message that it looked at, so that a "
    "group that matches nothing reaches the queue's end",
    catalogue="I6 I16",
)
def goes_on_behind_what_it_saw(
    pull: PullFiltered,
    answer: FilteredPull,
    queue: VisibleQueue,
    queue_file_units: int,
    memory_from: int = 0,
) -> Iterator[Violation]:
    """Compares status, message count and next_begin_offset with those of a scan.

    A pull looks at 800 units or as many as were asked for, within one queue file, and
    stops at its limits once it has a message. The limits are lower for messages below
    ``memory_from``, a phy_offset: those are read from disk.

    Source: DefaultMessageStore#getMessage.
    """
    low, high, begin = queue.min_offset, queue.max_offset, pull.queue_offset
    pulled = answer.pulled
    if not low <= begin < high:
        outside = pulled.status not in ("FOUND", "NO_MATCHED_MESSAGE")
        if not outside:
            where = _where(pull, answer)
            yield Violation(where, pulled.status, f"it is not in [{low}, {high})")
        return
    looked_at = max(SCAN_UNITS_MAX, pull.max_msg_nums)
    looked_at = min(looked_at, queue_file_units - begin % queue_file_units)
    there = queue.messages[begin - low :][:looked_at]
    if pull.max_msg_nums <= 0:
        there = []  # who asks for nothing passes over nothing
    wanted = partial(is_wanted, answer)
    taken, seen = _walked(there, pull.max_msg_nums, wanted, memory_from)
    expected = "FOUND" if taken else "NO_MATCHED_MESSAGE"
    told = (pulled.status, len(pulled.messages), pulled.next_begin_offset)
    if told != (expected, taken, begin + seen):
        yield Violation(
            _where(pull, answer),
            f"{told[0]}, {told[1]} messages, next {told[2]}",
            f"{expected}, {taken} messages, next {begin + seen}",
        )


def _walked(
    there: Sequence[Appended],
    most: int,
    wanted: Callable[[Appended], bool],
    memory_from: int,
) -> tuple[int, int]:
    """How many messages a pull returns, and how many it looks at."""
    taken = sent = 0
    for seen, message in enumerate(there):
        is_near = message.phy_offset >= memory_from
        count = TRANSFER_COUNT_MAX if is_near else FAR_TRANSFER_COUNT_MAX
        size_max = TRANSFER_BYTES_MAX if is_near else FAR_TRANSFER_BYTES_MAX
        is_enough = taken >= min(most, count)
        if taken and (is_enough or sent + message.size > size_max):
            return taken, seen
        if wanted(message):
            taken, sent = taken + 1, sent + message.size
    return taken, len(there)


@law(
    "FLT-6",
    "with filterSupportRetry, a broker skips a message of a group's retry topic if "
    "and only if the group's expression for the original topic is false for it",
    catalogue="I3 I15",
)
def retries_are_asked_for_their_topic(
    pull: PullFiltered,
    answer: FilteredPull,
    there: Sequence[Appended],
    asked: Mapping[str, Set[Asked]],
) -> Iterator[Violation]:
    """Checks the messages between the pull's offset and where it goes on.

    Args:
        pull: a pull of a retry topic.
        answer: the answer to it.
        there: the messages of the queue that a reader must find.
        asked: by topic, what the group may have subscribed there; a topic that is
            absent is unknown.

    Source: ExpressionForRetryMessageFilter#isMatchedByCommitLog.
    """
    returned = {_phy_offset(data) for data in answer.pulled.messages}
    for message in there:
        number = message.queue_offset
        if not pull.queue_offset <= number < answer.pulled.next_begin_offset:
            continue
        properties = message.message.properties
        real_topic = properties.get(RETRY_TOPIC)
        known = EVERYTHING if real_topic is None else asked.get(real_topic)
        if known is None:
            continue
        wanted = {_asks_for(one, properties) for one in known}
        told = f"message {number} of {real_topic} with {properties}"
        where = f"{pull.group} on {pull.topic} from {pull.queue_offset}"
        is_returned = message.phy_offset in returned
        if is_returned and True not in wanted:
            yield Violation(where, f"{told} is returned", f"not by {sorted(known)}")
        elif not is_returned and False not in wanted:
            yield Violation(where, f"{told} is skipped", "it is returned")


def _asks_for(asked: Asked, properties: Mapping[str, str]) -> bool:
    """Whether a retry must be returned; tags are not checked again for retries."""
    expression, kind = asked
    outcome = matches(expression, kind, "", properties) if kind != "TAG" else "yes"
    return outcome in ("yes", "fails")


@law(
    "FLT-4",
    "a broker filters the pulls of a group by the newest subscription that the group "
    "has sent it",
    catalogue="I12",
)
def filters_by_the_newest(
    pull: PullFiltered, asked: Asked | None, possible: Set[Asked]
) -> Iterator[Violation]:
    """Asked of pulls by groups that have subscribed in this run of the broker.

    ``asked`` is the expression and type the broker used, None if it had none for the
    group; ``possible`` are those that may be the newest. By a text that is no
    expression a broker filters nothing: the group has no filter then.

    Source: FilterDataMapByTopic#register, ConsumerGroupInfo#updateSubscription.
    """
    if (asked or NOTHING) not in possible:
        seen = "no filter" if asked is None else f"filtered by {asked[1]} {asked[0]}"
        told = " or ".join([f"{kind} {text}" for text, kind in sorted(possible)])
        yield Violation(f"{pull.group} on {pull.topic}", seen, told)


@law(
    "FLT-5",
    "a start loads the consumer filters from their file or, if that is damaged, from "
    "its backup",
    catalogue="I12 I9",
)
def start_loads_the_filters(
    files: Mapping[str, bytes], rows: FilterRows
) -> Iterator[Violation]:
    """Without either file the broker starts without filters.

    If there are files and none is intact, it must not start.

    Asked of every start that succeeds, also on files that were damaged.

    Source: ConfigManager#load, ConsumerFilterManager#decode.
    """
    expected = whole_filters(files)
    if expected is None:
        yield Violation(FILTERS_PATH, "a start, without a whole table", "a refusal")
    elif rows != expected:
        yield Violation(FILTERS_PATH, f"{rows} is loaded", f"{expected}")


@law(
    "SVC-9",
    "a persist of the consumer filters writes the current expression of every group, "
    "and no live filter for a group that now subscribes by tags",
    catalogue="I12 I19",
)
def filters_are_written_as_they_are(
    files: Mapping[str, bytes], now: Mapping[FilterKey, Set[Asked]]
) -> Iterator[Violation]:
    """``now`` are the subscriptions that may be current, by group and topic.

    A group with several possible ones is not judged.

    Source: ConsumerFilterManager#persist,
    BrokerController#initializeBrokerScheduledTasks.
    """
    pair = config_pair(files, FILTERS_PATH)
    if pair.is_there and pair.loaded is None:
        return  # CFG-1 tells of it
    alive = {
        (group, topic): fields.get("expression")
        for topic, of_topic in pair.rows.items()
        for group, fields in of_topic.get("groupFilterData", {}).items()
        if fields.get("dead") is False
    }
    for key, possible in sorted(now.items()):
        if len(possible) != 1:
            continue
        ((expression, kind),) = possible
        expected = expression if kind == "SQL92" else None
        if alive.get(key) != expected:
            where = f"{FILTERS_PATH}, {key[0]} on {key[1]}"
            yield Violation(where, f"{alive.get(key)} is written", f"{expected}")


@law(
    "FLT-8",
    "a persist of the consumer filters forgets those of a group that has had no member "
    "for 24 hours",
    catalogue="I12 I19",
)
def filters_of_the_gone_are_forgotten(
    files: Mapping[str, bytes], gone_ms: Mapping[str, int], now_ms: int
) -> Iterator[Violation]:
    """Otherwise dispatch evaluates them on each message for ever.

    ``gone_ms`` says of groups without a member since when that is so, at the latest.

    Source: ConsumerFilterManager#clean, FilterDataMapByTopic; BrokerConfig
    #filterDataCleanTimeSpan.
    """
    pair = config_pair(files, FILTERS_PATH)
    for topic, of_topic in pair.rows.items():
        for group in of_topic.get("groupFilterData", {}):
            since = gone_ms.get(group)
            if since is not None and now_ms - since >= FILTERS_KEPT_MS:
                where = f"{FILTERS_PATH}, {group} on {topic}"
                seen = f"it is written, {now_ms - since} ms after its last member"
                yield Violation(where, seen, f"none after {FILTERS_KEPT_MS} ms")


@law(
    "FLT-7",
    "a pull is refused for the expression that it carries if and only if that is "
    "invalid (SUBSCRIPTION_PARSE_FAILED), or is SQL92 and the broker has no "
    "enablePropertyFilter (SYSTEM_ERROR)",
    catalogue="I16",
)
def refused_for_its_expression(
    pull: PullThroughBroker,
    code: BrokerCode | None,
    *,
    filters: bool,
    may_fail: bool,
) -> Iterator[Violation]:
    """Checks the code of the answer; None: the pull is held.

    Args:
        pull: what was asked; its topic and group are not what it may be refused for.
        code: the answer's code.
        filters: whether the broker has enablePropertyFilter.
        may_fail: the disk fails, or the broker is stopping.

    Source: PullMessageProcessor#processRequest. Differs: RocketMQ's broker answers a
    pull with an invalid expression as if it asked for every message.
    """
    expected = "an answer"
    is_by_tags = pull.expression_type == "TAG"
    if names_no_tag(pull.tags) if is_by_tags else not is_readable(pull.tags):
        expected = "SUBSCRIPTION_PARSE_FAILED"
    elif not (is_by_tags or filters):
        expected = "SYSTEM_ERROR"
    is_read = code is None or code in CODES_OF_READS
    is_right = is_read if expected == "an answer" else code == expected
    if not is_right and not (may_fail and code == "SYSTEM_ERROR"):
        seen = code or "it is held"
        where = f"pull of {pull.group} on {pull.topic}/{pull.queue_id} by {pull.tags}"
        yield Violation(where, seen, expected)
