"""A mutant of the harness or its host: an edit of a disk rule, the model, a law.

The form is that of ``mutation``. The area says which part of the harness is
edited, and so which tests are run first; nothing says which test is to notice it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from crashmq.harness.mutants.mutation import Edit, Mutant

Area = Literal["disk", "model", "image", "laws", "judging", "explore", "host"]
Row = tuple[str, str, str, str, str]  # id, module, function, before, after


@dataclass(frozen=True, slots=True)
class HarnessMutant:
    """One edit of the harness itself.

    Attributes:
        id: letters of the area and a number; never reused.
        area: the part of the harness.
        edit: what differs.
    """

    id: str
    area: Area
    edit: Edit

    def as_mutant(self) -> Mutant:
        """The same, to be put in place."""
        return Mutant(self.id, f"{self.area} edited", (), (self.edit,))


def mutants_of(area: Area, package: str, rows: tuple[Row, ...]) -> list[HarnessMutant]:
    """The mutants of one area; modules are named below ``package``."""
    return [
        HarnessMutant(name, area, Edit(f"{package}.{module}", function, before, after))
        for name, module, function, before, after in rows
    ]
