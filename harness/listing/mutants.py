"""The planted bugs, and the mutants that were left out."""

from __future__ import annotations

from crashmq.harness.mutants.mutants import LEFT_OUT, MUTANTS
from crashmq.harness.mutants.mutation import Mutant


def rows() -> dict[str, str]:
    """Each mutant's title, difficulty and laws, by its id."""
    return {name: _line_of(mutant) for name, mutant in MUTANTS.items()} | {
        name: f"left out: {reason}" for name, reason in LEFT_OUT.items()
    }


def _line_of(mutant: Mutant) -> str:
    told = [
        mutant.title,
        f"{mutant.component} D{mutant.difficulty}" if mutant.component else "",
        f"needs {mutant.needs}" if mutant.needs else "",
        "as shipped" if mutant.as_shipped else "",
        f"killed by {' or '.join(mutant.killed_by)}",
    ]
    return ", ".join(filter(None, told))
