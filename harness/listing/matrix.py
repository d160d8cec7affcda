"""The matrix of answers as text: which laws bound each field in each situation."""

from __future__ import annotations

from collections.abc import Iterator

from crashmq.harness.judging import matrix
from crashmq.harness.judging.matrix import SITUATIONS, cells


def lines() -> Iterator[str]:
    """Each field, then its situations with the laws that bound it; last a summary."""
    width = max(len(situation.name) for situation in SITUATIONS)
    field, bounded, reasoned = "", 0, 0
    for cell in cells():
        if cell.field != field:
            field = cell.field
            yield field
        bounded += cell.is_bounded
        reasoned += bool(cell.reason)
        yield f"  {cell.situation:<{width}}  {cell.text}"
    yield (
        f"{bounded} cells are bounded from both sides, of {reasoned} a reason says why "
        f"no law can. A cell of law RD-5: crashmq list laws"
    )


def empty() -> list[str]:
    """The cells without a law for both sides and without a reason.

    And those with a reason although a law exists by now, and reasons of unknown cells.
    """
    every = [*cells()]
    known = {(cell.field, cell.situation) for cell in every}
    wrong = [c for c in every if c.is_bounded is bool(c.reason)]
    left = [
        f"{field}, {situation}" for field, situation in matrix.REASONS.keys() - known
    ]
    return [*[f"{cell.field}, {cell.situation}" for cell in wrong], *sorted(left)]
