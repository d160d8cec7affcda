"""The values in expressions, read, ordered and converted as Java does.

A value is a bool, an int (Java's Integer), a ``Long``, a float (Double) or a string. If
two values differ in kind, a string is read as the kind of the other, and the narrower
number is widened; other pairs have no order, and the left one counts as lower.

Source: ComparisonExpression#__compare of rocketmq-filter; java.lang.Integer, Long,
Double and Boolean, #valueOf and #compareTo.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import TypeAlias

from crashmq.engine.filter.errors import EvaluationFailed

INT_MIN, INT_MAX = -(1 << 31), (1 << 31) - 1
LONG_MIN, LONG_MAX = -(1 << 63), (1 << 63) - 1
NO_ORDER = -1

# Java asks Character.digit of each char, which knows the digits of all scripts that
# lie below 0x10000.
_INTEGER = re.compile(r"[+-]?(?:(?![\U00010000-\U0010ffff])\d)+")
_SPACE = "".join(map(chr, range(0x21)))  # what String#trim removes
_DECIMAL = re.compile(
    r"([+-]?)(?:(NaN)|(Infinity)"
    r"|((?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[fFdD]?)"
)
_HEXADECIMAL = re.compile(
    r"([+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?"
)


class Long(int):
    """A 64-bit integer, which Java distinguishes from a 32-bit one."""

    __slots__ = ()


Value: TypeAlias = bool | int | Long | float | str


def read_integer(text: str, low: int, high: int) -> int:
    """The integer in a string, which must be in [low, high].

    Raises:
        EvaluationFailed: it is no such integer.

    Source: Integer#valueOf, Long#valueOf.
    """
    if _INTEGER.fullmatch(text) is None:
        raise EvaluationFailed(f"{text!r} is not an integer")
    value = int(text)
    if not low <= value <= high:
        raise EvaluationFailed(f"{text!r} is not in [{low}, {high}]")
    return value


def read_int(text: str) -> int:
    """An Integer; raises ``EvaluationFailed``."""
    return read_integer(text, INT_MIN, INT_MAX)


def read_long(text: str) -> Long:
    """A Long; raises ``EvaluationFailed``."""
    return Long(read_integer(text, LONG_MIN, LONG_MAX))


def read_double(text: str) -> float:
    """The Double in a string, as ``5``, ``.5``, ``5e3d``, ``NaN`` or ``0x1p3``.

    Raises:
        EvaluationFailed: it is no Double.

    Source: Double#valueOf, which trims.
    """
    trimmed = text.strip(_SPACE)
    found = _DECIMAL.fullmatch(trimmed)
    if found is not None:
        sign, is_nan, is_infinite, digits = found.groups()
        value = math.nan if is_nan else math.inf if is_infinite else float(digits)
        return -value if sign == "-" else value
    found = _HEXADECIMAL.fullmatch(trimmed)
    if found is None:
        raise EvaluationFailed(f"{text!r} is not a number")
    try:
        return float.fromhex(found[1])
    except OverflowError:
        return -math.inf if trimmed.startswith("-") else math.inf


def read_boolean(text: str) -> bool:
    """Whether a string is "true", in any case. Source: Boolean#valueOf."""
    return text.lower() == "true"


def compare(left: Value, right: Value) -> int:
    """A negative number, 0 or a positive one as ``left`` is lower, equal or higher.

    Raises:
        EvaluationFailed: a string cannot be read as the kind of the other value.

    Source: ComparisonExpression#__compare.
    """
    kinds = type(left), type(right)
    if kinds[0] is kinds[1]:
        return _natural(left, right)
    if bool in kinds:
        return _compare_boolean(left, right)
    if isinstance(left, str):
        left = _READERS[kinds[1]](left)
    elif isinstance(right, str):
        right = _READERS[kinds[0]](right)
    if float in kinds:
        return _natural(float(left), float(right))
    return _natural(int(left), int(right))


def _compare_boolean(left: Value, right: Value) -> int:
    if isinstance(left, str):
        return _natural(read_boolean(left), right)
    if isinstance(right, str):
        # There the left value is cast to a text instead of the right one being read.
        raise EvaluationFailed(f"a boolean cannot be compared with {right!r} so")
    return NO_ORDER


def _natural(left: Value, right: Value) -> int:
    """The order of two values of one kind. Source: Double#compareTo, for its NaN."""
    if isinstance(left, float) and isinstance(right, float):
        return _sign(_order_of(left), _order_of(right))
    return _sign(left, right)


def _order_of(value: float) -> tuple[bool, float, float]:
    """A sort key that orders doubles as Java does: -0.0 before 0.0, and NaN last."""
    if math.isnan(value):
        return True, 0.0, 0.0
    return False, value, math.copysign(1.0, value)


def _sign(left: object, right: object) -> int:
    if left == right:
        return 0
    return 1 if left > right else -1  # type: ignore[operator]  # both are of one kind


_READERS: dict[type, Callable[[str], Value]] = {
    int: read_int,
    Long: read_long,
    float: read_double,
}
