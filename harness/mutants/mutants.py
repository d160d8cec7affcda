"""The planted bugs, by their id in the catalogue of bugs that real stores shipped.

They lie in ``planted/*.toml``, in the format of ``mutant_file``. Each names laws, of
which one must flag it, and a trigger: a program that is red with the bug and green
without. ``mutation`` applies their edits. Ids with R and X are the catalogue's, S those
of the sharp edges (``docs/sharp-edges.md``; S01 is row 14.1), N are other bugs found in
RocketMQ, E our own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path

import crashmq.harness.episodes.episode  # noqa: F401  # declares every law of a run
from crashmq.harness.mutants.mutant_file import read_mutants
from crashmq.harness.mutants.mutation import Mutant
from crashmq.models.laws.registry import declared_laws

__all__ = ["LEFT_OUT", "MUTANTS"]

PLANTED = Path(__file__).parent / "planted"

LEFT_OUT: dict[str, str] = {}
"""Bugs of the catalogue that are not planted, each with the reason."""


def _planted() -> dict[str, Mutant]:
    """The mutants of all files, in the order of their names."""
    found: dict[str, Mutant] = {}
    for path in sorted(PLANTED.glob("*.toml")):
        mutants = read_mutants(path, declared_laws())
        taken = found.keys() & mutants.keys()
        assert not taken, f"{path}: {sorted(taken)} are in an earlier file"
        found |= mutants
    assert found, f"no planted bugs in {PLANTED}: it belongs to the package"
    return found


class Planted(Mapping[str, Mutant]):
    """All planted bugs, read when one is first asked for: most commands need none."""

    @cached_property
    def by_id(self) -> dict[str, Mutant]:
        """The planted bugs by id, in the order of their files; a test may add one."""
        return _planted()

    def __getitem__(self, name: str) -> Mutant:
        return self.by_id[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.by_id)

    def __len__(self) -> int:
        return len(self.by_id)


MUTANTS = Planted()
