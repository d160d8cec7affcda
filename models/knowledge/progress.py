"""What is known of the consumer offsets of groups, and what a crash may leave of them.

A commit is in memory at once, and in the file after the next persist that ends. So a
crash may leave any offset that the group had since the newest such persist began, and
no older one. If an offset is past the end of the queue that a start recovers, the start
lowers it to that end.
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
    """Where queues ended after a start had recovered them, as far as that is known.

    Attributes:
        of_queue: by topic and queue_id, the lowest and the highest possible next
            queue_offset; a queue that is missing has no message.
        is_known: False if the log was damaged, so that no end is known.
    """

    of_queue: Mapping[QueueKey, tuple[int, int]]
    is_known: bool = True

    def of(self, key: OffsetKey) -> tuple[int, int]:
        """The lowest and the highest possible end of a queue."""
        return self.of_queue.get(key[1:], (0, 0)) if self.is_known else (0, ANY_END)

    def allows(self, key: OffsetKey, offset: int, kept: Set[int]) -> bool:
        """Whether a start may turn one of the offsets ``kept`` into ``offset``."""
        least, most = self.of(key)
        return any(
            offset == one if one <= least else least <= offset <= min(one, most)
            for one in kept
        )


@dataclass(frozen=True, slots=True)
class Recovered:
    """A start that has succeeded, before it is known what it recovered of the log.

    Attributes:
        files: the files that it found.
        rows: the consumer offsets that it loaded.
        kept: by group and queue, the offsets that it may have found.
        is_doubtful: something other than a crash may have changed the file.
        log_was_damaged: the log was damaged, so the ends of queues are unknown.
    """

    files: Mapping[str, bytes]
    rows: OffsetRows
    kept: Mapping[OffsetKey, frozenset[int]]
    is_doubtful: bool
    log_was_damaged: bool


class TopicsWritten(NamedTuple):
    """The broker's files of topics and groups at one time.

    Attributes:
        names: the names of all topics.
        groups: the names of all groups.
        rows: the whole table of topics, as JSON.
        version: the counter in the data version of the table of topics.
    """

    names: frozenset[str]
    groups: frozenset[str]
    rows: str
    version: int


@dataclass(slots=True)
class Tables(Forked):
    """What was seen of the tables in the broker's config files.

    Attributes:
        topics: the files of topics and groups when a message was sent back last.
        seen: by path, each table after the last step; None after a crash.
        changes_most: an upper bound of how often the offset of a group or level
            changed.
        was_set_back: the clock was set back at some time.
    """

    topics: TopicsWritten | None = None
    # These decide nothing but what one law says of the versions of tables.
    seen: dict[str, TableSeen] | None = field(default_factory=dict, compare=False)
    changes_most: int = field(default=0, compare=False)
    was_set_back: bool = field(default=False, compare=False)


@dataclass(slots=True)
class Progress(Forked):
    """The offsets of all groups, and what else the broker knows of them.

    Attributes:
        now: by group, topic and queue, the offsets that it may have; several if it is
            unknown which of two commits came last.
        kept: the same for what a start may find in the file after a crash.
        pending: queues with a reset that consumers have perhaps not got yet.
        is_persisted: a persist has ended, so the file exists.
        is_doubtful: something other than a crash may have changed the file.
        pulls: the pulls that the broker has not answered yet, and where groups pull
            next.
        filters: the subscriptions of groups.
        topics: the topics that the broker knows.
        members: the members of groups that the broker knows.
        groups: the configurations of groups.
        due: what consumers have to do by when.
        tables: what was seen of the config files.
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
        """The offsets of a group that a start may find; -1: none."""
        return self.kept.get(key, _NONE)

    def may_drop(self, key: OffsetKey) -> bool:
        """Whether a commit may be dropped because of a reset."""
        return key in self.pending or key in self.pulls.behind

    def set(self, key: OffsetKey, offset: int, *, is_certain: bool) -> None:
        """Record a group's offset; without ``is_certain`` it may have another one."""
        told = frozenset({offset})
        self.now[key] = told if is_certain else told | self.of(key)
        self.kept[key] = self.may_be_kept(key) | {offset}

    def copied(self, source: str, target: str, topic: str, *, is_certain: bool) -> None:
        """Record that one group's offsets were, or may have been, copied to another."""
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

    def pulls_next(self, key: OffsetKey, offset: int, *, is_certain: bool) -> None:
        """Record where a group pulls next, or may pull next."""
        told, known = frozenset({offset}), self.pulls.next_offsets
        known[key] = told if is_certain else told | known.get(key, _NONE)

    def where_it_pulls(self, key: OffsetKey) -> frozenset[int]:
        """Where a group may pull next; -1: it has no offset either."""
        told = self.pulls.next_offsets.get(key, _NONE)
        return (told - _NONE) | self.of(key) if NO_OFFSET in told else told

    def may_be_gone(self, keys: Iterable[OffsetKey]) -> None:
        """Record that these offsets may have been removed."""
        for key in keys:
            self.now[key] = self.of(key) | _NONE
            self.kept[key] = self.may_be_kept(key) | _NONE
            if key in self.pulls.next_offsets:
                self.pulls.next_offsets[key] |= _NONE
            if key in self.pending:
                self.pending[key] = False

    def gone(self, keys: Iterable[OffsetKey]) -> None:
        """Record that these offsets were removed, from the file too."""
        for key in keys:
            self.now[key] = self.kept[key] = _NONE
            self.pending.pop(key, None)
            self.pulls.next_offsets.pop(key, None)

    def keys_of(
        self, *, group: str = "", topic: str = "", queue_id: int = -1
    ) -> list[OffsetKey]:
        """The keys that may have an offset, by group, topic, queue; "" and -1: any."""
        return sorted(
            key
            for key in {*self.now, *self.kept, *self.pending, *self.pulls.next_offsets}
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
        """Record the end of the broker's run: only the file is left."""
        self.now = dict(self.kept)
        self.pending = {}
        self.pulls.ended()

    def loaded(self, rows: OffsetRows) -> None:
        """Record the offsets that a start has loaded and written again."""
        self.now = {key: frozenset({offset}) for key, offset in rows}
        self.kept = dict(self.now)
        self.pending, self.is_doubtful = {}, False
        self.pulls.ended()
        self.is_persisted = bool(rows)

    def in_files(self) -> Iterable[OffsetKey]:
        """The keys for which the file may have an offset, sorted."""
        return sorted(self.kept)
