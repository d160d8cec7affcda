"""Changes one member of a config file, as somebody would who edits it.

An operator edits such files by hand, another version writes other fields, and a script
that fails leaves a null. The text stays one that fastjson reads, or nearly so. A broker
must load the result, or take the backup, or refuse.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[^\s{}\[\]:,"]+|[{}\[\]:,]')

_NUMBERS: Final = (
    *("null", "true", '"7"', "-1", "0", "2147483648", "4294967297"),
    *("9223372036854775807", "9223372036854775808", "-1"),
)
_TEXTS: Final = ("null", "7", '"x"', '""', "true")
_FLAGS: Final = ("null", "1", '"true"', "false", "true")
_LISTS: Final = (
    *("null", "7", "[]", "[1]", "[1,0,null]", "[1,0,2,-1]", "[2,0,1,3]", "[1,3,2,0]"),
    *('"x"', "[0,0]"),
)
_OBJECTS: Final = ("null", "7", "[]", "{}", '{"x":1}', '"x"')


class _Member(NamedTuple):
    """A member of an object: its key, its value, and where they stand."""

    key: str
    value: str
    at: int
    end: int


_OTHERWISE: Final = (
    '"added":1,{key}:{value},"more":{{"a":[1,"b"]}}',
    "{key}:{value},,{key}:{value},",
    "\r\n {key} :\t{value}\n",
    "/* by hand */{key}: // was 5\n {value}",
    "'{bare}':{value}",
    "{bare}:{value}",
    "true:{value}",
    "null:{value}",
)
"""A member beside unknown ones, twice, with spaces, with comments, in single quotes or
none, and under a word; ``bare`` is its key without quotes."""

_WAYS: Final = 6
"""One of so many changes leaves the member out, one writes it otherwise."""

CHANGES: Final = _WAYS * 360
"""Changes have numbers below it; a number means the same for all values of a kind."""


def reworded(text: str, at: int, change: int) -> str | None:
    """The text with one member of an object changed; None if it has none.

    Args:
        text: of a table, whole.
        at: which member, modulo their number.
        change: what becomes of it, modulo ``CHANGES``.
    """
    members = _members(text)
    if not members:
        return None
    member = members[at % len(members)]
    number, way = divmod(change % CHANGES, _WAYS)
    match way:
        case 0:
            told = ""
        case 1:
            key, value = member.key, member.value
            written = _OTHERWISE[number % len(_OTHERWISE)]
            told = written.format(key=key, value=value, bare=key.strip('"'))
        case _:
            instead = _instead_of(member.value)
            told = f"{member.key}:{instead[number % len(instead)]}"
    return text[: member.at] + told + text[member.end :]


def _instead_of(value: str) -> tuple[str, ...]:
    """What stands there instead: of another type, negative, too much, or empty."""
    match value[:1]:
        case "{":
            return _OBJECTS
        case "[":
            return _LISTS
        case '"':
            return _TEXTS
        case "t" | "f":
            return _FLAGS
        case _:
            return _NUMBERS


def _members(text: str) -> list[_Member]:
    """The members of all objects, in the order of their ends; none of a torn text."""
    found: list[_Member] = []
    opened: list[tuple[int, int]] = []  # where each object or list has its key, value
    key_at = value_at = -1
    tokens = [*_TOKEN.finditer(text)]
    key_of: dict[int, str] = {}
    for number, token in enumerate(tokens):
        part = token[0]
        if part in "{[":
            opened.append((key_at, value_at))
            key_at = value_at = -1
            continue
        if part == ":" and 0 < number < len(tokens) - 1:
            key_at, value_at = tokens[number - 1].start(), tokens[number + 1].start()
            key_of[key_at] = tokens[number - 1][0]
            continue
        if part in "}]":
            if not opened:
                return []
            key_at, value_at = opened.pop()
        elif value_at != token.start():
            continue
        if value_at >= 0:
            value = text[value_at : token.end()]
            found.append(_Member(key_of[key_at], value, key_at, token.end()))
        key_at = value_at = -1
    return [] if opened else found
