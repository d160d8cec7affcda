"""Whether a message matches a subscription, evaluated independently of the engine.

Expressions are parsed by their grammar and evaluated in three-valued logic; a property
of a kind that cannot be compared makes the whole expression fail. A parser of RocketMQ
stops at the first token that cannot go on with an expression, and looks at nothing
behind that token: ``a = 1 junk`` is ``a = 1``. A keyword that may go on and does not,
as in ``a = 1 IS``, is not evaluated here, and no program contains one.

An expression has at most ``LEVELS_MAX`` levels: a value is one, and an operator is one
above its deepest operand. Parentheses and a plus add none, what AND or OR join in a row
lies on one level, and ``<>``, IS NOT NULL and BETWEEN are two (docs/sharp-edges.md).

Source: section 7.5 of the consumer reference this project was built from;
SelectorParser.jj; Double#valueOf.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Literal, NoReturn, TypeAlias

Properties: TypeAlias = Mapping[str, str]
Outcome: TypeAlias = Literal["yes", "no", "unknown", "fails"]
Value: TypeAlias = "tuple[str, bool | int | float | str] | None"
"""Its kind (bool, int, long, double, text) and what it is; None: unknown."""
Asked: TypeAlias = Callable[[Properties], Value]

LEVELS_MAX = 100
_TOKEN = re.compile(
    r"\s*(?:(?P<word>[A-Za-z_$][A-Za-z0-9_$]*)"
    r"|(?P<double>[0-9]+\.[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?"
    r"|[0-9]+[eE][+-]?[0-9]+)|(?P<whole>(?:0|[1-9][0-9]*[lL]?)(?![0-9A-Za-z_$]))"
    r"|(?P<text>'(?:''|[^'])*')|(?P<mark><>|<=|>=|[-+=<>(),]))"
)
_SEARCHES: Final[Mapping[str, Callable[[str, str], bool]]] = {
    "CONTAINS": str.__contains__,
    "STARTSWITH": str.startswith,
    "ENDSWITH": str.endswith,
}
_ORDERS: Final[Mapping[str, Callable[[int], bool]]] = {
    "<": (-1).__eq__,
    ">": (1).__eq__,
    "<=": (1).__ne__,
    ">=": (-1).__ne__,
}
_WORDS = frozenset(
    ("AND", "OR", "NOT", "IS", "NULL", "IN", "BETWEEN", "TRUE", "FALSE", *_SEARCHES)
)
_BITS = {"int": 31, "long": 63}
_JAVA_DOUBLE = re.compile(
    r"([+-]?)(NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
)
_JAVA_HEXADECIMAL = re.compile(
    r"([+-]?)0[xX]([0-9a-fA-F]*)(?:\.([0-9a-fA-F]*))?[pP]([+-]?[0-9]+)"
)
_NOT_GOING_ON: Final = ("(", ")", ",")
"""Marks that nothing follows which goes on behind a whole expression."""
_JAVA_WHOLE = re.compile(r"[+-]?[0-9]+")
_SAID: Final[Mapping[object, Outcome]] = {True: "yes", False: "no", None: "unknown"}


class UnknownShape(ValueError):
    """The text is no expression, or one that this module does not evaluate."""


class _Fails(ValueError):
    """A property has a value of another kind than it is compared with."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A parsed part; ``literal`` or ``name`` is set for a literal or a property.

    ``levels`` are its own and those of its operands.
    """

    ask: Asked
    is_condition: bool = False
    literal: Value = None
    is_literal: bool = False
    name: str = ""
    levels: int = 1


_Reading: TypeAlias = "Generator[_Reading, _Part, _Part]"
"""What reads a part; it yields what reads another one, and is sent that part."""


def matches(
    expression: str, expression_type: str, tags: str, properties: Properties
) -> Outcome:
    """Whether a message matches an expression: yes, no, or the expression fails.

    Raises:
        UnknownShape: the expression has a form that this module does not evaluate.
    """
    if expression_type == "TAG":
        wanted = [part.strip() for part in expression.split("||")]
        is_all = expression in ("", "*")
        return "yes" if is_all or (tags and tags in wanted) else "no"
    try:
        value = _read(expression)(properties)
    except _Fails:
        return "fails"
    return _SAID[None if value is None else value[1]]


def may_match(expression: str, properties: Properties) -> bool:
    """Whether a message may match an SQL92 expression: not if that is false or null.

    One that this module does not evaluate, or that fails on the message, may.
    """
    try:
        return matches(expression, "SQL92", "", properties) in ("yes", "fails")
    except UnknownShape:
        return True


def is_readable(expression: str) -> bool:
    """Whether this module can parse an expression."""
    try:
        _read(expression)
    except UnknownShape:
        return False
    return True


@lru_cache(maxsize=1024)
def _read(expression: str) -> Asked:
    reader = _Reader(_tokens(expression))
    whole = _condition(_read_by(reader.either()))
    if reader.tokens:
        kind, text = reader.tokens[0]
        if kind == "none" or (kind == "mark" and text not in _NOT_GOING_ON):
            _refuse(f"what is {text!r}")
    if whole.levels > LEVELS_MAX:
        _refuse("it is nested too deep")
    return whole.ask


def _read_by(reading: _Reading) -> _Part:
    """The part that is read: however deep, it takes no room of the stack."""
    readings: list[_Reading] = [reading]
    found: Any = None
    while readings:
        try:
            readings.append(readings[-1].send(found))
            found = None
        except StopIteration as read:
            readings.pop()
            found = read.value
    assert isinstance(found, _Part), found
    return found


def _refuse(why: str) -> NoReturn:
    raise UnknownShape(why)


def _tokens(expression: str) -> list[tuple[str, str]]:
    """The kind and text of each token; of kind ``none`` where there is no token."""
    found: list[tuple[str, str]] = []
    at = 0
    while at < len(expression.rstrip()):
        token = _TOKEN.match(expression, at)
        if token is None:
            found.append(("none", expression[at:]))
            break
        kind, text, at = f"{token.lastgroup}", token[0].strip(), token.end()
        if kind == "word" and text.upper() in _WORDS:
            kind, text = "mark", text.upper()
        found.append((kind, text))
    return found


class _Reader:
    """A recursive-descent parser; the operator of the lowest precedence comes first."""

    def __init__(self, tokens: list[tuple[str, str]]) -> None:
        self.tokens = tokens

    def _takes(self, *marks: str) -> bool:
        """Take the marks if they come next."""
        if self.tokens[: len(marks)] != [("mark", mark) for mark in marks]:
            return False
        del self.tokens[: len(marks)]
        return True

    def _one_of(self, marks: Mapping[str, object] | tuple[str, ...]) -> str:
        """Take the mark that comes next if it is one of these; else ''."""
        kind, text = self.tokens[0] if self.tokens else ("", "")
        if kind != "mark" or text not in marks:
            return ""
        del self.tokens[0]
        return text

    def either(self) -> _Reading:
        parts = [(yield self._both())]
        while self._takes("OR"):
            parts.append((yield self._both()))
        return _in_a_row(parts, decisive=True)

    def _both(self) -> _Reading:
        parts = [(yield self._equality())]
        while self._takes("AND"):
            parts.append((yield self._equality()))
        return _in_a_row(parts, decisive=False)

    def _equality(self) -> _Reading:
        found = yield self._comparison()
        while True:
            if mark := self._one_of(("=", "<>")):
                same = _equal(found, (yield self._comparison()))
                found = same if mark == "=" else _contrary(same)
            elif self._takes("IS", "NULL"):
                found = _is_null(found)
            elif self._takes("IS", "NOT", "NULL"):
                found = _contrary(_is_null(found))
            else:
                return found

    def _comparison(self) -> _Reading:
        found = yield self._unary()
        while True:
            if order := self._one_of(_ORDERS):
                found = _ordered(found, order, (yield self._unary()))
                continue
            is_not = self._takes("NOT")
            if how := self._one_of(tuple(_SEARCHES)):
                found = _search(found, how, self._text(), is_not)
            elif self._takes("BETWEEN"):
                found = yield self._between(found, is_not)
            elif self._takes("IN", "("):
                found = self._among(found, is_not)
            elif is_not:
                _refuse("what is it that is not")
            else:
                return found

    def _between(self, of: _Part, is_not: bool) -> _Reading:
        low = yield self._unary()
        if not self._takes("AND"):
            _refuse("BETWEEN has two bounds")
        high = yield self._unary()
        if is_not:
            below, above = _ordered(of, "<", low), _ordered(of, ">", high)
            return _joined(below, above, decisive=True)
        both = _ordered(of, ">=", low), _ordered(of, "<=", high)
        if low.is_literal and high.is_literal and _order(high.literal, low.literal) < 0:
            _refuse("the lower bound is the greater one")
        return _joined(*both, decisive=False)

    def _among(self, of: _Part, is_not: bool) -> _Part:
        texts = [self._text()]
        while self._takes(","):
            texts.append(self._text())
        if not self._takes(")") or not of.name:
            _refuse("IN asks whether a property is one of some texts")

        def ask(properties: Properties) -> Value:
            value = properties.get(of.name)
            return None if value is None else ("bool", (value in texts) is not is_not)

        return _Part(ask, is_condition=True, levels=2)

    def _text(self) -> str:
        kind, text = self.tokens[0] if self.tokens else ("", "")
        if kind != "text":
            _refuse("a text belongs there")
        del self.tokens[0]
        return text[1:-1].replace("''", "'")

    def _unary(self) -> _Reading:
        if self._takes("+"):
            return (yield self._unary())
        if self._takes("-"):
            return _negated((yield self._unary()))
        if self._takes("NOT"):
            return _contrary(_condition((yield self._unary())))
        return (yield self._primary())

    def _primary(self) -> _Reading:
        if self._takes("("):
            found = yield self.either()
            if not self._takes(")"):
                _refuse("a parenthesis stays open")
            return found
        if word := self._one_of(("TRUE", "FALSE", "NULL")):
            value: Value = None if word == "NULL" else ("bool", word == "TRUE")
            return _Part(lambda _: value, True, value, is_literal=True)
        kind, text = self.tokens.pop(0) if self.tokens else ("", "")
        if kind == "word":
            return _Part(
                lambda at: ("text", at[text]) if text in at else None, name=text
            )
        told = _literal(kind, text)
        return _Part(lambda _: told, literal=told, is_literal=True)


def _literal(kind: str, text: str) -> Value:
    if kind == "text":
        return "text", text[1:-1].replace("''", "'")
    if kind == "whole":
        number = int(text.rstrip("lL"))
        if number >> 63:
            _refuse("it has more than 64 bits")
        return ("long" if number >> 31 else "int"), number
    if kind == "double" and 0.0 < float(text) < math.inf:
        return "double", float(text)
    _refuse(f"no value: {text!r}")


def _condition(found: _Part) -> _Part:
    """A part used as a condition: a property there is a string, and never true."""
    if found.is_condition:
        return found
    if not found.name:
        _refuse("no condition")

    def ask(properties: Properties) -> Value:
        return ("bool", False) if found.name in properties else None

    return _Part(ask, is_condition=True, levels=2)


def _in_a_row(parts: Sequence[_Part], *, decisive: bool) -> _Part:
    """What OR or AND joins; one part alone stays as it is."""
    if len(parts) == 1:
        return parts[0]
    return _joined(*map(_condition, parts), decisive=decisive)


def _joined(*parts: _Part, decisive: bool) -> _Part:
    """AND or OR; a part is evaluated only if those before it do not decide."""

    def ask(properties: Properties) -> Value:
        first, *others = parts
        value = first.ask(properties)
        for part in others:
            if value == ("bool", decisive):
                break
            other = part.ask(properties)
            value = other if other == ("bool", decisive) or value is not None else None
        return value

    return _Part(ask, is_condition=True, levels=_above(*parts))


def _above(*operands: _Part) -> int:
    return 1 + max([one.levels for one in operands])


def _contrary(of: _Part) -> _Part:
    def ask(properties: Properties) -> Value:
        value = of.ask(properties)
        return None if value is None else ("bool", not value[1])

    return _Part(ask, is_condition=True, levels=_above(of))


def _negated(of: _Part) -> _Part:
    def ask(properties: Properties) -> Value:
        match of.ask(properties):
            case ("int" | "long" | "double") as kind, (int() | float()) as number:
                return kind, -number
            case _:
                return None

    return _Part(ask, levels=_above(of))


def _is_null(of: _Part) -> _Part:
    def ask(properties: Properties) -> Value:
        return "bool", of.ask(properties) is None

    return _Part(ask, is_condition=True, levels=_above(of))


def _equal(left: _Part, right: _Part) -> _Part:
    for side in (left, right):
        if side.is_literal and side.literal is None:
            _refuse("NULL can only be compared with IS NULL")
    is_truth = left.is_literal and left.is_condition
    if is_truth and right.is_literal and not right.is_condition:
        _refuse("a truth value is compared with a number or a text")

    def ask(properties: Properties) -> Value:
        one, other = left.ask(properties), right.ask(properties)
        if one is None:
            return ("bool", True) if other is None else None
        return "bool", other is not None and _order(one, other) == 0

    return _Part(ask, is_condition=True, levels=_above(left, right))


def _ordered(left: _Part, order: str, right: _Part) -> _Part:
    for side in (left, right):
        is_text = side.literal is not None and side.literal[0] == "text"
        if is_text or side.is_condition:
            _refuse("it has no order")

    def ask(properties: Properties) -> Value:
        one = left.ask(properties)
        other = right.ask(properties) if one is not None else None
        if one is None or other is None:
            return None
        if one[0] == other[0] == "text":
            one, other = _as_kind("double", one[1]), _as_kind("double", other[1])
        return "bool", _ORDERS[order](_order(one, other))

    return _Part(ask, is_condition=True, levels=_above(left, right))


def _search(of: _Part, how: str, text: str, is_not: bool) -> _Part:
    def ask(properties: Properties) -> Value:
        match of.ask(properties):
            case "text", str() as value if text:
                return "bool", _SEARCHES[how](value, text) is not is_not
            case _:
                return "bool", False

    return _Part(ask, is_condition=True, levels=_above(of))


def _order(left: Value, right: Value) -> int:
    """-1, 0 or 1; for values of different kinds, neither a string, -1."""
    assert left is not None
    assert right is not None
    kinds = {left[0], right[0]}
    if "bool" in kinds and len(kinds) > 1:
        if left[0] == "text":
            left = "bool", f"{left[1]}".lower() == "true"
        elif right[0] == "text":
            raise _Fails("the left one is no text")
        else:
            return -1
    elif "text" in kinds and len(kinds) > 1:
        (kind,) = kinds - {"text"}
        left, right = (
            _as_kind(kind, side[1]) if side[0] == "text" else side
            for side in (left, right)
        )
    if "double" in (left[0], right[0]):
        one, other = _place(float(left[1])), _place(float(right[1]))
        return (one > other) - (one < other)
    mine, theirs = left[1], right[1]
    return (mine > theirs) - (mine < theirs)  # type: ignore[operator]  # of one kind


def _place(number: float) -> tuple[bool, float, float]:
    """A sort key that orders doubles as Java does."""
    if math.isnan(number):
        return True, 0.0, 0.0
    return False, number, math.copysign(1.0, number)


def _as_kind(kind: str, text: object) -> tuple[str, int | float]:
    """A string converted to the kind of value that it is compared with."""
    said = f"{text}"
    if kind == "double":
        number = _java_double(said.strip(" "))
        if number is None:
            raise _Fails(f"{said!r} is no double")
        return kind, number
    if _JAVA_WHOLE.fullmatch(said) is None:
        raise _Fails(f"{said!r} is no whole number")
    whole, bits = int(said), _BITS[kind]
    if not -(1 << bits) <= whole < 1 << bits:
        raise _Fails(f"{said} has more bits")
    return kind, whole


def _java_double(said: str) -> float | None:
    """The number in a text; None if there is none."""
    digits = said[:-1] if said[-1:] in tuple("dDfF") else said
    if found := _JAVA_DOUBLE.fullmatch(digits):
        is_a_word = found[2][0] in "NI"
        if is_a_word and digits != said:
            return None
        number = float(found[2])
        return -number if found[1] == "-" else number
    found = _JAVA_HEXADECIMAL.fullmatch(digits)
    if found is None or not (found[2] or found[3]):
        return None
    sign, whole, part, power = found.groups()
    parts = part or ""
    try:
        number = math.ldexp(int(whole + parts, 16), int(power) - 4 * len(parts))
    except OverflowError:
        number = math.inf
    return -number if sign == "-" else number
