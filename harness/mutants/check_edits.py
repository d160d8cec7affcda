"""Checks whether the edits of a file of mutants can be made in this version.

``harness.mutants.mutant_file`` reads such a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from crashmq.harness.mutants.mutation import Mutant, MutantError, applied
from crashmq.harness.searches.supervised import Lost, supervised

CHECK_TIMEOUT_S = 30.0


def check_edits(mutants: Mapping[str, Mutant]) -> Iterator[str]:
    """One sentence for each mutant whose edits cannot be made in this version.

    A child process tries them, since computing an edited constant runs the mutant's
    text.
    """
    chosen = list(mutants.values())

    def trial(number: int) -> str:
        try:
            with applied(chosen[number]):
                return ""
        except MutantError as error:
            return str(error)

    rows = supervised(trial, range(len(chosen)), CHECK_TIMEOUT_S)
    for mutant, row in zip(chosen, rows, strict=True):
        if isinstance(row, Lost):
            why = row.said or row.how
            yield f"mutant {mutant.id}: planting it ended its process: {why}"
        elif row:
            yield row
