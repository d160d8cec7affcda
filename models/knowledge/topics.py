"""What is known of the topics of a broker: which ones it must know, and which it may.

A topic is known from the first message that is sent to it until it is deleted, a light
queue always, and a broker's own topics from its first start on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from crashmq.models.files.record import DELAY_LEVEL_MAX, SCHEDULE_TOPIC
from crashmq.models.history import (
    DeletionAsked,
    DeletionEnded,
    FileDamaged,
    FilePlanted,
    Happening,
    LifeEnded,
    PutAnswered,
    PutAsked,
    Step,
)
from crashmq.models.knowledge.promises import Promises
from crashmq.models.messages import MessageToPut
from crashmq.models.observations import Deleted
from crashmq.models.plain_state import Forked

LIGHT = "%LMQ%"
QUEUES_OF_A_TOPIC = 8
"""So many queues a topic gets at most, and as many programs ask for.

Source: TopicConfigManager, its TBW102.
"""
_OF_ITS_OWN: Final = {"TBW102": QUEUES_OF_A_TOPIC, SCHEDULE_TOPIC: DELAY_LEVEL_MAX}
"""The topics that a broker has from its first start on, and their queues.

Source: TopicConfigManager, its constructor.
"""
_OURS = "%"
"""So begin the topics that a broker makes for groups."""


@dataclass(slots=True)
class Topics(Forked):
    """Of one broker.

    Attributes:
        sure: those that it must know, as it has taken a message of them.
        possible: those that it may know, as somebody has sent one.
        is_doubtful: something else may have changed or taken what it knew.
    """

    SEES: ClassVar = frozenset(
        {
            *(PutAsked, PutAnswered, DeletionAsked, DeletionEnded),
            *(LifeEnded, FileDamaged, FilePlanted),
        }
    )

    sure: frozenset[str] = frozenset(_OF_ITS_OWN)
    possible: frozenset[str] = frozenset(_OF_ITS_OWN)
    is_doubtful: bool = False

    def must_know(self, topic: str) -> bool:
        """Whether the broker cannot answer that there is no such topic."""
        return _is_light(topic) or topic in self.sure

    def may_know(self, topic: str) -> bool:
        """Whether the broker may answer anything else."""
        is_made = topic.startswith(_OURS) and topic != LIGHT
        return is_made or topic in self.possible

    @staticmethod
    def queue_nums(topic: str) -> int | None:
        """How many queues a topic has; None: one of a group, which knows itself."""
        if topic.startswith(_OURS) and topic != LIGHT:
            return 1 if topic.startswith(LIGHT) else None
        return _OF_ITS_OWN.get(topic, QUEUES_OF_A_TOPIC)

    def saw(self, event: Happening, step: Step, promises: Promises) -> None:
        """Record an event of a step that is of a kind in ``SEES``."""
        match event:
            case PutAsked(messages):
                self.possible |= _named(messages)
            case PutAnswered(asked, answers):
                its = step.entries[asked].event
                assert isinstance(its, PutAsked), its
                place = min([answer.phy_offset for answer in answers], default=-1)
                named = _named(its.messages)
                self.sure |= {one for one in named if _outlives(one, place, step)}
            case DeletionAsked(op) if op.queue_id < 0:
                self.sure -= {op.topic}
            case DeletionEnded(asked, Deleted()):
                its = step.entries[asked].event
                assert isinstance(its, DeletionAsked), its
                is_gone = step.is_alone and not step.fails_calls
                if is_gone and its.op.queue_id < 0 and step.crash is None:
                    self.possible -= {its.op.topic}
            case LifeEnded(crash):
                is_lost = promises.is_broken_by(crash.kind) or promises.reverts
                if crash.kind == "power_loss":
                    is_lost |= not promises.keeps_what_is_synced
                self.is_doubtful |= is_lost
                self.possible |= frozenset(_OF_ITS_OWN)
            case FileDamaged() | FilePlanted():
                self.is_doubtful = True
            case _:
                pass


def _is_light(topic: str) -> bool:
    """Whether it is the name of a light queue; the prefix alone names none."""
    return topic.startswith(LIGHT) and topic != LIGHT


def _outlives(topic: str, phy_offset: int, step: Step) -> bool:
    """Whether a put came behind every deletion of its topic in a step."""
    return phy_offset >= 0 and all(
        isinstance(seen, Deleted) and 0 <= seen.dead_below <= phy_offset
        for op, seen in step.deletions
        if op.topic == topic and op.queue_id < 0
    )


def _named(messages: tuple[MessageToPut, ...]) -> frozenset[str]:
    """The topics that messages name; a delayed one names another than it waits in."""
    names = [name for one in messages for name in (one.topic, one.real_topic)]
    return frozenset([name for name in names if name])
