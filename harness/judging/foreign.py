"""Files of others in the store's directories: what they change, and what they may not.

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
from models.observations import Damaged
from models.plain_state import fork_of_fields


@dataclass(slots=True)
class Foreign:
    """Files that are not the store's, and what is in them."""

    files: dict[str, bytes] = field(default_factory=dict)

    def fork(self) -> Foreign:
        """One that goes on by itself."""
        return fork_of_fields(self)

    def take_note(
        self, report: Report, files: Mapping[str, bytes], *, has_index: bool
    ) -> list[Damaged]:
        """Take note of what was put among ``files``; what was done to the store's."""
        damages = [one for one in report.damages if one.path not in self.files]
        for planted in report.planted:
            path, size = planted.path, planted.size
            if size < 0:
                continue
            if is_of_a_store(path, has_index=has_index):
                damages.append(Damaged(path, 0, size))
            else:
                self.files[path] = files[path]
        self.files = {path: files[path] for path in self.files if path in files}
        return damages

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
        if self.files and report.crash is None:
            foreign_files_stay.hold(checks, self.files, files())
