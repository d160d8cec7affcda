"""fastjson's text format: objects whose keys may be bare integers or objects.

RocketMQ writes its tables with fastjson 1.2 in pretty mode. A bean, or a map with
string keys, has one entry a line, indented by tabs; a map with any other keys is on one
line, with a line break only before its closing brace. No strict JSON parser reads that.
``read_json`` reads it, strict JSON, and everything else that fastjson accepts in a text
that somebody edited: a byte order mark, comments, single quotes, names without quotes,
surplus commas. It refuses a torn text.

The entries of maps come in the order of their hashes (``in_hash_order``), as in Java.

Source: com.alibaba.fastjson.serializer.MapSerializer, fastjson 1.2.83. Differs: no
floating point numbers, which no table has.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias, TypeVar

Json: TypeAlias = "bool | int | str | list[Json] | dict[JsonKey, Json] | None"
JsonKey: TypeAlias = "str | int | tuple[tuple[JsonKey, Json], ...]"
T = TypeVar("T")

_SPACE = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*(?s:.*?)\*/)*")
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*"')
_SINGLE = re.compile(r"'(?:[^'\\\x00-\x1f]|\\['\"\\/bfnrt]|\\u[0-9a-fA-F]{4})*'")
_IN_SINGLE = re.compile(r'\\.|"')
_FOR_DOUBLE = {"\\'": "'", '"': '\\"'}
_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_WORDS: Mapping[str, bool | None] = {"true": True, "false": False, "null": None}
_BYTE_ORDER_MARK = "\ufeff"
_ENCODER = json.JSONEncoder(ensure_ascii=False)
_DEPTH_MAX = 16
_INTEGER_DIGITS_MAX = 20
_LONG = 1 << 63
_HASH_MASK = 0x7FFFFFFF
_FULL = (3, 4)  # a table doubles once it is fuller than that


def in_hash_order(
    keys: Iterable[T], hash_of: Callable[[T], int], capacity: int
) -> list[T]:
    """Keys in the order in which a Java hash table of ``capacity`` bins has them.

    Keys of one bin come in the order of ``keys``, which is that of their insertion
    unless the table has been resized or a bin became a tree.

    Source: java.util.concurrent.ConcurrentHashMap#spread, java.util.HashMap#hash.
    """
    listed = list(keys)
    while len(listed) * _FULL[1] > capacity * _FULL[0]:
        capacity *= 2

    def bin_of(key: T) -> int:
        hashed = hash_of(key) & 0xFFFFFFFF
        return (hashed ^ hashed >> 16) & _HASH_MASK & (capacity - 1)

    return sorted(listed, key=bin_of)


def pretty(value: Json, indent: int = 0) -> str:
    """A value as fastjson's pretty mode writes it; maps in the order they have."""
    if isinstance(value, str):
        return _ENCODER.encode(value)
    if isinstance(value, dict):
        return _pretty_map(value, indent)
    if isinstance(value, list):
        return f"[{','.join([pretty(one, indent) for one in value])}]"
    if type(value) is int:
        return str(value)
    return _ENCODER.encode(value)


def _pretty_map(value: dict[JsonKey, Json], indent: int) -> str:
    if not value:
        return "{}"
    inner = "\n" + "\t" * (indent + 1)
    parts: list[str] = []
    for key, one in value.items():
        told = pretty(one, indent + 1)
        if isinstance(key, str):
            parts.append(f"{inner}{_ENCODER.encode(key)}:{told}")
        elif isinstance(key, tuple):
            parts.append(f"{pretty(dict(key), indent + 1)}:{told}")
        else:
            parts.append(f"{key}:{told}")
    closing = "\n" + "\t" * indent
    return "{" + ",".join(parts) + closing + "}"


def read_json(text: str) -> Json:
    """The value of a whole text.

    Raises:
        ValueError: it is torn, has something after the value, or another format.
    """
    reader = _Reader(text.removeprefix(_BYTE_ORDER_MARK))
    value = reader.value(0)
    reader.end()
    return value


class _Reader:
    """A parser of one text, from its front.

    Invariants:
        0 <= at <= len(text)
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def _check(self) -> None:
        assert 0 <= self._at <= len(self._text), self._at

    def value(self, depth: int) -> Json:
        """Parse the next value."""
        if depth > _DEPTH_MAX:
            raise ValueError(f"character {self._at}: nested deeper than {_DEPTH_MAX}")
        self._skip(_SPACE)
        start = self._text[self._at : self._at + 1]
        if start == "{":
            return self._map(depth)
        if start == "[":
            return self._list(depth)
        if start == '"':
            return self._string()
        if start == "'":
            return self._single()
        for word, meant in _WORDS.items():
            if self._text.startswith(word, self._at):
                self._at += len(word)
                return meant
        return self._integer()

    def end(self) -> None:
        """Refuse anything left but white space."""
        self._skip(_SPACE)
        if self._at != len(self._text):
            raise ValueError(f"character {self._at}: something follows the value")

    def _map(self, depth: int) -> dict[JsonKey, Json]:
        found: dict[JsonKey, Json] = {}
        self._take("{")
        is_over = self._is_over("}", needs_comma=False)
        while not is_over:
            key = self._key(depth)
            self._take(":")
            found[key] = self.value(depth + 1)
            is_over = self._is_over("}")
        return found

    def _key(self, depth: int) -> JsonKey:
        self._skip(_SPACE)
        name = _NAME.match(self._text, self._at)
        if name is not None and name[0] not in _WORDS:
            return self._skip(_NAME)
        found = self.value(depth + 1)
        if isinstance(found, dict):
            return tuple(found.items())
        if isinstance(found, bool) or not isinstance(found, str | int):
            raise ValueError(f"character {self._at}: {found!r} is no key")
        return found

    def _list(self, depth: int) -> list[Json]:
        found: list[Json] = []
        self._take("[")
        is_over = self._is_over("]", needs_comma=False)
        while not is_over:
            found.append(self.value(depth + 1))
            is_over = self._is_over("]")
        return found

    def _string(self) -> str:
        quoted = self._skip(_STRING)
        if "\\" not in quoted:
            return quoted[1:-1]
        value: str = json.loads(quoted)
        return value

    def _single(self) -> str:
        inside = self._skip(_SINGLE)[1:-1]
        told = _IN_SINGLE.sub(lambda m: _FOR_DOUBLE.get(m[0], m[0]), inside)
        value: str = json.loads(f'"{told}"')
        return value

    def _integer(self) -> int:
        digits = self._skip(_INTEGER)
        is_short = len(digits) <= _INTEGER_DIGITS_MAX
        if is_short and -_LONG <= int(digits) < _LONG:
            return int(digits)
        raise ValueError(f"character {self._at}: an integer beyond 64 bits")

    def _skip(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self._text, self._at)
        if found is None:
            raise ValueError(f"character {self._at}: the text is torn or damaged")
        self._at = found.end()
        return found[0]

    def _is_over(self, end: str, *, needs_comma: bool = True) -> bool:
        """Skip commas, and the mark that ends a map or a list; returns if it came."""
        while self._takes(","):
            needs_comma = False
        if self._takes(end):
            return True
        if needs_comma:
            raise ValueError(f"character {self._at}: there is no ',' or {end!r}")
        return False

    def _takes(self, mark: str) -> bool:
        self._skip(_SPACE)
        if not self._text.startswith(mark, self._at):
            return False
        self._at += len(mark)
        return True

    def _take(self, mark: str) -> None:
        if not self._takes(mark):
            raise ValueError(f"character {self._at}: there is no {mark!r}")
