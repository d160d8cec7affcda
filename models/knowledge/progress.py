"""What is known of how far groups of consumers have come, and what a crash may leave.

A commit is in memory at once, and in the file at the next persist that ends. So a crash
leaves any offset that a group had since the newest such persist began; and none that it
had before only. An offset past the end of the queue that a start recovers becomes that
end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import NamedTuple

from crashmq.models.files.config_tables import TableSeen
from crashmq.models.files.offsets import OffsetKey, OffsetRows
from crashmq.models.knowledge.due_pulls import DuePulls
from crashmq.models.knowledge.filters import Filters
from crashmq.models.knowledge.group_configs import GroupConfigs
from crashmq.models.knowledge.members import Members
from crashmq.models.knowledge.pulls import Pulls
from crashmq.models.knowledge.reference import QueueKey
from crashmq.models.knowledge.topics import Topics
from crashmq.models.plain_state import Forked

NO_OFFSET = -1
ANY_END = 1 << 62
_NONE = frozenset({NO_OFFSET})


@dataclass(frozen=True, slots=True)
class Ends:
    """Where queues ended when a start had recovered them, as far as that is known.

    Attributes:
        of_queue: by topic and queue_id the least and the greatest next queue_offset
            that it may have had; another queue has no message.
        is_known: False if nobody can tell, since the log was damaged.
    """

    of_queue: Mapping[QueueKey, tuple[int, int]]
    is_known: bool = True

    def of(self, key: OffsetKey) -> tuple[int, int]:
        """The least and the greatest end of a queue."""
        return self.of_queue.get(key[1:], (0, 0)) if self.is_known else (0, ANY_END)

    def allows(self, key: OffsetKey, offset: int, kept: Set[int]) -> bool:
        """Whether a start may make ``offset`` of one of those that were kept."""
        least, most = self.of(key)
        return any(
            offset == one if one <= least else least <= offset <= min(one, most)
            for one in kept
        )


@dataclass(frozen=True, slots=True)
class Recovered:
    """A start that came up, before it is known what it recovered of the log.

    Attributes:
        files: that it found.
        rows: the offsets with which it came up.
        kept: by group and queue the offsets that it could find.
        is_doubtful: something else may have changed or taken what was persisted.
        log_was_damaged: so that nobody can tell where the queues end.
    """

    files: Mapping[str, bytes]
    rows: OffsetRows
    kept: Mapping[OffsetKey, frozenset[int]]
    is_doubtful: bool
    log_was_damaged: bool


class TopicsWritten(NamedTuple):
    """The files of a broker's topics and groups.

    Attributes:
        names: of all topics.
        groups: of all groups.
        rows: the whole table of topics, as text.
        version: how often that has changed, as it says.
    """

    names: frozenset[str]
    groups: frozenset[str]
    rows: str
    version: int


@dataclass(slots=True)
class Tables(Forked):
    """What a broker has written of its tables, as far as that was seen.

    Attributes:
        topics: of the topics, when a message was given back last.
        seen: by path how each was after the last step; None: a crash came since.
        changes_most: at least as many as there were ever changes of how far a group
            or a level is.
        was_set_back: the clock, ever.
    """

    topics: TopicsWritten | None = None
    # These decide nothing but what one law says of the versions of tables.
    seen: dict[str, TableSeen] | None = field(default_factory=dict, compare=False)
    changes_most: int = field(default=0, compare=False)
    was_set_back: bool = field(default=False, compare=False)


@dataclass(slots=True)
class Progress(Forked):
    """Of all groups.

    Attributes:
        now: by group, topic and queue the offsets it may have; several where it is
            not known which of two commits came last.
        kept: the same of what its file may have, once a crash ends this life.
        pending: queues with a reset that the consumers have not met for certain.
        is_persisted: a persist has ended, so there is a file.
        is_doubtful: something else may have changed or taken what was persisted.
        pulls: those that the broker has not answered yet.
        filters: what groups subscribe.
        topics: those that the broker knows.
        members: whom the broker has heard of.
        groups: how groups are configured.
        due: what consumers have to do in time.
        tables: what it has written of all.
    """

    now: dict[OffsetKey, frozenset[int]] = field(default_factory=dict)
    kept: dict[OffsetKey, frozenset[int]] = field(default_factory=dict)
    pending: dict[OffsetKey, bool] = field(default_factory=dict)
    is_persisted: bool = False
    is_doubtful: bool = False
    pulls: Pulls = field(default_factory=Pulls)
    filters: Filters = field(default_factory=Filters)
    topics: Topics = field(default_factory=Topics)
    groups: GroupConfigs = field(default_factory=GroupConfigs)
    due: DuePulls = field(default_factory=DuePulls)
    members: Members = field(default_factory=Members)
    tables: Tables = field(default_factory=Tables)

    def of(self, key: OffsetKey) -> frozenset[int]:
        """The offsets that a group may have; -1: none."""
        return self.now.get(key, _NONE)

    def may_be_kept(self, key: OffsetKey) -> frozenset[int]:
        """The offsets that a start may find of a group."""
        return self.kept.get(key, _NONE)

    def set(self, key: OffsetKey, offset: int, *, is_certain: bool) -> None:
        """Record an offset that a group has, or may have by now."""
        told = frozenset({offset})
        self.now[key] = told if is_certain else told | self.of(key)
        self.kept[key] = self.may_be_kept(key) | {offset}

    def copied(self, source: str, target: str, topic: str, *, is_certain: bool) -> None:
        """Record that a group has, or may have, the offsets of another one."""
        if source == target:
            return
        keys = [key for key in (*self.now, *self.kept) if key[1] == topic]
        queues = {key[2] for key in keys if key[0] in (source, target)}
        of_source = {queue: self.of((source, topic, queue)) for queue in queues}
        if all(offsets == _NONE for offsets in of_source.values()):
            return  # then the target keeps what it has
        is_certain &= any(NO_OFFSET not in offsets for offsets in of_source.values())
        for queue in sorted(queues):
            key, told = (target, topic, queue), of_source[queue]
            self.now[key] = told if is_certain else told | self.of(key)
            self.kept[key] = self.may_be_kept(key) | told
            if is_certain:
                self.pending.pop(key, None)
            elif key in self.pending:
                self.pending[key] = False

    def may_be_gone(self, keys: Iterable[OffsetKey]) -> None:
        """Record that offsets are being removed, or may have been."""
        for key in keys:
            self.now[key] = self.of(key) | _NONE
            self.kept[key] = self.may_be_kept(key) | _NONE
            if key in self.pending:
                self.pending[key] = False

    def gone(self, keys: Iterable[OffsetKey]) -> None:
        """Record that offsets were removed for good."""
        for key in keys:
            self.now[key] = self.kept[key] = _NONE
            self.pending.pop(key, None)

    def keys_of(
        self, *, group: str = "", topic: str = "", queue_id: int = -1
    ) -> list[OffsetKey]:
        """The queues of a group or topic that may have an offset; "", -1: any."""
        return sorted(
            key
            for key in {*self.now, *self.kept, *self.pending}
            if group in ("", key[0])
            and topic in ("", key[1])
            and queue_id in (-1, key[2])
        )

    def persisted(self, before: dict[OffsetKey, frozenset[int]]) -> None:
        """Record a persist that ended; ``before`` is ``now`` when it began."""
        keys = {*before, *self.now}
        self.kept = {key: before.get(key, _NONE) | self.of(key) for key in sorted(keys)}
        self.is_persisted = True

    def ended(self) -> None:
        """Record that this life is over: the file alone is left."""
        self.now = dict(self.kept)
        self.pending = {}

    def loaded(self, rows: OffsetRows) -> None:
        """Record what a start has loaded, and written again."""
        self.now = {key: frozenset({offset}) for key, offset in rows}
        self.kept = dict(self.now)
        self.pending, self.is_doubtful = {}, False
        self.is_persisted = bool(rows)

    def in_files(self) -> Iterable[OffsetKey]:
        """Every queue for which a group may have an offset in the file."""
        return sorted(self.kept)
