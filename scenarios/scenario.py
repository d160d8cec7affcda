"""Scenario: one named question to the store, as data.

Hypothesis machines, seeded soaks and the report read the same entry.
"""

from __future__ import annotations

from dataclasses import dataclass

from models.program import Setup
from scenarios.space import Space


@dataclass(frozen=True, slots=True)
class Scenario:
    """One named question to the store.

    Attributes:
        name: as typed on a command line.
        sentence: what happens in it, for people.
        space: the ranges its ops are drawn from.
        setups: the stores and disks; one as likely as it is often listed.
        length: fewest and most ops of a seeded program.
        machine_steps: rules a Hypothesis machine takes in one test case.
        required_probes: branches a soak of a thousand episodes must have reached.
        required_invariants: laws such a soak must have judged.
    """

    name: str
    sentence: str
    space: Space
    setups: tuple[Setup, ...]
    length: tuple[int, int] = (20, 60)
    machine_steps: int = 25
    required_probes: tuple[str, ...] = ()
    required_invariants: tuple[str, ...] = ()
