"""What is known of how groups of consumers are configured.

A broker has written a change before it answers the request. Whether a change counts is
unknown if the request was not answered, or overlapped another one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, NamedTuple

from crashmq.models.history import (
    FileDamaged,
    FilePlanted,
    Happening,
    LifeEnded,
    ProgressAnswered,
    ProgressAsked,
    Step,
)
from crashmq.models.knowledge.promises import Promises
from crashmq.models.observations import Done
from crashmq.models.ops import ConfigureGroup, DeleteGroup
from crashmq.models.plain_state import Forked


class GroupConfig(NamedTuple):
    """The configuration of a group, as an administrator sets it."""

    retry_max_times: int
    consume_timeout_minute: int
    consume_enable: bool = True
    consume_broadcast_enable: bool = True
    retry_queue_nums: int = 1

    def lets_consume(self, *, broadcasts: bool) -> bool:
        """Whether consumers of the group may pull, who broadcast or do not."""
        return self.consume_enable and (self.consume_broadcast_enable or not broadcasts)


DEFAULT: Final = GroupConfig(16, 15)
"""Of a group that no one has configured.

Source: SubscriptionGroupConfig, its retryMaxTimes, consumeTimeoutMinute, consumeEnable,
consumeBroadcastEnable and retryQueueNums.
"""


@dataclass(slots=True)
class GroupConfigs(Forked):
    """The configurations of consumer groups on one broker.

    Attributes:
        of: by group, the configurations that it may have.
        others_are_default: every group not in ``of`` has the default configuration; if
            False, it is unknown.
        barred: the groups that were told not to consume, or not to broadcast, and have
            not certainly been allowed to since.
        unretried: the groups that were ever told to have no retry queue.
        retry_queues: how many queues the retry topic of other groups gets that are
            configured.
    """

    SEES: ClassVar = frozenset(
        {ProgressAsked, ProgressAnswered, LifeEnded, FileDamaged, FilePlanted}
    )

    of: dict[str, frozenset[GroupConfig]] = field(default_factory=dict)
    others_are_default: bool = True
    barred: set[str] = field(default_factory=set)
    unretried: set[str] = field(default_factory=set)
    retry_queues: int = 1

    def saw(self, event: Happening, step: Step, promises: Promises) -> None:
        """Record an event of a step; only kinds listed in ``SEES`` matter."""
        match event:
            case ProgressAsked(ConfigureGroup(group) as op):
                self._may_become(group, self._told(op))
            case ProgressAsked(DeleteGroup(group)):
                self._may_become(group, DEFAULT)
            case ProgressAnswered(asked, Done()):
                its = step.entries[asked].event
                assert isinstance(its, ProgressAsked), its
                self._saw_done(its.op, step)
            case LifeEnded(crash):
                is_lost = promises.is_broken_by(crash.kind) or promises.reverts
                if crash.kind == "power_loss":
                    is_lost |= not promises.keeps_what_is_synced
                if is_lost:
                    self.forget()
            case FileDamaged() | FilePlanted():
                self.forget()
            case _:
                pass

    def _saw_done(self, op: object, step: Step) -> None:
        if not isinstance(op, ConfigureGroup | DeleteGroup):
            return
        if step.fails_calls or changes_of_group(op.group, step) != 1:
            return
        config = self._told(op) if isinstance(op, ConfigureGroup) else DEFAULT
        self.of[op.group] = frozenset({config})
        if config.lets_consume(broadcasts=True):
            self.barred.discard(op.group)

    def _may_become(self, group: str, config: GroupConfig) -> None:
        if not config.lets_consume(broadcasts=True):
            self.barred.add(group)
        if not config.retry_queue_nums:
            self.unretried.add(group)
        if group in self.of:
            self.of[group] |= {config}
        elif self.others_are_default:
            self.of[group] = frozenset({DEFAULT, config})

    def possible(self, group: str) -> frozenset[GroupConfig]:
        """The configurations that a group may have; empty: unknown."""
        usual = {DEFAULT} if self.others_are_default else ()
        return self.of.get(group, frozenset(usual))

    def retries_of(self, group: str) -> frozenset[int]:
        """What may be a group's ``retry_max_times``; empty: unknown."""
        return frozenset([one.retry_max_times for one in self.possible(group)])

    def has_retries(self, group: str) -> bool | None:
        """Whether a group has a retry queue; None: unknown."""
        told = {one.retry_queue_nums > 0 for one in self.possible(group)}
        if len(told) == 1:
            return told.pop()
        return None if group in self.unretried else True

    def forget(self) -> None:
        """Record that all configurations of groups are unknown now."""
        self.of, self.others_are_default = {}, False

    def _told(self, op: ConfigureGroup) -> GroupConfig:
        return GroupConfig(
            op.retry_max_times,
            op.consume_timeout_minute,
            op.consume_enable,
            op.consume_broadcast_enable,
            self.retry_queues if op.is_retried else 0,
        )


def changes_of_group(group: str, step: Step) -> int:
    """How many requests of a step change the configuration of a group."""
    asked = [
        one.event.op for one in step.entries if isinstance(one.event, ProgressAsked)
    ]
    alike = [one for one in asked if isinstance(one, ConfigureGroup | DeleteGroup)]
    return sum(one.group == group for one in alike)


def config_in(rows: Mapping[str, Any], group: str) -> GroupConfig:
    """A group's configuration in the table of a file; the default if it has none."""
    row = rows.get(group)
    its = row if isinstance(row, dict) else {}
    return GroupConfig(
        its.get("retryMaxTimes", DEFAULT.retry_max_times),
        its.get("consumeTimeoutMinute", DEFAULT.consume_timeout_minute),
        its.get("consumeEnable", DEFAULT.consume_enable),
        its.get("consumeBroadcastEnable", DEFAULT.consume_broadcast_enable),
        its.get("retryQueueNums", DEFAULT.retry_queue_nums),
    )
