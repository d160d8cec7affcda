"""What was changed in a store's files from outside, and what is unknown because of it.

Damage is a change that the store has to detect; it is kept until a start has read the
files. A file with a name that the store never uses is *foreign*: the store must leave
it alone. A planted file with a name that the store could use counts as damage.

Source: rules E6 and E9 of the disk fault model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from crashmq.models.files.deleted import DELETED_PATH
from crashmq.models.files.log import QueueKey
from crashmq.models.files.places import is_of_a_store
from crashmq.models.history import Step
from crashmq.models.knowledge.promises import SPOILT
from crashmq.models.laws.around import Spoilt
from crashmq.models.observations import RESTORED, Damaged
from crashmq.models.ops import Damage
from crashmq.models.plain_state import Forked


class Origin(Enum):
    """Which program wrote the directory that a store is started on."""

    OURS = "it was empty"
    FOUND = "another program wrote it, and no start has come to its end yet"
    TAKEN_OVER = "another program wrote it, and a start has taken it over"


@dataclass(slots=True)
class Tampering(Forked):
    """What was changed from outside in one store's files, as known between two steps.

    Attributes:
        degraded: all changes ever made to a log whose damaged records are skipped.
        damaged: changes to the store's files since its last start.
        undoable: those of them that can be undone by restoring a copy.
        foreign: files that do not belong to the store, with their contents.
        taken_away: the paths of those that were there before, and are not.
        rotten: those of them that the disk itself has changed.
        abort_taken: the abort file was removed while a run had not ended in an
            orderly way, so no start can know what that run left unsynced.
        reworded: the config files of which somebody has ever changed a value.
        bit_maps_may_rot: consumequeue_ext may have been changed; no checksum covers its
            bit maps.
        origin: which program wrote the directory.
        log_has_hidden_rot: a record has rotted where no checksum covers it, so
            nothing can be judged any more.
        taken: the changes of the log that starts have taken as they were.
    """

    degraded: Spoilt
    damaged: list[Damaged] = field(default_factory=list)
    undoable: list[Damaged] = field(default_factory=list)
    foreign: dict[str, bytes] = field(default_factory=dict)
    taken_away: frozenset[str] = frozenset()
    rotten: frozenset[str] = frozenset()
    reworded: frozenset[str] = frozenset()
    abort_taken: bool = False
    bit_maps_may_rot: bool = False
    log_has_hidden_rot: bool = False
    taken: list[Damaged] = field(default_factory=list)
    origin: Origin = Origin.OURS

    @property
    def is_found(self) -> bool:
        """Whether another program wrote the files, and no start took them over yet."""
        return self.origin is Origin.FOUND

    @property
    def log_is_damaged(self) -> bool:
        """Whether the log was changed since the last start."""
        return bool(self._log_damage)

    @property
    def _log_damage(self) -> list[Damaged]:
        return [one for one in self.damaged if one.path.startswith("commitlog")]

    @property
    def mark_may_be_of_before(self) -> bool:
        """Whether a mark may have been put back that is older than the log's damage."""
        checkpoint_changed = any(one.path == "checkpoint" for one in self.damaged)
        return bool(self.taken) and checkpoint_changed

    def saw(
        self,
        step: Step,
        files: Mapping[str, bytes],
        *,
        has_index: bool,
        ended_in_order: bool,
    ) -> None:
        """Note the damage of a step, and its planted files among ``files``."""
        for one in step.damaged:
            if one == RESTORED:
                undone, self.undoable = {id(each) for each in self.undoable}, []
                self.damaged = [one for one in self.damaged if id(one) not in undone]
                back = sorted(self.taken_away & files.keys())
                self.foreign |= {path: files[path] for path in back}
            else:
                self.undoable.append(one)
                if one.path not in self.foreign:
                    self.damaged = [*self.damaged, one]
        for path, size in [(one.path, one.size) for one in step.planted]:
            if size < 0:
                continue
            if is_of_a_store(path, has_index=has_index):
                self.damaged = [*self.damaged, Damaged(path, 0, size)]
            else:
                self.foreign[path] = files[path]
        self.taken_away |= self.foreign.keys() - files.keys()
        self.foreign = {path: files[path] for path in self.foreign if path in files}
        if any(isinstance(one, Damage) and one.kind == "reword" for one in step.acts):
            self.reworded |= {one.path for one in step.damaged}
        takes_abort = any(damage.path == "abort" for damage in step.damaged)
        self.abort_taken |= takes_abort and not ended_in_order

    def begin_start(self) -> None:
        """Note that a start reads the changed files."""
        self.bit_maps_may_rot |= any(
            damage.path.startswith("consumequeue") for damage in self.damaged
        )

    def note_degraded(self) -> None:
        """Copy the damage of log and queues to ``degraded``.

        Damage of files that were deleted since counts too.
        """
        degraded = self.degraded
        for damage in self.damaged:
            folder, _, name = damage.path.rpartition("/")
            degraded.queues.append(folder)
            if folder == "commitlog" and name.isdecimal() and damage.start < damage.end:
                base = int(name)
                degraded.ranges.append((base + damage.start, base + damage.end))
            elif damage.path == "commitlog":  # where, nobody knows
                degraded.ranges.append((0, 1 << 62))

    def mended(self) -> None:
        """Note a start that has read the files and repaired what it could."""
        self.taken = [*self.taken, *self._log_damage]
        self.damaged = []
        if self.is_found:
            self.origin = Origin.TAKEN_OVER

    def saw_spoilt(self, paths: Sequence[str]) -> None:
        """Note files that the disk itself has changed, below what readers see."""
        if self.foreign:
            self.rotten |= self.foreign.keys() & set(paths)

    @property
    def deletions_stay(self) -> bool:
        """Whether nothing but crashes came over the file of deleted topics."""
        paths = {damage.path for damage in self.damaged}
        return paths.isdisjoint({DELETED_PATH, SPOILT.path})

    def untouched_queues(self, queues: Iterable[QueueKey]) -> list[QueueKey]:
        """Those of the queues of which no file was changed since the last start."""
        paths = [damage.path for damage in self.damaged]
        if SPOILT.path in paths:  # where, nobody knows
            return []
        return [key for key in queues if not any(_is_of(path, key) for path in paths)]

    @property
    def must_stay(self) -> Mapping[str, bytes]:
        """The foreign files that nobody but the store could have changed."""
        kept = [path for path in self.foreign if path not in self.rotten]
        return {path: self.foreign[path] for path in kept}

    def add(self, damages: Sequence[Damaged]) -> None:
        """Note damage: byte ranges that differ from what the store wrote."""
        self.damaged = [*self.damaged, *damages]

    def without_foreign(self, files: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """The files that belong to the store."""
        if not self.foreign:
            return files
        return {path: files[path] for path in files if path not in self.foreign}


def _is_of(path: str, queue: QueueKey) -> bool:
    """Whether a path is one of the queue's files, units or consumequeue_ext entries."""
    parts = path.split("/")
    of_queues = parts[0] in ("consumequeue", "consumequeue_ext")
    return of_queues and parts[1:3] == [queue[0], str(queue[1])]
