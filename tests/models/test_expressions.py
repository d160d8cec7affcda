"""The reference evaluation of expressions, held against the engine's own."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest

from crashmq.engine.filter.errors import EvaluationFailed, InvalidSelector
from crashmq.engine.filter.selector_parser import parse
from crashmq.models.expressions import Outcome, is_readable, matches
from crashmq.scenarios.catalogue.filtering import EXPRESSIONS
from crashmq.scenarios.programs.chance import SeededChance
from crashmq.scenarios.programs.expressions import AROUND, drawn_expression
from crashmq.scenarios.programs.expressions import VALUES as PROPERTIES

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


@pytest.mark.parametrize("around", [*AROUND, "- {}", "+ {}"])
def test_both_count_the_same_levels(around: str) -> None:
    whole = "a = 6"
    told = set[bool]()
    for number in range(104):
        whole = around.format(whole)
        if 3 < number % 50 < 45:
            continue  # far from the limit, be it at one level a time or at two
        told.add(is_readable(whole))
        try:
            parse(whole)
        except InvalidSelector:
            assert not is_readable(whole), whole
        else:
            assert is_readable(whole), whole

    has_levels = around not in ("({})", "+ {}", "{} AND a = 6")
    assert told == ({True, False} if has_levels else {True})


@pytest.mark.slow
def test_both_agree_on_whatever_the_grammar_says() -> None:
    outcomes = Counter[str]()
    for number in range(1500):
        chance = SeededChance(5, number)
        expression = drawn_expression(chance)
        try:
            parse(expression)
        except InvalidSelector:
            assert not is_readable(expression), expression
            outcomes["refused"] += 1
            continue
        for _ in range(4):
            properties = {
                name: chance.pick(PROPERTIES) for name in "abc" if chance.below(4)
            }
            told = matches(expression, "SQL92", "", properties)
            outcomes[told] += 1

            assert told == by_the_engine(expression, properties), (
                expression,
                properties,
            )
    assert min(outcomes[each] for each in ("yes", "no", "unknown", "fails")) > 100
    assert outcomes["refused"] > 100


@pytest.mark.parametrize(
    ("expression", "properties", "expected"),
    [
        ("a > 5", {"a": "10"}, "yes"),
        ("a > 5", {"a": "10.5"}, "fails"),
        ("a > 5", {}, "unknown"),
        ("a > 3000000000", {"a": "1"}, "no"),
        ("a = 5", {"a": "05"}, "yes"),
        ("a = 5.0", {"a": "5"}, "yes"),
        ("'x' = a", {}, "no"),
        ("'x' <> a", {}, "yes"),
        ("a = b", {}, "yes"),
        ("a BETWEEN -1 AND -5", {"a": "-3"}, "no"),
        ("NOT (a CONTAINS 'el')", {}, "yes"),
        ("a NOT CONTAINS 'el'", {}, "no"),
        ("NOT a = 5", {"a": "6"}, "no"),
        ("a = TRUE", {"a": "TRUE"}, "yes"),
        ("TRUE = a", {"a": "true"}, "fails"),
        ("-a < 0", {"a": "2"}, "unknown"),
        ("a > 1.5", {"a": "NaN"}, "yes"),
    ],
)
def test_what_rocketmq_was_seen_to_say(
    expression: str, properties: dict[str, str], expected: Outcome
) -> None:
    """The vectors of section 7.5 of the consumer reference."""
    assert matches(expression, "SQL92", "", properties) == expected


@pytest.mark.parametrize(
    ("expression", "properties", "expected"),
    [
        ("a > 5.5", {"a": "0x1.8p2"}, "yes"),
        ("a = 5.5", {"a": "0XBp-1f"}, "yes"),
        ("a > 5.5", {"a": "0x6"}, "fails"),
        ("a > 5.5", {"a": "0xp1"}, "fails"),
        ("a > 5.5", {"a": "6F"}, "yes"),
        ("a > 5.5", {"a": "Infinityd"}, "fails"),
        ("a = 6 junk", {"a": "6"}, "yes"),
        ("a = 6 ) !", {"a": "7"}, "no"),
    ],
)
def test_java_reads_more_than_decimals_and_less_than_the_text(
    expression: str, properties: dict[str, str], expected: Outcome
) -> None:
    assert matches(expression, "SQL92", "", properties) == expected
    assert by_the_engine(expression, properties) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a = 1 IS",
        "a = 1 !",
        "'x' IN ('x')",
        "(a = 1",
        "a = 1 @",
        "a > 0.0",
        "a IN (1)",
        "a = NULL",
        "6",
    ],
)
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
