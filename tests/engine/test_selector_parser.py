"""SQL92 expressions: each executed vector of the reference, and the grammar's edges."""

from __future__ import annotations

import pytest

from crashmq.engine.filter.errors import EvaluationFailed, InvalidSelector
from crashmq.engine.filter.selector_parser import DEPTH_MAX, parse

ERROR, NO_EXPRESSION = "E!", "P!"


def result(expression: str, **properties: str) -> bool | str | None:
    try:
        condition = parse(expression)
    except InvalidSelector:
        return NO_EXPRESSION
    try:
        return condition.evaluate(properties)
    except EvaluationFailed:
        return ERROR


@pytest.mark.parametrize(
    ("expression", "properties", "expected"),
    [
        ("a > 5", {"a": "10"}, True),
        ("a > 5", {"a": "10.5"}, ERROR),
        ("a > 5", {"a": "3000000000"}, ERROR),
        ("a > 5", {}, None),
        ("a > 5.0", {"a": "10.5"}, True),
        ("a > 3000000000", {"a": "1"}, False),
        ("a = 5", {"a": "05"}, True),
        ("a = 5", {"a": " 5"}, ERROR),
        ("a = 5", {"a": "5.0"}, ERROR),
        ("a = 5.0", {"a": "5"}, True),
        ("a <> 5", {"a": "abc"}, ERROR),
        ("a = 'x'", {}, None),
        ("a <> 'x'", {}, None),
        ("'x' = a", {}, False),
        ("'x' <> a", {}, True),
        ("a = b", {}, True),
        ("a <> b", {}, False),
        ("a BETWEEN 5 AND 1", {"a": "3"}, NO_EXPRESSION),
        ("a NOT BETWEEN 5 AND 1", {"a": "3"}, True),
        ("a BETWEEN -1 AND -5", {"a": "-3"}, False),
        ("NOT (a CONTAINS 'el')", {}, True),
        ("a NOT CONTAINS 'el'", {}, False),
        ("NOT a = 5", {"a": "6"}, False),
        ("NOT (a = 5)", {"a": "6"}, True),
        ("a = 5 OR b = 'x'", {"a": "abc", "b": "x"}, ERROR),
        ("b = 'x' OR a = 5", {"a": "abc", "b": "x"}, True),
        ("a LIKE 'x%'", {"a": "xyz"}, False),
        ("a = 1 junk here", {"a": "1"}, True),
        ("a = TRUE", {"a": "TRUE"}, True),
        ("TRUE = a", {"a": "true"}, ERROR),
        ("a > 0.0", {"a": "1"}, NO_EXPRESSION),
        ("a = 007", {"a": "7"}, False),
        ("a > 'abc'", {"a": "b"}, NO_EXPRESSION),
        ("-a < 0", {"a": "2"}, None),
        ("a IN (1,2)", {"a": "1"}, NO_EXPRESSION),
        ("a != 1", {}, NO_EXPRESSION),
        ("a == 1", {}, NO_EXPRESSION),
        ("a.b = 1", {}, NO_EXPRESSION),
        ("", {}, NO_EXPRESSION),
        ("a > 1.5", {"a": "NaN"}, True),
        ("a", {"a": "true"}, False),
        ("a", {}, None),
        ("a > b", {"a": "2", "b": "1.5"}, True),
        ("a > b", {"a": "x", "b": "1"}, ERROR),
    ],
)
def test_an_expression_comes_to_what_the_reference_has_seen(
    expression: str, properties: dict[str, str], expected: bool | str | None
) -> None:
    assert result(expression, **properties) is expected


@pytest.mark.parametrize("text", ["a IS NULL", "A is null", "a /* so */ iS -- \n Null"])
def test_keywords_have_any_case_and_comments_are_nothing(text: str) -> None:
    assert result(text) is True


def test_names_have_a_case() -> None:
    assert result("Color = 'red'", color="red") is None
    assert result("Color = 'red'", Color="red") is True


def test_a_name_may_begin_as_a_keyword() -> None:
    assert result("notes = 'x' AND orange = 'y'", notes="x", orange="y") is True


def test_two_quotes_are_one() -> None:
    assert result("a = 'it''s'", a="it's") is True


@pytest.mark.parametrize("text", ["a = 1)", "a = 1 'rest'", "a = 1.5.5", "a = 1 -- x"])
def test_what_cannot_continue_is_taken_no_notice_of(text: str) -> None:
    assert parse(text)


@pytest.mark.parametrize("text", ["a = 1 @", "a = 1 'open", "(a = 1", "a = 1 NOT 2"])
def test_what_is_no_token_or_not_finished_is_refused(text: str) -> None:
    assert result(text, a="1") == NO_EXPRESSION


@pytest.mark.slow
def test_long_expressions_are_read_and_deep_ones_refused() -> None:
    many = " AND ".join(["a = 1"] * 5000)
    deep = "(" * DEPTH_MAX * 3 + "a = 1" + ")" * DEPTH_MAX * 3
    nots = "NOT (" * DEPTH_MAX + "a = 1" + ")" * DEPTH_MAX

    assert result(many, a="1") is True
    assert result(deep, a="1") is True
    assert result(nots, a="1") == NO_EXPRESSION


def test_a_refusal_says_what_is_wrong() -> None:
    with pytest.raises(InvalidSelector, match="NULL can only be compared with IS NULL"):
        parse("a = NULL")
