"""Charts as geometry: the position of each box and label of an SVG, in pixels.

Nothing here writes markup; the templates do, and escape every text, so that no topic
name or message of a store can become markup.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

LEVELS = 5
EMPTY = -1

_CHARACTER = 6.8  # width of one at 12 px, a little generous
_GAP = 3
_CELL_HEIGHT = 34
_HEAD = 24
_BAR_HEIGHT = 20
_BAR_STEP = 27
_BAR_WIDTH = 720
_COLUMNS_WIDTH, _COLUMNS_HEIGHT, _COLUMNS_FOOT = 260.0, 88.0, 18.0
_COLUMN_STEP_MAX = 40.0


@dataclass(frozen=True, slots=True)
class Count:
    """The counts of one cell: how often it was tried, how often a law was violated."""

    tried: int = 0
    violated: int = 0


@dataclass(frozen=True, slots=True)
class Label:
    """A text and its position in the chart."""

    x: float
    y: float
    text: str


@dataclass(frozen=True, slots=True)
class Cell:
    """One box of a heat map; level EMPTY: never tried; 0 to LEVELS: how often."""

    x: float
    y: float
    row: str
    column: str
    count: Count
    level: int


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Rows by columns of boxes; wide enough for its labels."""

    width: float
    height: float
    cell_width: float
    cell_height: float
    rows: tuple[Label, ...]
    columns: tuple[Label, ...]
    cells: tuple[Cell, ...]

    @property
    def tried(self) -> int:
        """Cells that were tried at least once."""
        return sum(cell.count.tried > 0 for cell in self.cells)


@dataclass(frozen=True, slots=True)
class Segment:
    """One part of a bar; ``tone`` names its colour in the style sheet."""

    x: float
    width: float
    name: str
    value: int
    share: float
    tone: str


@dataclass(frozen=True, slots=True)
class Bar:
    """One stacked bar; all bars have the same width, whatever their sum."""

    label: Label
    total: int
    segments: tuple[Segment, ...]


@dataclass(frozen=True, slots=True)
class Bars:
    """Rows of stacked bars under one another."""

    width: float
    height: float
    bar_height: float
    end: float
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True)
class Column:
    """One bar; ``value`` is None if it is unknown."""

    x: float
    y: float
    width: float
    height: float
    name: str
    value: float | None


@dataclass(frozen=True, slots=True)
class Columns:
    """Bars next to each other on a line at ``ground``."""

    width: float
    height: float
    ground: float
    most: float
    columns: tuple[Column, ...]


def heat_map(
    rows: Sequence[str],
    columns: Sequence[str],
    counts: Mapping[tuple[str, str], Count],
) -> HeatMap:
    """Place a box for each (row, column); a cell not in ``counts``: never tried."""
    left = _label_width(rows)
    cell_width = max(76.0, max(map(_text_width, columns), default=0) + 14)
    most = max((count.tried for count in counts.values()), default=0)
    xs = [left + n * (cell_width + _GAP) for n in range(len(columns))]
    ys = [_HEAD + n * (_CELL_HEIGHT + _GAP) for n in range(len(rows))]
    row_labels = [
        Label(left - 10, y + _CELL_HEIGHT / 2, row)
        for row, y in zip(rows, ys, strict=True)
    ]
    column_labels = [
        Label(x + cell_width / 2, _HEAD - 9, column)
        for column, x in zip(columns, xs, strict=True)
    ]
    cells = []
    for row, y in zip(rows, ys, strict=True):
        for column, x in zip(columns, xs, strict=True):
            count = counts.get((row, column), Count())
            level = level_of(count.tried, most)
            cells.append(Cell(x, y, row, column, count, level))
    return HeatMap(
        width=left + len(columns) * (cell_width + _GAP),
        height=_HEAD + len(rows) * (_CELL_HEIGHT + _GAP),
        cell_width=cell_width,
        cell_height=_CELL_HEIGHT,
        rows=tuple(row_labels),
        columns=tuple(column_labels),
        cells=tuple(cells),
    )


def columns(values: Mapping[str, float | None]) -> Columns:
    """A column for each name, in order; heights are relative to the highest value."""
    most = max((value for value in values.values() if value), default=0.0)
    step = min(_COLUMN_STEP_MAX, _COLUMNS_WIDTH / max(1, len(values)))
    height = _COLUMNS_HEIGHT - _COLUMNS_FOOT
    found = []
    for n, (name, value) in enumerate(values.items()):
        tall = height * (value or 0.0) / most if most else 0.0
        # What is more than nothing is seen.
        tall = max(tall, 2.0) if value else 0.0
        box = (round(n * step, 2), round(height - tall, 1), round(step * 0.8, 2))
        found.append(Column(*box, round(tall, 1), name, value))
    return Columns(_COLUMNS_WIDTH, _COLUMNS_HEIGHT, height, most, tuple(found))


def level_of(tried: int, most: int) -> int:
    """The colour level of ``tried``, at most ``most``: EMPTY, or 0 to LEVELS by log.

    Counts of crash points span four powers of ten; on a linear scale only one would
    show.
    """
    if tried == 0:
        return EMPTY
    assert tried <= most, (tried, most)
    return round(LEVELS * math.log1p(tried) / math.log1p(most))


def stacked_bars(
    rows: Mapping[str, Mapping[str, int]], tones: Mapping[str, str]
) -> Bars:
    """One bar per row, each part as wide as its share; ``tones``: colours by part."""
    left = _label_width(list(rows))
    bars = []
    for n, (name, parts) in enumerate(rows.items()):
        total, x, segments = sum(parts.values()), left, []
        for part, value in parts.items():
            share = value / total if total else 0.0
            width = share * _BAR_WIDTH
            segments.append(Segment(x, width, part, value, share, tones[part]))
            x += width
        label = Label(left - 10, n * _BAR_STEP + _BAR_HEIGHT / 2, name)
        bars.append(Bar(label, total, tuple(segments)))
    end = left + _BAR_WIDTH + 10
    height = len(bars) * _BAR_STEP
    return Bars(end + 90, height, _BAR_HEIGHT, end, tuple(bars))


def _label_width(labels: Sequence[str]) -> float:
    return max(map(_text_width, labels), default=0.0) + 16


def _text_width(text: str) -> float:
    return len(text) * _CHARACTER
