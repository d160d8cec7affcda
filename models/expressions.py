"""What a group asks for, told apart from the engine: does a message match?

It knows the shapes of expressions that programs draw, and no other: comparisons of a
property with whole numbers, decimals and texts, BETWEEN, IN, IS NULL, CONTAINS and its
likes, joined by NOT, AND, OR and parentheses. A comparison with a whole number of 32
bits asks a property to be one; if it is not, the whole expression fails.

Source: section 7.5 of the consumer reference this project was built from.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Final, Literal, TypeAlias

Properties: TypeAlias = Mapping[str, str]
Outcome: TypeAlias = Literal["yes", "no", "unknown", "fails"]
Tree: TypeAlias = "tuple[str, tuple[Tree | str, ...]]"

_TOKEN = re.compile(
    r"\s*(?:(?P<word>[A-Za-z_][A-Za-z0-9_]*)|(?P<number>-?[0-9]+(?:\.[0-9]+)?)"
    r"|'(?P<text>[^']*)'|(?P<mark><>|<=|>=|[=<>(),]))"
)
_CONTRARY: Final[Mapping[Outcome, Outcome]] = {
    "yes": "no",
    "no": "yes",
    "unknown": "unknown",
    "fails": "fails",
}
_INT_MAX = 2**31 - 1


class UnknownShape(ValueError):
    """No program draws such an expression, or it is meant to be none."""


def matches(
    expression: str, expression_type: str, tags: str, properties: Properties
) -> Outcome:
    """Whether a message matches, or nobody can say.

    Raises:
        UnknownShape: this is not for me to say.
    """
    if expression_type == "TAG":
        wanted = [part.strip() for part in expression.split("||")]
        is_all = expression in ("", "*")
        return "yes" if is_all or (tags and tags in wanted) else "no"
    return _value(_tree(expression), properties)


def is_readable(expression: str) -> bool:
    """Whether it is one of the shapes."""
    try:
        _tree(expression)
    except UnknownShape:
        return False
    return True


@lru_cache(maxsize=1024)
def _tree(expression: str) -> Tree:
    tokens: list[str] = []
    at = 0
    while at < len(expression.rstrip()):
        found = _TOKEN.match(expression, at)
        if found is None:
            raise UnknownShape(f"{expression!r} at {at}")
        kind, at = found.lastgroup, found.end()
        text = found[kind] if kind is not None else ""
        upper = text.upper() if kind == "word" and text.upper() in _WORDS else text
        tokens.append({"text": "'", "number": "#"}.get(kind or "", "") + upper)
    tree, rest = _either(tokens)
    if rest:
        raise UnknownShape(f"{expression!r}: what is {rest[0]!r}?")
    return tree


_SEARCHES = ("CONTAINS", "STARTSWITH", "ENDSWITH")
_WORDS = frozenset({"AND", "OR", "NOT", "IS", "NULL", "IN", "BETWEEN", *_SEARCHES})
Parsed: TypeAlias = tuple[Tree, Sequence[str]]


def _either(tokens: Sequence[str]) -> Parsed:
    tree, rest = _both(tokens)
    while rest[:1] == ["OR"]:
        other, rest = _both(rest[1:])
        tree = ("OR", (tree, other))
    return tree, rest


def _both(tokens: Sequence[str]) -> Parsed:
    tree, rest = _one(tokens)
    while rest[:1] == ["AND"]:
        other, rest = _one(rest[1:])
        tree = ("AND", (tree, other))
    return tree, rest


def _one(tokens: Sequence[str]) -> Parsed:
    match list(tokens):
        case ["NOT", "(", *_]:
            tree, rest = _one(tokens[1:])
            return ("NOT", (tree,)), rest
        case ["(", *inner]:
            tree, rest = _either(inner)
            if rest[:1] != [")"]:
                raise UnknownShape("a parenthesis stays open")
            return tree, rest[1:]
        case [name, "IS", "NULL", *rest]:
            return ("IS NULL", (name,)), rest
        case [name, "IS", "NOT", "NULL", *rest]:
            return ("NOT", (("IS NULL", (name,)),)), rest
        case [name, "NOT", "BETWEEN", low, "AND", high, *rest]:
            parts = (("<", (name, low)), (">", (name, high)))
            return ("OR", parts), rest
        case [name, "BETWEEN", low, "AND", high, *rest]:
            parts = ((">=", (name, low)), ("<=", (name, high)))
            return ("AND", parts), rest
        case [name, "NOT", "IN", "(", *_]:
            texts, rest = _texts(tokens[4:])
            return ("NOT", (("IN", (name, *texts)),)), rest
        case [name, "IN", "(", *_]:
            texts, rest = _texts(tokens[3:])
            return ("IN", (name, *texts)), rest
        case [name, "NOT", how, text, *rest] if how in _SEARCHES:
            return (f"NOT {how}", (name, text)), rest
        case [name, how, text, *rest] if how in _SEARCHES:
            return (how, (name, text)), rest
        case [name, "<>", literal, *rest]:
            return ("NOT", (("=", (name, literal)),)), rest
        case [name, ("=" | "<" | ">" | "<=" | ">=") as how, literal, *rest]:
            if how != "=" and not literal.startswith("#"):
                raise UnknownShape(f"{literal!r} has no order")
            return (how, (name, literal)), rest
        case _:
            raise UnknownShape(f"{tokens!r}")


def _texts(tokens: Sequence[str]) -> tuple[list[str], Sequence[str]]:
    if ")" not in tokens:
        raise UnknownShape("a list stays open")
    end = list(tokens).index(")")
    return [one for one in tokens[:end] if one != ","], tokens[end + 1 :]


def _value(tree: Tree, properties: Properties) -> Outcome:
    how, parts = tree
    if how in ("AND", "OR"):
        return _joined(how, parts, properties)
    if how == "NOT":
        (inner,) = parts
        assert isinstance(inner, tuple), tree
        return _CONTRARY[_value(inner, properties)]
    name, *literals = [part for part in parts if isinstance(part, str)]
    value = properties.get(name)
    if how == "IS NULL":
        return "yes" if value is None else "no"
    if how.endswith(_SEARCHES):
        if value is None or literals[0] == "'":
            return "no"
        is_so = _is_found(how.removeprefix("NOT "), value, literals[0][1:])
        return "yes" if is_so is not how.startswith("NOT ") else "no"
    if value is None:
        return "unknown"
    if how == "IN":
        return "yes" if f"'{value}" in literals else "no"
    return _compared(how, value, literals[0])


def _joined(how: str, parts: Sequence[Tree | str], properties: Properties) -> Outcome:
    """AND or OR: the left one first, and the right one only if that decides nothing."""
    left, right = [part for part in parts if isinstance(part, tuple)]
    decisive: Outcome = "no" if how == "AND" else "yes"
    first = _value(left, properties)
    if first in (decisive, "fails"):
        return first
    second = _value(right, properties)
    if second in (decisive, "fails"):
        return second
    return "unknown" if "unknown" in (first, second) else second


def _is_found(how: str, value: str, text: str) -> bool:
    if how == "CONTAINS":
        return text in value
    return value.startswith(text) if how == "STARTSWITH" else value.endswith(text)


def _compared(how: str, value: str, literal: str) -> Outcome:
    if literal.startswith("'"):
        return "yes" if value == literal[1:] else "no"
    number = Decimal(literal[1:])
    is_whole = "." not in literal
    try:
        told = Decimal(value)
    except InvalidOperation:
        return "fails"
    if is_whole and (not value.lstrip("-").isdecimal() or abs(told) > _INT_MAX):
        return "fails"
    is_so = {
        "=": told == number,
        "<": told < number,
        ">": told > number,
        "<=": told <= number,
        ">=": told >= number,
    }[how]
    return "yes" if is_so else "no"
