"""Scenario: a named distribution of programs, as data.

Hypothesis machines, seeded soaks and the report use the same entries.
"""

from __future__ import annotations

from dataclasses import dataclass

from crashmq.models.ops import Capability
from crashmq.models.program import Setup
from crashmq.scenarios.programs.chance import Chance
from crashmq.scenarios.programs.mixing import mixed
from crashmq.scenarios.programs.restricting import needs_of
from crashmq.scenarios.programs.space import Space


@dataclass(frozen=True, slots=True)
class Scenario:
    """A named distribution of programs: what is tried, and on which stores.

    Attributes:
        name: as typed on a command line.
        sentence: what happens in it, for people.
        space: the ranges its ops are drawn from.
        setups: the stores and disks; each is as likely as it is often listed.
        length: fewest and most ops of a seeded program.
        machine_steps: rules a Hypothesis machine takes in one test case.
        required_probes: branches a soak of a thousand episodes must have reached.
        required_laws: laws such a soak must have judged.
        mixes: scenarios of which each seeded program mixes two; then space and setups
            are those of all of them.
    """

    name: str
    sentence: str
    space: Space
    setups: tuple[Setup, ...]
    length: tuple[int, int] = (20, 60)
    machine_steps: int = 25
    required_probes: tuple[str, ...] = ()
    required_laws: tuple[str, ...] = ()
    mixes: tuple[Scenario, ...] = ()

    @property
    def needs(self) -> frozenset[Capability]:
        """The capabilities a subject must have for this scenario to be run on it."""
        if self.mixes:
            return frozenset().union(*[one.needs for one in self.mixes])
        finds = all(setup.begins_with for setup in self.setups)
        found = frozenset({Capability.FINDS_STORES}) if finds else frozenset()
        return needs_of(self.space) | found

    def drawn(self, chance: Chance) -> tuple[Space, Setup]:
        """Draw the ranges for one program, and its store's configuration."""
        if not self.mixes:
            return self.space, chance.pick(self.setups)
        one, other = [chance.pick(self.mixes) for _ in range(2)]
        return mixed(one.drawn(chance), other.drawn(chance))
