from __future__ import annotations

import pytest

from crashmq.models.ops import PutMessage
from crashmq.scenarios.programs.space import (
    Address,
    Label,
    Numbers,
    Size,
    often,
    put_message,
    record_overhead,
)

T0 = Address("T0", 0)


def test_a_choice_stands_as_often_as_its_weight_says() -> None:
    assert often(("a", 2), ("b", 1)) == ("a", "a", "b")


def test_half_of_the_draws_stand_for_special_numbers_and_the_rest_for_any() -> None:
    numbers = Numbers((7, -1), 3)

    assert [numbers.choose(draw) for draw in range(8)] == [7, 0, -1, 1, 7, 2, -1, 0]


def test_a_size_without_parts_is_the_body() -> None:
    put = put_message(4096, T0, Size(extra=16), Label(tags="A"))

    assert put == PutMessage("T0", 0, 16, tags="A")


@pytest.mark.parametrize("parts", [1, 2, 4, 8])
@pytest.mark.parametrize(
    "label",
    [Label(), Label("TagA"), Label("TagB", "key-1"), Label(wait_store_ok=False)],
)
def test_parts_of_records_fill_a_log_file_up_to_its_blank(
    parts: int, label: Label
) -> None:
    put = put_message(4096, T0, Size(parts=parts), label)

    record_size = put.body_size + record_overhead("T0", label)
    assert record_size * parts == 4096 - 8


def test_a_record_too_small_for_its_share_has_an_empty_body() -> None:
    assert put_message(256, T0, Size(parts=8), Label()).body_size == 0
