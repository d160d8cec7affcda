"""Which topics a broker must know, and which it may know.

A topic is known from its first message until it is deleted; a light queue always; the
broker's own topics from its first start on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Final, NamedTuple

from crashmq.models.files.inferred_deletions import is_kept_topic
from crashmq.models.files.message_delay_level import DEFAULT_LEVELS
from crashmq.models.files.record import DLQ_PREFIX, RETRY_PREFIX, SCHEDULE_TOPIC
from crashmq.models.history import (
    DeletionAsked,
    DeletionEnded,
    FileDamaged,
    FilePlanted,
    Happening,
    LifeEnded,
    ProgressAnswered,
    ProgressAsked,
    PutAnswered,
    PutAsked,
    SendAnswered,
    Step,
)
from crashmq.models.knowledge.promises import Promises
from crashmq.models.limits import QUEUES_OF_A_TOPIC
from crashmq.models.messages import MessageToPut
from crashmq.models.observations import (
    Deleted,
    Done,
)
from crashmq.models.ops import (
    ChangeTopic,
    DeleteTopic,
    PutBatch,
    PutMessage,
    SendMessage,
)
from crashmq.models.plain_state import Forked

LIGHT = "%LMQ%"
_PUTS = (PutMessage, PutBatch, SendMessage)
OF_ITS_OWN: Final = {
    "TBW102": QUEUES_OF_A_TOPIC,
    SCHEDULE_TOPIC: DEFAULT_LEVELS.level_max,
}
"""The topics that a broker has from its first start on, and their queues.

However many delay levels it has, the topic of delayed messages has eighteen.

Source: TopicConfigManager, its constructor and SCHEDULE_TOPIC_QUEUE_NUM.
"""
_OURS = "%"
"""So begin the topics that a broker makes for groups."""


NOT_SENT_TO: Final = frozenset(
    {
        SCHEDULE_TOPIC,
        "RMQ_SYS_TRANS_HALF_TOPIC",
        "RMQ_SYS_TRANS_OP_HALF_TOPIC",
        "TRANS_CHECK_MAX_TIME_TOPIC",
        "SELF_TEST_TOPIC",
        "OFFSET_MOVED_EVENT",
    }
)
"""Topics for which a broker takes no message of a producer.

Source: TopicValidator, its NOT_ALLOWED_SEND_TOPIC_SET.
"""


class Shape(NamedTuple):
    """The queues of a topic, and whether producers may send to it."""

    read_queues: int = QUEUES_OF_A_TOPIC
    write_queues: int = QUEUES_OF_A_TOPIC
    is_writeable: bool = True


_OF_DEAD_LETTERS: Final = Shape(1, 1)
"""Source: MixAll, its DLQ_NUMS_PER_GROUP."""


def as_made(topic: str) -> Shape:
    """What a topic is that an administrator may change, but has not."""
    return _OF_DEAD_LETTERS if topic.startswith(DLQ_PREFIX) else Shape()


@dataclass(slots=True)
class Topics(Forked):
    """The topics of one broker.

    Attributes:
        sure: the topics that it must know, since it has accepted a message of them.
        possible: the topics that it may know, since someone has sent a message of them.
        half_deleted: of these, the topics of which a deletion has begun: their queues
            may be there still.
        shapes: what topics may be that an administrator has changed, and those of dead
            letters, or of fewer queues, that a producer may have made; others are as
            they are made usually.
        changed: the topics that one of the two may ever have changed or made, or a
            producer that asks for another number of queues.
        is_doubtful: something other than the broker may have changed its table of
            topics.
    """

    SEES: ClassVar = frozenset(
        {
            *(PutAsked, PutAnswered, DeletionAsked, DeletionEnded),
            *(LifeEnded, FileDamaged, FilePlanted),
            *(ProgressAsked, ProgressAnswered),
        }
    )

    sure: frozenset[str] = frozenset(OF_ITS_OWN)
    possible: frozenset[str] = frozenset(OF_ITS_OWN)
    half_deleted: frozenset[str] = frozenset()
    shapes: dict[str, frozenset[Shape]] = field(default_factory=dict)
    changed: frozenset[str] = frozenset()
    is_doubtful: bool = False

    def must_know(self, topic: str) -> bool:
        """Whether the broker must not answer TOPIC_NOT_EXIST."""
        is_of_no_group = topic == RETRY_PREFIX  # then it is never made
        return _is_light(topic) or (topic in self.sure and not is_of_no_group)

    @staticmethod
    def is_kept(topic: str) -> bool:
        """Whether a topic is RocketMQ's own, which nobody changes or deletes."""
        return is_kept_topic(topic) and not topic.startswith(LIGHT)

    @classmethod
    def is_carried_out(cls, op: ChangeTopic) -> bool:
        """Whether a change of a topic is more than ``Skipped``."""
        return not (op.is_left_to_the_group or cls.is_kept(op.topic))

    def may_know(self, topic: str) -> bool:
        """Whether the broker may answer anything else than TOPIC_NOT_EXIST."""
        is_made = topic.startswith(_OURS) and topic != LIGHT
        return is_made or topic in self.possible

    @staticmethod
    def queue_nums(topic: str) -> int | None:
        """How many queues a topic has; None: a group's topic, which sets its own."""
        if topic.startswith(_OURS) and topic != LIGHT:
            return 1 if topic.startswith(LIGHT) else None
        return OF_ITS_OWN.get(topic, QUEUES_OF_A_TOPIC)

    def shapes_of(self, topic: str) -> frozenset[Shape]:
        """What a topic may be that an administrator may change."""
        return self.shapes.get(topic, frozenset({as_made(topic)}))

    def read_queues(self, topic: str) -> int | None:
        """How many queues of a topic may be read; None: unknown."""
        if topic not in self.changed:
            return self.queue_nums(topic)
        told = {shape.read_queues for shape in self.shapes_of(topic)}
        return told.pop() if len(told) == 1 and not self.is_doubtful else None

    def _may_change(self, op: ChangeTopic) -> None:
        topic = op.topic
        told = Shape(op.read_queues, op.write_queues, op.is_writeable)
        self._may_be(topic, frozenset({told}))
        self.changed |= {topic}
        self.possible |= {topic}

    def _may_be(self, topic: str, told: frozenset[Shape]) -> None:
        """Record what else a topic may be from now on, if it is there."""
        possible = self.shapes_of(topic) | told
        if possible != {as_made(topic)}:  # else it may not even be there
            self.shapes[topic] = possible

    def _has_changed(self, op: ChangeTopic) -> None:
        told = Shape(op.read_queues, op.write_queues, op.is_writeable)
        self.shapes[op.topic] = frozenset({told})
        self.sure |= {op.topic}
        self.half_deleted -= {op.topic}

    def _may_be_made_by_producers(self, step: Step) -> None:
        """Record the topics of dead letters that somebody puts to by hand in a step.

        A broker makes them as any other topic then.
        """
        named = {one for one in _put_to(step) if one.startswith(DLQ_PREFIX)}
        for topic in sorted(named - self.sure):
            self._may_be(topic, frozenset({Shape()}))
            self.changed |= {topic}

    def may_be_asked_for(self, step: Step) -> None:
        """Record topics that a step may make, with the queues that producers ask for.

        Source: TopicConfigManager#createTopicInSendMessageMethod.
        """
        for op in step.acts:
            if not isinstance(op, SendMessage):
                continue
            topic, is_there = op.topic, op.topic in self.sure - self.half_deleted
            is_made_so = topic.startswith(_OURS) or topic in {*OF_ITS_OWN, *NOT_SENT_TO}
            if is_made_so or (is_there and not step.deletions):
                continue
            if op.asks_queues != QUEUES_OF_A_TOPIC:
                self._may_be_made_as_asked(op, step)
            self.possible |= {topic}

    def _may_be_made_as_asked(self, op: SendMessage, step: Step) -> None:
        """Record what a topic may be that a producer may be the first to name."""
        topic, queues = op.topic, max(0, min(op.asks_queues, QUEUES_OF_A_TOPIC))
        told = frozenset({Shape(queues, queues)})
        is_made = SendAnswered in step.kinds and topic not in self.possible
        is_sure = is_made and step.is_alone and not step.fails_calls
        if is_sure and step.crash is None and not self.is_doubtful:
            self.sure |= {topic}
            self.shapes[topic] = told
        else:
            self._may_be(topic, told)
        self.changed |= {topic}

    def may_be_made_in_vain(self, step: Step) -> None:
        """Record the topics of puts of which a call failed: a start may find them.

        A topic is written before the message is put, and may be in the file then.
        """
        self.possible |= _put_to(step)

    def saw(self, event: Happening, step: Step, promises: Promises) -> None:
        """Record an event of a step; only kinds listed in ``SEES`` matter."""
        match event:
            case PutAsked(messages):
                self.possible |= _named(messages)
                self._may_be_made_by_producers(step)
            case PutAnswered(asked, answers):
                its = step.entries[asked].event
                assert isinstance(its, PutAsked), its
                place = min([answer.phy_offset for answer in answers], default=-1)
                named = _named(its.messages)
                surely = {one for one in named if _outlives(one, place, step)}
                self.sure |= surely
                self.half_deleted -= surely
            case ProgressAsked(ChangeTopic() as op) if self.is_carried_out(op):
                self._may_change(op)
            case ProgressAnswered(asked, Done()):
                change = step.entries[asked].event
                assert isinstance(change, ProgressAsked), change
                if isinstance(change.op, ChangeTopic) and _is_done(change.op, step):
                    self._has_changed(change.op)
            case DeletionAsked(op) if op.queue_id < 0 and not self.is_kept(op.topic):
                self.sure -= {op.topic}
                self.half_deleted |= {op.topic}
                plain, told = as_made(op.topic), self.shapes.pop(op.topic, frozenset())
                if told - {plain}:  # else it is as it was made, or not there
                    self.shapes[op.topic] = told | {plain}
            case DeletionEnded(asked, Deleted()):
                its = step.entries[asked].event
                assert isinstance(its, DeletionAsked), its
                is_gone = step.is_alone and not step.fails_calls
                if is_gone and its.op.queue_id < 0 and step.crash is None:
                    self.possible -= {its.op.topic}
                    self.half_deleted -= {its.op.topic}
                    self.shapes.pop(its.op.topic, None)
            case LifeEnded(crash):
                is_lost = promises.is_broken_by(crash.kind) or promises.reverts
                if crash.kind == "power_loss":
                    is_lost |= not promises.keeps_what_is_synced
                self.is_doubtful |= is_lost
                self.possible |= frozenset(OF_ITS_OWN)
            case FileDamaged() | FilePlanted():
                self.is_doubtful = True
            case _:
                pass


def _is_done(op: ChangeTopic, step: Step) -> bool:
    """Whether a topic certainly is as a change says that the broker has confirmed.

    Who sends a message besides makes the topic before that, or finds it there.
    """
    if step.is_alone or step.fails_calls:
        return not step.fails_calls
    others = [one for one in step.acts if isinstance(one, ChangeTopic | DeleteTopic)]
    its = [one for one in others if one.topic == op.topic]
    is_disturbed = step.crash is not None or step.starts or step.is_stopping
    return len(its) == 1 and not is_disturbed and not op.topic.startswith(_OURS)


def _put_to(step: Step) -> frozenset[str]:
    """The topics to which somebody puts by hand in a step."""
    return frozenset([one.topic for one in step.acts if isinstance(one, _PUTS)])


def _is_light(topic: str) -> bool:
    """Whether a topic is a light queue; the bare prefix is none."""
    return topic.startswith(LIGHT) and topic != LIGHT


def _outlives(topic: str, phy_offset: int, step: Step) -> bool:
    """Whether a put at ``phy_offset`` came after every deletion of its topic."""
    return phy_offset >= 0 and all(
        isinstance(seen, Deleted) and 0 <= seen.dead_below <= phy_offset
        for op, seen in step.deletions
        if op.topic == topic and op.queue_id < 0
    )


def _named(messages: tuple[MessageToPut, ...]) -> frozenset[str]:
    """The topics of messages; for a delayed one, also that of its delivery."""
    names = [name for one in messages for name in (one.topic, one.real_topic)]
    return frozenset([name for name in names if name])
