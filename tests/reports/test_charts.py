from __future__ import annotations

from itertools import pairwise

import pytest

from crashmq.reports.charts import (
    EMPTY,
    LEVELS,
    Count,
    heat_map,
    level_of,
    stacked_bars,
)


def test_a_cell_that_was_never_tried_is_there_and_empty() -> None:
    chart = heat_map(["write", "sync"], ["log"], {("write", "log"): Count(9, 1)})

    assert [(cell.row, cell.level) for cell in chart.cells] == [
        ("write", LEVELS),
        ("sync", EMPTY),
    ]
    assert chart.tried == 1


def test_no_two_boxes_overlap_and_all_lie_inside() -> None:
    chart = heat_map(["a", "b"], ["one", "a much longer name"], {})

    for left, right in pairwise(chart.cells[:2]):
        assert left.x + chart.cell_width < right.x
    assert chart.cells[0].y + chart.cell_height < chart.cells[2].y
    assert chart.cells[-1].x + chart.cell_width <= chart.width
    assert chart.cells[-1].y + chart.cell_height <= chart.height


def test_labels_get_the_room_they_need() -> None:
    short = heat_map(["a"], ["x"], {})
    long = heat_map(["a" * 40], ["x"], {})

    assert long.cells[0].x - short.cells[0].x > 39 * 6


@pytest.mark.parametrize(
    ("tried", "level"), [(0, EMPTY), (1, 0), (100, 3), (10_000, 5)]
)
def test_colour_grows_with_the_logarithm(tried: int, level: int) -> None:
    assert level_of(tried, 10_000) == level


def test_parts_of_a_bar_fill_it_side_by_side() -> None:
    chart = stacked_bars({"put": {"OK": 3, "Skipped": 1}}, {"OK": "g", "Skipped": "i"})

    first, second = chart.bars[0].segments
    assert first.x + first.width == pytest.approx(second.x)
    assert first.width == pytest.approx(3 * second.width)
    assert (first.tone, second.share) == ("g", 0.25)
    assert chart.bars[0].total == 4


def test_a_bar_of_nothing_has_no_parts() -> None:
    chart = stacked_bars({"put": {}}, {})

    assert (chart.bars[0].total, chart.bars[0].segments) == (0, ())
