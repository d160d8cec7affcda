"""What others do to a store's directories: what it changes, and what it may not.

A file whose name the store would never give is nobody's affair but its owner's: the
store passes over it, and it stays. One that lies where a file of the store could lie is
damage, as if the store's own had changed.

Source: rule E9 of the disk fault model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from harness.interpreter import Report
from models.image.places import is_of_a_store
from models.invariants.recovery import foreign_files_stay
from models.observations import RESTORED, Damaged
from models.plain_state import fork_of_fields


@dataclass(slots=True)
class Foreign:
    """What others did.

    Attributes:
        files: those that are not the store's, and what is in them.
        changed: damage that a copy could undo.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    changed: list[Damaged] = field(default_factory=list)

    def fork(self) -> Foreign:
        """One that goes on by itself."""
        return fork_of_fields(self)

    def take_note(
        self,
        report: Report,
        known: list[Damaged],
        files: Mapping[str, bytes],
        *,
        has_index: bool,
    ) -> list[Damaged]:
        """Take note of what was put among ``files``; what is damaged of the store's.

        ``known`` is what was damaged before.
        """
        for one in report.damages:
            if one == RESTORED:
                undone, self.changed = {id(each) for each in self.changed}, []
                known = [each for each in known if id(each) not in undone]
            else:
                self.changed.append(one)
                if one.path not in self.files:
                    known = [*known, one]
        for planted in report.planted:
            path, size = planted.path, planted.size
            if size < 0:
                continue
            if is_of_a_store(path, has_index=has_index):
                known = [*known, Damaged(path, 0, size)]
            else:
                self.files[path] = files[path]
        self.files = {path: files[path] for path in self.files if path in files}
        return known

    def without(self, files: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """The files that are the store's."""
        if not self.files:
            return files
        return {path: files[path] for path in files if path not in self.files}

    def judge(
        self,
        checks: dict[str, int],
        report: Report,
        files: Callable[[], Mapping[str, bytes]],
    ) -> None:
        """Judge that they are as they were; after a crash a start judges that."""
        if report.crash is not None or report.started_end >= 0:
            self.changed = []  # what a start has changed no copy fits any more
        if self.files and report.crash is None:
            foreign_files_stay.hold(checks, self.files, files())
