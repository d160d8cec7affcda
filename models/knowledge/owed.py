"""Which messages groups of consumers must consume, and which they have consumed.

Messages are identified by name (``names``), since a queue_offset is given again after
the log has lost its tail.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from crashmq.models.appended import Appended
from crashmq.models.files.offsets import OffsetKey
from crashmq.models.knowledge.names import name_of
from crashmq.models.knowledge.progress import Recovered
from crashmq.models.knowledge.reference import ReferenceModel
from crashmq.models.knowledge.subscriptions import Passing
from crashmq.models.plain_state import Forked

_NO_MESSAGE: frozenset[str] = frozenset()
_NOWHERE: Final = 1 << 62


@dataclass(slots=True)
class Owed(Forked):
    """The messages that each group, and each broadcasting consumer, must consume.

    Attributes:
        since: the first queue_offset of a queue that a group must consume.
        done: the names of the messages consumed, by group, topic and queue.
        passing: what pulls of this step have skipped because the group had not asked
            for it.
        doubled: messages of which a queue had two copies when a consumer pulled them; a
            crash may have taken one since.
        before_resets: as ``since``, before resets of this run of the broker, which a
            crash may undo.
    """

    since: dict[OffsetKey, int] = field(default_factory=dict)
    done: dict[OffsetKey, frozenset[str]] = field(default_factory=dict)
    passing: list[tuple[OffsetKey, Passing]] = field(default_factory=list)
    doubled: frozenset[str] = _NO_MESSAGE
    before_resets: dict[OffsetKey, int] = field(default_factory=dict)

    def was_reset(self, key: OffsetKey, offset: int) -> None:
        """Record that a group's offset was set: it need not consume what lies below."""
        # One that has not begun owes nothing.
        before = max(self.since.get(key, _NOWHERE), self.before_resets.get(key, 0))
        self.before_resets[key] = before
        self.since[key] = offset

    def broker_started(self, recovered: Recovered) -> None:
        """Record a start, which has loaded offsets, be they of before a reset."""
        offsets = dict(recovered.rows)
        if recovered.is_doubtful:  # whoever edits the file says what was consumed
            for key, offset in offsets.items():
                self.may_be_told(key, offset)
        for key, before in self.before_resets.items():
            self.may_be_told(key, min(before, offsets.get(key, 0)))
        self.before_resets = {}

    def begins(self, key: OffsetKey, begin: int, *, is_anew: bool) -> None:
        """Record where a group begins; ``is_anew``: it may have had no offset."""
        if is_anew or key not in self.since:
            self.since[key] = begin

    def began_again_at(self, key: OffsetKey, begin: int) -> None:
        """Record that a consumer commits the offset at which it began a group again.

        It is possible that the group, left without an offset by a crash, has begun at a
        lower one meanwhile, when its queue did not have all of its units.
        """
        self.since[key] = max(begin, self.since.get(key, begin))

    def may_be_told(self, key: OffsetKey, offset: int) -> None:
        """Record that a group may have got its offset from others than its consumers.

        What lies below was consumed, as far as these know.
        """
        if key in self.since:  # else it owes nothing before it has begun
            self.since[key] = max(offset, self.since[key])

    def consumed_one(self, key: OffsetKey, name: str) -> None:
        """Record that a message was consumed."""
        self._does(key, frozenset({name}))

    def _does(self, key: OffsetKey, names: frozenset[str]) -> None:
        self.done[key] = self.done.get(key, _NO_MESSAGE) | names

    def pulled(self, names: frozenset[str], there: Sequence[Appended]) -> None:
        """Record that messages were pulled from a queue that then had ``there``."""
        copies = Counter(map(name_of, there))
        self.doubled |= {name for name in names if copies[name] > 1}

    def step_begins(self, model: ReferenceModel) -> None:
        """Count what pulls of the step before were right to skip as done.

        Only now the model has all the messages that were in the queue.
        """
        passing, self.passing = self.passing, []
        for key, passed in passing:
            there = model.queues.get(key[1:], [])
            excused = [one for one in there if passed.excuses(one)]
            self._does(key, frozenset(map(name_of, excused)))

    def passed_over(
        self, key: OffsetKey, model: ReferenceModel, end: int
    ) -> Iterator[Appended]:
        """The messages below ``end`` that a group must consume and has not."""
        begin = self.since.get(key, end)
        done = self.done.get(key, _NO_MESSAGE)
        passing = [passed for its, passed in self.passing if its == key]
        for appended in model.visible(key[1:]).messages:
            is_done = name_of(appended) in done
            if not begin <= appended.queue_offset < end or is_done:
                continue
            if not any(passed.excuses(appended) for passed in passing):
                yield appended
