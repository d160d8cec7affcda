"""Brokers that tell an administrator what is not so, or do something else."""

from __future__ import annotations

from misreporting import PLAIN, PUT, REPUT, Lie, bug, does, lie

from crashmq.models.ops import (
    AdvanceClock,
    AskBroker,
    ChangeTopic,
    CleanTopics,
    CommitOffset,
    ConfigureGroup,
    Restart,
    Resubscribe,
    SendMessage,
    Shutdown,
    StartConsumer,
    TellReset,
    TurnConsumer,
)
from crashmq.models.program import Setup

_BROKER = Setup(keeps_progress=True)
_JOINS = (
    StartConsumer("c0", "g", "T0", is_orderly=True),
    TurnConsumer("c0", "rebalance"),
)
_LOCK = AskBroker("lock", "g", "T0", client="c0")
_QUESTIONS = "crashmq.harness.subjects.questions"


def _answer(law: str, before: str, after: str, *ops: object) -> Lie:
    program = does(_BROKER, *ops)  # type: ignore[arg-type]  # all are ops
    return bug(law, f"{_QUESTIONS}:answer_of_broker", before, after, program)


LIES_OF_ADMINISTRATORS = (
    _answer(
        "ADM-1",
        "tuple(offsets.which_group_by_topic(ask.topic))",
        "('h', *offsets.which_group_by_topic(ask.topic))",
        CommitOffset("g", "T0", 0, 0),
        AskBroker("groups_of_topic", "", "T0"),
    ),
    _answer(
        "ADM-2",
        "broker.consumer_manager.groups_of_topic(ask.topic)",
        "()",
        *(*_JOINS, AskBroker("subscribers", "", "T0")),
    ),
    bug(
        "ADM-4",
        f"{_QUESTIONS}:_found_by_time",
        "max(0, EPOCH_MS + ask.at_ms)",
        "EPOCH_MS",
        does(
            _BROKER,
            *(PUT, AdvanceClock(10), PUT, REPUT),
            AskBroker("time", "", "T0", 0, 10),
        ),
    ),
    _answer(
        "ADM-5",
        "int(groups.contains_subscription_group(ask.group))",
        "0",
        *(*_JOINS, AskBroker("group", "g")),
    ),
    _answer(
        "ADM-5",
        "int(groups.contains_subscription_group(ask.group))",
        "1",
        AskBroker("group", "g"),
    ),
    _answer(
        "ADM-6",
        "int(locks.is_locked(ask.group, queue, ask.client))",
        "1",
        *(*_JOINS, AdvanceClock(60_001), _LOCK),
    ),
    _answer(
        "ADM-7",
        "fields_told(group and group_to_json(group))",
        "()",
        *(ConfigureGroup("g"), AskBroker("group_config", "g")),
    ),
    bug(
        "ADM-7",
        "crashmq.engine.common.topic_config:topic_from_json",
        'bean.integer("writeQueueNums", QUEUE_NUMS)',
        "QUEUE_NUMS",
        does(
            _BROKER,
            *(ChangeTopic("N0", 9, 9), Shutdown(), Restart()),
            AskBroker("topic_config", topic="N0"),
        ),
    ),
    bug(
        "CON-31",
        "crashmq.harness.subjects.clients:_Client.begin_elsewhere",
        "{its[0]: offset}",
        "{its[0]: offset + 1}",
        does(
            _BROKER,
            *(PUT, PUT, PUT, REPUT, *_JOINS, AdvanceClock(500)),
            *(TurnConsumer("c0", "pull", 3), TellReset("c0", "T0", 0, 1)),
        ),
    ),
    lie(
        "DEL-15",
        "clean_topics",
        "TopicsCleaned(count,",
        "TopicsCleaned(count + 1,",
        does(PLAIN, PUT, REPUT, CleanTopics()),
    ),
    bug(
        "TOP-4",
        "crashmq.engine.broker.processor.send_message_processor"
        ":SendMessageProcessor._put",
        "if not topic.is_writeable:",
        "if False:",
        does(
            _BROKER,
            *(ChangeTopic("N0", is_writeable=False), SendMessage("N0", 0, 1)),
        ),
    ),
    bug(
        "TOP-7",
        "crashmq.engine.broker.topic.topic_config_manager"
        ":TopicConfigManager.create_topic_in_send_message_back_method",
        "TopicConfig(topic, queue_nums, queue_nums, perm)",
        "TopicConfig(topic, queue_nums + 1, queue_nums + 1, perm)",
        does(_BROKER, ConfigureGroup("g"), *_JOINS),
    ),
    bug(
        "TOP-5",
        f"{_QUESTIONS}:change_topic",
        "change.write_queues, perm)",
        "change.write_queues + 1, perm)",
        does(_BROKER, ChangeTopic("N0", 9, 2)),
    ),
    bug(
        "ADM-2",
        "crashmq.engine.broker.client.consumer_manager:_Group.update_subscription",
        "for topic in [*self.subscriptions]:",
        "for topic in []:",
        does(
            _BROKER,
            *(StartConsumer("c0", "g", "T0,T1"), Resubscribe("c0", "T0")),
            AskBroker("subscribers", topic="T1"),
        ),
    ),
    bug(
        "TOP-6",
        f"{_QUESTIONS}:change_topic",
        "return Done() if is_done else",
        "return Done() if not is_done else",
        does(_BROKER, ChangeTopic("N0", 9, 2)),
    ),
)
