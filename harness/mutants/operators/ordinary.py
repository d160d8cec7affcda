"""The ordinary operators, from cosmic-ray: comparisons, numbers, words, signs.

Only those of its operators are used whose programs still run: ``+`` becomes ``-`` and
not ``@``. They change parso's syntax tree, place by place.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial
from typing import Any

from crashmq.harness.mutants.operators.spans import Change, Text
from crashmq.reports.errors import EnvironmentMissing
from crashmq.reports.extras import install

_COMPARED = (
    *("Lt_LtE", "LtE_Lt", "Gt_GtE", "GtE_Gt", "Lt_GtE", "GtE_Lt", "Gt_LtE", "LtE_Gt"),
    *("Eq_NotEq", "NotEq_Eq", "Is_IsNot", "IsNot_Is"),
)
_RECKONED = (
    *("Add_Sub", "Sub_Add", "Mul_FloorDiv", "FloorDiv_Mul", "Mod_FloorDiv"),
    *("LShift_RShift", "RShift_LShift", "BitOr_BitAnd", "BitAnd_BitOr"),
    "BitXor_BitOr",
)
NAMES: dict[str, str] = {
    **{f"ReplaceComparisonOperator_{each}": "comparison" for each in _COMPARED},
    **{f"ReplaceBinaryOperator_{each}": "arithmetic" for each in _RECKONED},
    "ReplaceUnaryOperator_Delete_Not": "not-removed",
    "ReplaceUnaryOperator_Delete_USub": "sign-removed",
    "ReplaceTrueWithFalse": "boolean",
    "ReplaceFalseWithTrue": "boolean",
    "ReplaceAndWithOr": "and-or",
    "ReplaceOrWithAnd": "and-or",
    "ReplaceBreakWithContinue": "break-continue",
    "ReplaceContinueWithBreak": "break-continue",
    "NumberReplacer": "constant-by-one",
    "ZeroIterationForLoop": "no-iteration",
}
"""Classes of cosmic-ray, and how the report names what they do."""


class NoOperators(EnvironmentMissing):
    """cosmic-ray is not installed; the message says how to get it."""


def ordinary(text: Text) -> Iterator[Change]:
    """Each change that an ordinary mutation operator makes at a place in the code.

    Raises:
        NoOperators: cosmic-ray is not installed.
    """
    parse, _, operators = _library()
    nodes = list(_nodes(parse(text.text)))
    for name, operator in operators.items():
        spans = [
            (_at(text, *start), _at(text, *end))
            for node in nodes
            for start, end in operator.mutation_positions(node)
        ]
        for occurrence, span in enumerate(spans):
            make = partial(_made, text.text, name, occurrence)
            yield Change(NAMES[name], span, make)


def _made(text: str, name: str, occurrence: int) -> str:
    _, mutate, operators = _library()
    changed = mutate(text, operators[name], occurrence)
    assert isinstance(changed, str), (name, occurrence)
    return changed


def _at(text: Text, line: int, column: int) -> int:
    """The byte offset of a line and column, which parso counts in characters."""
    start = text.starts[line - 1]
    told = text.data[start:].decode()[:column]
    return start + len(told.encode())


def _nodes(node: Any) -> Iterator[Any]:
    """The nodes in the order in which cosmic-ray counts occurrences."""
    yield node
    for child in getattr(node, "children", ()):
        yield from _nodes(child)


@cache
def _library() -> tuple[Any, Any, dict[str, Any]]:
    """Parso's parser, cosmic-ray's mutation, and the operators used, by name."""
    try:
        from cosmic_ray.ast import get_ast
        from cosmic_ray.mutating import mutate_code
        from cosmic_ray.operators.provider import OperatorProvider
    except ImportError as error:
        raise NoOperators(
            f"the ordinary operators are cosmic-ray's, which is not installed "
            f"({error.name}); run {install('mutation')}."
        ) from None
    provider = OperatorProvider()
    return get_ast, mutate_code, {name: provider[name]() for name in NAMES}
