"""Laws of what a broker writes about groups and the topics it creates for them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from crashmq.models.files.config_tables import TableTurn
from crashmq.models.knowledge.group_configs import GroupConfig, config_in
from crashmq.models.knowledge.progress import TopicsWritten
from crashmq.models.knowledge.topics import Shape, as_made
from crashmq.models.laws.registry import law
from crashmq.models.limits import QUEUES_OF_A_TOPIC
from crashmq.models.messages import MessageToPut
from crashmq.models.ops import ChangeTopic, ConfigureGroup
from crashmq.models.verdict import Violation


@law(
    "TOP-1",
    "before a broker confirms a message sent back, the group and the topic it went to "
    "are in the broker's config files",
    catalogue="I12 I8",
)
def a_topic_is_written_before_it_is_used(
    group: str, now: TopicsWritten, topics: frozenset[str]
) -> Iterator[Violation]:
    """``topics`` are those to which messages of the group were put.

    After a start that does not know the topic, no consumer gets its messages.

    Source: TopicConfigManager#createTopicInSendMessageBackMethod,
    SubscriptionGroupManager#findSubscriptionGroupConfig.
    """
    if group not in now.groups:
        seen = "it is used and not written"
        yield Violation(f"group {group}", seen, "in subscriptionGroup.json")
    for topic in sorted(topics):
        if topic not in now.names:
            seen = f"{topic} is used and not written"
            yield Violation(f"group {group}", seen, "in topics.json")


@law(
    "TOP-2",
    "the data version of a broker's topic table changes only if the topics change",
    catalogue="I12",
)
def the_version_counts_changes(
    now: TopicsWritten, before: TopicsWritten
) -> Iterator[Violation]:
    """Brokers and name servers compare it, and take over the newer table.

    Source: DataVersion, TopicConfigManager#updateTopicConfig.
    """
    if now.rows == before.rows and now.version != before.version:
        seen = f"version {now.version} of the same topics"
        yield Violation("config/topics.json", seen, f"version {before.version}")


@law(
    "TOP-3",
    "once a broker has stored a message that a producer sent, its topic is in the "
    "broker's file, with as many queues as the producer asks for, at most eight",
    catalogue="I12 I8",
)
def a_topic_has_the_queues_asked_for(topic: str, queues: int) -> Iterator[Violation]:
    """``queues`` is how many it has, -1: it is not there. Programs ask for eight.

    Source: AbstractSendMessageProcessor#msgCheck,
    TopicConfigManager#createTopicInSendMessageMethod.
    """
    if queues != QUEUES_OF_A_TOPIC:
        seen = f"it has {queues} queues" if queues >= 0 else "it is not there"
        yield Violation(f"topic {topic}", seen, f"{QUEUES_OF_A_TOPIC} queues")


@law(
    "TOP-4",
    "a broker stores a message that a producer sends only if its topic has the queue, "
    "may be written, and is not one of RocketMQ's own",
    catalogue="I12",
)
def sent_to_a_queue_of_its_topic(sent: MessageToPut, puts: int) -> Iterator[Violation]:
    """Asked if it has to be refused; ``puts``: how often it was put at all.

    No consumer would get it from a queue that its topic does not have.

    Source: AbstractSendMessageProcessor#msgCheck, its "request queueId is illegal",
    TopicValidator#isNotAllowedSendTopic.
    """
    if puts:
        where = f"{sent.topic}/{sent.queue_id}"
        yield Violation(where, "a sent message is stored", "a refusal")


@law(
    "TOP-5",
    "once a broker has confirmed a change of a topic, or has made it for a producer, "
    "the topic has the queues and the permission that were asked for in its file, also "
    "at the next start",
    catalogue="I12 I8",
)
def a_topic_is_as_it_was_changed(
    rows: Mapping[str, Any], possible: Mapping[str, frozenset[Shape]]
) -> Iterator[Violation]:
    """``possible`` has several shapes if it is unknown which change counts.

    Source: AdminBrokerProcessor#updateAndCreateTopic, which writes before it answers;
    TopicConfigManager#createTopicInSendMessageMethod.
    """
    for topic, shapes in sorted(possible.items()):
        row = rows.get(topic)
        if as_made(topic) in shapes and len(shapes) > 1 and row is None:
            continue  # that it was never made may be right too
        found = {} if row is None else row
        queues = found.get("readQueueNums"), found.get("writeQueueNums")
        perm = found.get("perm")
        if (*queues, perm) not in {(*one[:2], _perm(one)) for one in shapes}:
            seen = f"{queues[0]} and {queues[1]} queues, perm {perm}"
            wanted = " or ".join([f"{one}" for one in sorted(shapes)])
            yield Violation(f"topic {topic}", seen, wanted)


def _perm(shape: Shape) -> int:
    """Source: PermName, its PERM_READ and PERM_WRITE."""
    return 4 + 2 * shape.is_writeable


@law(
    "TOP-6",
    "a broker whose disk works confirms each change of a topic that is legal, and each "
    "configuration of a group",
    catalogue="I12",
)
def a_legal_change_is_confirmed(
    change: ChangeTopic | ConfigureGroup, *, is_done: bool
) -> Iterator[Violation]:
    """Asked of changes that a broker must carry out.

    Source: AdminBrokerProcessor#updateAndCreateTopic, its TopicValidator;
    #updateAndCreateSubscriptionGroup.
    """
    if not is_done:
        match change:
            case ChangeTopic(topic):
                where = f"topic {topic}"
            case ConfigureGroup(group):
                where = f"group {group}"
        yield Violation(where, "its change is refused", "a confirmation")


@law(
    "TOP-7",
    "a group's retry topic is made with as many queues as its group is configured to "
    "have for retries, and is not made for a group that has none",
    catalogue="I12",
)
def a_retry_topic_is_made_for_its_group(
    turn: TableTurn, possible: Mapping[str, frozenset[int]]
) -> Iterator[Violation]:
    """Asked of a table with new rows.

    ``possible``: by topic, what its group's number of retry queues may be.

    Source: ClientManageProcessor#heartBeat, AbstractSendMessageProcessor
    #consumerSendMsgBack, their createTopicInSendMessageBackMethod.
    """
    before = {name for name, _ in turn.before.rows}
    for topic, row in sorted(turn.now.rows):
        if topic in before or topic not in possible:
            continue
        told = json.loads(row)
        queues = told.get("readQueueNums"), told.get("writeQueueNums")
        if queues not in {(one, one) for one in possible[topic] if one > 0}:
            seen = f"it is made with {queues[0]} and {queues[1]} queues"
            wanted = " or ".join([f"{one}" for one in sorted(possible[topic])])
            yield Violation(f"topic {topic}", seen, f"{wanted} queues")


@law(
    "GRP-1",
    "a group's configuration is the last one that the broker confirmed: in memory, in "
    "its file, and after the next start",
    catalogue="I12 I8",
)
def a_group_is_as_it_was_configured(
    rows: Mapping[str, Any], possible: Mapping[str, frozenset[GroupConfig]]
) -> Iterator[Violation]:
    """``possible`` has several configurations if it is unknown which one came last.

    Source: SubscriptionGroupManager#updateSubscriptionGroupConfig, which writes before
    it answers; #deleteSubscriptionGroupConfig.
    """
    for group, told in sorted(possible.items()):
        found = config_in(rows, group)
        if found not in told:
            wanted = " or ".join([_config(one) for one in sorted(told)])
            yield Violation(f"group {group}", _config(found), wanted)


@law(
    "GRP-2",
    "a group is created by an administrator or by a client that uses it, not by a "
    "question, by another group's change or by a client that leaves",
    catalogue="I12",
)
def no_group_comes_of_itself(turn: TableTurn) -> Iterator[Violation]:
    """Asked of ops that use no group; else one that was deleted would be back.

    Source: ClientManageProcessor#unregisterClient, which creates it in RocketMQ;
    docs/sharp-edges.md says that we do not.
    """
    was, now = ({name for name, _ in one.rows} for one in (turn.before, turn.now))
    for group in sorted(now - was):
        yield Violation(f"group {group}", "it has been created", "nobody uses it")


def _config(config: GroupConfig) -> str:
    told = f"{config.retry_max_times} retries, {config.consume_timeout_minute} min"
    told += "" if config.consume_enable else ", no consumption"
    told += "" if config.consume_broadcast_enable else ", no broadcast"
    return f"{told}, {config.retry_queue_nums} retry queues"
