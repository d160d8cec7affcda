"""The matrix of answers: what bounds each field in each situation, in lines of text."""

from __future__ import annotations

from collections.abc import Iterator

from crashmq.harness.judging import matrix
from crashmq.harness.judging.matrix import SITUATIONS, cells


def lines() -> Iterator[str]:
    """Each field, then its situations with the laws that bound it; a summary last."""
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
    """The cells that no law bounds from both sides, and no reason either.

    And those where a reason is left that a law has overtaken, or that is of no cell.
    """
    every = [*cells()]
    known = {(cell.field, cell.situation) for cell in every}
    wrong = [c for c in every if c.is_bounded is bool(c.reason)]
    left = [
        f"{field}, {situation}" for field, situation in matrix.REASONS.keys() - known
    ]
    return [*[f"{cell.field}, {cell.situation}" for cell in wrong], *sorted(left)]
