"""Confirming: a kill counts if its program passes on the clean engine."""

from __future__ import annotations

from crashmq.harness.episodes.episode import run_program
from crashmq.harness.mutants.hunt import DIED, HANG
from crashmq.harness.mutants.mutation import Mutant, applied
from crashmq.harness.mutants.search_slices import FoundBug
from crashmq.harness.searches.supervised import supervised
from crashmq.models.program import Program
from crashmq.models.verdict import Outcome

REPLAY_TIMEOUT_S = 30.0


def why_unconfirmed(mutant: Mutant, found: FoundBug) -> str:
    """Why a kill does not count; "" if it does.

    The search has compared hangs and deaths with the clean engine already.
    """
    if found.law in (HANG, DIED) or found.program is None:
        return ""
    clean, red = confirmed(mutant, found.program, found.scenario)
    if clean == Outcome.PASSED.value and red in (found.law, HANG, DIED):
        return ""
    return f"on the clean engine {clean or 'no end'}, with the mutant {red}"


def confirmed(mutant: Mutant, program: Program, scenario: str) -> tuple[str, str]:
    """Run a found program again, on the clean engine and with the mutant planted.

    Returns the two results: the law that was broken, else the outcome (``passed``), or
    ``timeout`` or ``died`` if the run did not end.
    """

    def run(with_mutant: int) -> str:
        if not with_mutant:
            return _outcome_of(program, scenario)
        with applied(mutant):
            return _outcome_of(program, scenario)

    clean, red = (
        row if isinstance(row, str) else HANG if row.how == "timeout" else DIED
        for row in supervised(run, (0, 1), REPLAY_TIMEOUT_S)
    )
    return clean, red


def _outcome_of(program: Program, scenario: str) -> str:
    result = run_program(program, scenario, keep_trace=False)
    return result.law if result.outcome is Outcome.VIOLATED else result.outcome.value
