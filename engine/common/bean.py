"""Beans: reads the fields of RocketMQ's table rows from parsed fastjson values.

fastjson writes the fields of a bean in the order of their names and leaves out those
that are null; a missing field is read as its default.
"""

from __future__ import annotations

from collections.abc import Mapping

from crashmq.engine.common.fastjson import Json, JsonKey, in_hash_order
from crashmq.engine.store.message.message import java_string_hash

_MAP_BINS = 16  # of a java.util.HashMap
_INT = 1 << 31


class Bean:
    """One parsed object; each getter refuses a field of another type.

    Args:
        found: the parsed value.
        what: what it should be, for the error's message.

    Raises:
        ValueError: it is no object whose keys are strings.
    """

    def __init__(self, found: Json, what: str) -> None:
        if not isinstance(found, dict):
            raise ValueError(f"{what} is {found!r}, not an object")
        self._what = what
        self._fields: dict[str, Json] = {}
        for name, value in found.items():
            if not isinstance(name, str):
                raise ValueError(f"{what} has the field {name!r}")
            self._fields[name] = value

    @property
    def names(self) -> list[str]:
        """The names of the fields, in their order in the text."""
        return [*self._fields]

    def get(self, name: str, default: Json = None) -> Json:
        """The field as it was parsed."""
        value = self._fields.get(name)
        return default if value is None else value

    def integer(self, name: str, default: int) -> int:
        """A field of 32 bits."""
        value = self.long(name, default)
        if not -_INT <= value < _INT:
            raise self._wrong(name, value, "a number of 32 bits")
        return value

    def long(self, name: str, default: int) -> int:
        """A field of 64 bits, which is what the text of a number may have."""
        value = self.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self._wrong(name, value, "a number")
        return value

    def fields(self, name: str) -> Json:
        """A field that is an object itself, as it was parsed; empty if it is missing.

        One that is null is no object: what it held is lost.
        """
        value = self._fields.get(name, {})
        if not isinstance(value, dict):
            raise self._wrong(name, value, "an object")
        return value

    def text(self, name: str, default: str) -> str:
        """A string field."""
        value = self.get(name, default)
        if not isinstance(value, str):
            raise self._wrong(name, value, "text")
        return value

    def boolean(self, name: str, *, default: bool) -> bool:
        """A boolean field."""
        value = self.get(name, default)
        if not isinstance(value, bool):
            raise self._wrong(name, value, "true or false")
        return value

    def texts(self, name: str) -> dict[str, str]:
        """A field that maps strings to strings; empty if it is missing."""
        value = self.get(name, {})
        pairs = value.items() if isinstance(value, dict) else ()
        texts = {
            key: one
            for key, one in pairs
            if isinstance(key, str) and isinstance(one, str)
        }
        if not isinstance(value, dict) or len(texts) != len(value):
            raise self._wrong(name, value, "a map of text")
        return texts

    def _wrong(self, name: str, value: Json, wanted: str) -> ValueError:
        return ValueError(f"{name} of {self._what} is {value!r}, not {wanted}")


def number_of(key: JsonKey) -> int:
    """A key that is a number and not negative, with or without quotes.

    Raises:
        ValueError: it is another key.
    """
    text = f"{key}" if isinstance(key, int | str) else ""
    if not (text.isascii() and text.isdecimal()):
        raise ValueError(f"the key {key!r} is no number")
    return int(text)


def map_of_texts(texts: Mapping[str, str]) -> Json:
    """A Java map of strings as fastjson writes it: in the order of its hashes."""
    keys = in_hash_order(sorted(texts), java_string_hash, _MAP_BINS)
    told: dict[JsonKey, Json] = {key: texts[key] for key in keys}
    return told
