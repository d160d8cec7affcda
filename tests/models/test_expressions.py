"""The reference evaluation of expressions, held against the engine's own."""

from __future__ import annotations

from itertools import product

import pytest

from crashmq.engine.filter.errors import EvaluationFailed, InvalidSelector
from crashmq.engine.filter.selector_parser import parse
from crashmq.models.expressions import Outcome, is_readable, matches
from crashmq.scenarios.catalogue.filtering import EXPRESSIONS

VALUES = (None, "5", "6", "3", "10.5", "many", "-1", "3000000000", "x", "xy", "y", "05")
TOLD: dict[bool | None, Outcome] = {True: "yes", False: "no", None: "unknown"}
DRAWN = sorted({text for text, kind in EXPRESSIONS if kind == "SQL92"})


def by_the_engine(expression: str, properties: dict[str, str]) -> Outcome:
    try:
        return TOLD[parse(expression).evaluate(properties)]
    except EvaluationFailed:
        return "fails"


@pytest.mark.parametrize("expression", DRAWN)
def test_both_evaluations_of_what_is_drawn_agree(expression: str) -> None:
    if not is_readable(expression):
        with pytest.raises(InvalidSelector):
            parse(expression)
        return
    for a, b in product(VALUES, VALUES):
        properties = {name: v for name, v in (("a", a), ("b", b)) if v is not None}
        told = matches(expression, "SQL92", "", properties)

        assert told == by_the_engine(expression, properties), properties


@pytest.mark.parametrize("text", ["", "a LIKE 'x'", "a > b", "(a = 1", "a = 1 @", "a"])
def test_what_no_program_draws_is_not_told(text: str) -> None:
    assert not is_readable(text)


@pytest.mark.parametrize(
    ("expression", "tags", "expected"),
    [
        ("*", "", "yes"),
        ("Aa", "Aa", "yes"),
        ("Aa || BB", "BB", "yes"),
        ("Aa", "BB", "no"),
        ("Aa", "", "no"),
        (" ", "", "no"),
    ],
)
def test_tags_are_compared_whole(expression: str, tags: str, expected: Outcome) -> None:
    assert matches(expression, "TAG", tags, {}) == expected
