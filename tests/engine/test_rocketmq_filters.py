"""Filters beside RocketMQ's own, in a JVM: expressions, bits and subscriptions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

import pytest
from random_expressions import STRINGS, Expressions

from crashmq.engine.filter.bits_array import BitsArray
from crashmq.engine.filter.bloom_filter import BloomFilter
from crashmq.engine.filter.errors import EvaluationFailed, InvalidSelector
from crashmq.engine.filter.expression import Condition
from crashmq.engine.filter.selector_parser import parse
from crashmq.engine.remoting.filter_api import build_subscription_data

AskFilters = Callable[[Sequence[Mapping[str, Any]]], list[Any]]

EXPRESSIONS = 10_000
MAPS_EACH = 3
pytestmark = [pytest.mark.slow, pytest.mark.rocketmq]


def value_of(compiled: Condition, properties: Mapping[str, str]) -> bool | str | None:
    try:
        return compiled.evaluate(properties)
    except EvaluationFailed:
        return "E!"


def values_of(
    expression: str, maps: Sequence[Mapping[str, str]]
) -> str | list[bool | str | None]:
    try:
        compiled = parse(expression)
    except InvalidSelector:
        return "P!"
    return [value_of(compiled, properties) for properties in maps]


def test_random_expressions_come_to_what_rocketmq_says(
    rocketmq_filters: AskFilters,
) -> None:
    drawn = Expressions(17)
    asked: list[dict[str, Any]] = [
        {
            "verb": "evaluate",
            "expression": drawn.expression(),
            "properties": [drawn.properties() for _ in range(MAPS_EACH)],
        }
        for _ in range(EXPRESSIONS)
    ]

    theirs = rocketmq_filters(asked)

    ours = [values_of(one["expression"], one["properties"]) for one in asked]
    differ = [
        (one, mine, other)
        for one, mine, other in zip(asked, ours, theirs, strict=True)
        if mine != other
    ]
    assert differ == []
    kinds = {repr(value) for row in ours if row != "P!" for value in row}
    assert kinds == {"True", "False", "None", "'E!'"}
    assert 0.2 < sum(row == "P!" for row in ours) / EXPRESSIONS < 0.5


def names(count: int) -> list[str]:
    chance = Random(count)
    letters = "abcXYZ019_-%#支付💰"
    return [
        "".join(chance.choice(letters) for _ in range(size % 70))
        for size in range(count)
    ]


def test_a_name_has_the_positions_that_rocketmq_gives_it(
    rocketmq_filters: AskFilters,
) -> None:
    shapes = [(f, n) for f in (1, 7, 20, 50, 51, 99) for n in (1, 32, 64, 1000)]
    asked = [{"verb": "bloom", "f": f, "n": n, "texts": names(300)} for f, n in shapes]

    theirs = rocketmq_filters(asked)

    for (f, n), said in zip(shapes, theirs, strict=True):
        ours = BloomFilter(f, n)
        assert (ours.k, ours.m) == (said["k"], said["m"])
        found = [list(ours.calc_bit_positions(name)) for name in names(300)]
        assert found == said["positions"]


def test_bits_are_the_bytes_that_rocketmq_writes(rocketmq_filters: AskFilters) -> None:
    put, others = names(40)[3:8], names(200)
    shapes = [(20, 32), (20, 64), (1, 32), (10, 128)]
    asked = [
        {"verb": "bits", "f": f, "n": n, "texts": put, "others": others}
        for f, n in shapes
    ]

    theirs = rocketmq_filters(asked)

    for (f, n), said in zip(shapes, theirs, strict=True):
        bloom = BloomFilter(f, n)
        bits = BitsArray(bloom.m)
        for name in put:
            bloom.hash_to(bloom.generate(name), bits)
        again = BitsArray.of(bits.to_bytes())
        assert bits.to_bytes().hex() == said["bytes"]
        assert [again.get_bit(at) for at in range(bloom.m)] == said["each"]
        hits = [bloom.is_hit(bloom.generate(name), again) for name in others]
        assert hits == said["hits"]


def subscriptions() -> list[tuple[str | None, str | None]]:
    chance = Random(4)
    parts = ("||", "|", " ", "A", "Aa", "BB", "*", "支付", "\t", "\u00a0", "||")
    drawn = [
        "".join(chance.choice(parts) for _ in range(chance.randint(0, 7)))
        for _ in range(500)
    ]
    types = ("TAG", "SQL92", None)
    return [(text, kind) for text in (None, *drawn) for kind in types]


def test_subscriptions_are_those_of_rocketmq(rocketmq_filters: AskFilters) -> None:
    asked = [
        {"verb": "subscribe", "topic": "T", "expression": text, "type": kind}
        for text, kind in subscriptions()
    ]

    theirs = rocketmq_filters(asked)

    for (text, kind), said in zip(subscriptions(), theirs, strict=True):
        assert subscribed(text, kind) == said, (text, kind)


def subscribed(text: str | None, kind: Any) -> object:
    try:
        made = build_subscription_data("T", text, kind)
    except ValueError:
        return "P!"
    return {
        "expression": made.sub_string,
        "tags": sorted(made.tags, key=lambda tag: tag.encode("utf-16-be")),
        "codes": list(made.codes),
        "type": made.expression_type,
    }


def test_the_drawn_texts_reach_every_kind_of_string() -> None:
    drawn = Expressions(17)
    text = "".join(drawn.expression() for _ in range(2000))

    assert [literal for literal in STRINGS if literal not in text] == []
