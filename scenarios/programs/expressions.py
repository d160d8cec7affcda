"""Expressions: what groups ask for, made at random by the grammar of SQL92.

Each operator, kind of literal and way to be wrong comes up; so does each way in which
two values are compared, since the properties of messages (``VALUES``) are of as many
kinds. What RocketMQ reads only in part is not drawn: nobody can say what is meant.
"""

from __future__ import annotations

from typing import Final

from crashmq.scenarios.programs.chance import Chance
from crashmq.scenarios.programs.space import often

NAMES: Final = often(("a", 4), ("b", 2), ("c", 1))
VALUES: Final[tuple[str, ...]] = (
    *("6", "5", "7", "-1", "05", "+6", "0", "6.0", "5.5", "1e3", ".5", "2d"),
    *("2147483647", "2147483648", "-2147483648", "-2147483649", "3000000000"),
    *("9223372036854775807", "9223372036854775808", "NaN", "-Infinity"),
    *("x", "xy", "y", "", "it's", "true", "TRUE", "false", " 6", "6 ", "many"),
)
"""Texts that are numbers of every kind, at their bounds and past them, or none."""
NUMBERS: Final = often(
    *[(one, 3) for one in ("6", "5", "7")],
    *[(one, 1) for one in ("0", "1000", "2147483647", "2147483648", "3000000000")],
    *[(one, 1) for one in ("6L", "9223372036854775807", "9223372036854775808")],
    *[(one, 2) for one in ("6.0", "5.5", "6.")],
    *[(one, 1) for one in (".5", "1e3", "2.5E-1", "0.0", "-6", "-5.5", "+6", "- 1")],
)
TEXTS: Final = often(
    ("'x'", 3), ("'xy'", 1), ("'y'", 1), ("''", 1), ("'it''s'", 1), ("'6'", 1)
)
ORDERS: Final = ("<", "<=", ">", ">=")
SEARCHES: Final = ("CONTAINS", "STARTSWITH", "ENDSWITH", "contains")
DEPTHS: Final = often((0, 4), (1, 4), (2, 3), (3, 1))
NESTINGS: Final = (40, 150)
"""Of parentheses: well below as many as may be, and well above."""
OPEN: Final = ("a >", "(a = 6", "a IN ()", "a IN (6)", "AND", "", "a ! 6")
"""What is no expression, however it is read."""


SPECIAL: Final = (
    *("'x' = a", "'x' <> a", "TRUE = a", "a = TRUE", "TRUE = 6", "TRUE = FALSE"),
    *("a = b", "a <> b", "a > b", "NOT a = 6", "NOT (a = 6)", "-a < 0", "a = NULL"),
    *("a BETWEEN -1 AND -5", "a BETWEEN 7 AND 5", "a NOT BETWEEN 7 AND 5", "a"),
    *("NOT (b CONTAINS 'x')", "b NOT CONTAINS 'x'", "b CONTAINS ''", "6", "'x'"),
    *("a = 6 OR b = 'x'", "b = 'x' OR a = 6", "a > 0.0", "a > 'x'", "6 = a", "a = 6.0"),
)
"""One of each rule that has a vector in section 7.5 of the consumer reference."""


def drawn_expression(chance: Chance) -> str:
    """An expression, now and then one that no broker may take."""
    if chance.one_in(4):
        return chance.pick(SPECIAL)
    if chance.one_in(20):
        return chance.pick(OPEN)
    if chance.one_in(30):
        times = chance.pick(NESTINGS)
        return f"{'NOT (' * times}a = 6{')' * times}"
    return _condition(chance, chance.pick(DEPTHS))


def _condition(chance: Chance, depth: int) -> str:
    if not depth:
        return _comparison(chance)
    parts = [_condition(chance, depth - 1)]
    more = range(chance.below(3))
    parts += [_condition(chance, chance.below(depth)) for _ in more]
    if len(parts) == 1:
        return f"NOT ({parts[0]})"
    joined = parts[0]
    for part in parts[1:]:
        word = chance.pick(("AND", "OR", "and"))
        right = f"({part})" if chance.coin() else part
        joined = f"{joined} {word} {right}"
    return joined


def _comparison(chance: Chance) -> str:
    name = chance.pick(NAMES)
    match chance.below(13):
        case 0 | 1 | 2:
            order = chance.pick(ORDERS)
            return f"{name} {order} {_comparable(chance)}"
        case 3 | 4:
            return f"{name} {chance.pick(('=', '<>'))} {_any(chance)}"
        case 5:
            sides = _any(chance), _any(chance)
            return f"{sides[0]} {chance.pick(('=', '<>', *ORDERS))} {sides[1]}"
        case 6 | 7:
            bounds = _comparable(chance), _comparable(chance)
            word = chance.pick(("BETWEEN", "NOT BETWEEN"))
            return f"{name} {word} {bounds[0]} AND {bounds[1]}"
        case 8:
            texts = ", ".join(chance.pick(TEXTS) for _ in range(1 + chance.below(3)))
            return f"{name} {chance.pick(('IN', 'NOT IN'))} ({texts})"
        case 9:
            return f"{name} {chance.pick(('IS NULL', 'IS NOT NULL'))}"
        case 10:
            word = chance.pick(("", "NOT "))
            return f"{name} {word}{chance.pick(SEARCHES)} {chance.pick(TEXTS)}"
        case 11:
            return chance.pick(("TRUE", "FALSE", "NULL", name, f"NOT {name}"))
        case _:
            return f"NOT {name} = {chance.pick(NUMBERS)}"


def _comparable(chance: Chance) -> str:
    """A number, mostly; else a property, or the contrary of one."""
    if chance.one_in(6):
        return chance.pick((*NAMES, "-a", "'x'", "TRUE"))
    return chance.pick(NUMBERS)


def _any(chance: Chance) -> str:
    """A literal of any kind, or a property."""
    match chance.below(8):
        case 0:
            return chance.pick(("TRUE", "false", "NULL"))
        case 1 | 2:
            return chance.pick(NAMES)
        case 3 | 4:
            return chance.pick(TEXTS)
        case _:
            return chance.pick(NUMBERS)
