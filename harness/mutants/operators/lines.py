"""Lines: how many slices of a hunt on the clean engine run each line of the engine.

A survivor whose line no slice runs needs a wider generator. One whose line is run often
needs a wider law, or is equivalent. Lines are counted with Python's tracing; a program
with switch points at lines turns tracing off, so lines that only such programs run are
not counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from crashmq import engine
from crashmq.harness.mutants.hunt import kind_of
from crashmq.harness.mutants.search_slices import run_slice
from crashmq.harness.mutants.traced import traced
from crashmq.harness.searches.supervised import supervised
from crashmq.reports.operator_records import Lines

TRACED_TIMEOUT_S = 300.0  # tracing takes several times as long
_ENGINE = Path(engine.__file__).parent


def counted_lines(seed: int, slices: Sequence[int]) -> Iterator[Lines]:
    """Yield the lines that each slice runs; an empty set for a lost slice."""
    rows = supervised(partial(_lines_of, seed), slices, TRACED_TIMEOUT_S)
    for row in rows:
        yield row if isinstance(row, dict) else {}


def add_lines(lines: Lines, more: Lines) -> None:
    """Add the lines of one more slice to the counts."""
    for module, numbers in more.items():
        counts = lines.setdefault(module, {})
        for number in numbers:
            counts[number] = counts.get(number, 0) + 1


def _lines_of(seed: int, number: int) -> Lines:
    met: set[tuple[str, int]] = set()
    with traced(met):
        run_slice(kind_of(number), seed, number, "")
    lines: Lines = {}
    for filename, line in sorted(met):
        path = Path(filename).relative_to(_ENGINE).with_suffix("")
        lines.setdefault(".".join(("crashmq.engine", *path.parts)), {})[line] = 1
    return lines
