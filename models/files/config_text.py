"""How RocketMQ writes a broker's config files: the order of their entries, the spaces.

The fields of a bean come by name, and the rows of a map as a Java hash table has them.
How many bins that has depends on the table's past: whether it has grown, or was loaded.
So the order of rows is right if it is that of any number of bins.

Source: com.alibaba.fastjson.serializer.MapSerializer and JSONSerializer, fastjson
1.2.83, in pretty mode; java.util.HashMap#hash, ConcurrentHashMap#spread.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final, NamedTuple

from crashmq.models.files.broker_json import read_table
from crashmq.models.files.config_files import TABLES
from crashmq.models.files.delays import DELAYS_PATH
from crashmq.models.files.filters import FILTERS_PATH
from crashmq.models.files.offsets import OFFSETS_PATH

_BINS: Final = tuple([1 << power for power in range(3, 16)])
"""A hash table has so many: HashSet(8) is the smallest that RocketMQ makes."""
_NUMBERED: Final = {DELAYS_PATH: 1, OFFSETS_PATH: 2}
"""How deep in its table a file has keys that are numbers; others have none."""


class Flaw(NamedTuple):
    """What is written otherwise than RocketMQ writes it."""

    where: str
    seen: str
    expected: str


@lru_cache(maxsize=512)
def flaws_of_text(path: str, data: bytes) -> tuple[Flaw, ...]:
    """The flaws of a whole text; none of one that is not whole."""
    try:
        text = data.decode()
        found = read_table(data)
    except (ValueError, RecursionError):
        return ()
    if not isinstance(found, dict) or not isinstance(found.get(TABLES[path]), dict):
        return ()
    return (*_wrong_orders(path, found), *_wrong_spaces(path, found, text))


def _wrong_orders(path: str, found: Mapping[str, Any]) -> Iterator[Flaw]:
    yield from _by_name("", found)
    table = found[TABLES[path]]
    yield from _by_hash(TABLES[path], table, is_numbered=_NUMBERED.get(path) == 1)
    for name, row in table.items():
        if path == OFFSETS_PATH and isinstance(row, dict):
            yield from _by_hash(name, row, is_numbered=True)
        elif path == FILTERS_PATH and isinstance(row, dict):
            yield from _by_name(name, row)
            filters = row.get("groupFilterData")
            its = filters if isinstance(filters, dict) else {}
            yield from _by_hash(f"groupFilterData of {name}", its)
            for group, fields in its.items():
                yield from _by_name(f"{group} on {name}", fields)
        elif isinstance(row, dict):
            yield from _by_name(name, row)
    groups = found.get("groupTopicMap")
    if isinstance(groups, dict):
        yield from _by_hash("groupTopicMap", groups)
        for group, topics in groups.items():
            listed = topics if isinstance(topics, list) else ()
            yield from _by_hash(f"groupTopicMap of {group}", listed)


def _by_name(where: str, bean: Any) -> Iterator[Flaw]:
    names = [*bean] if isinstance(bean, dict) else []
    if names != sorted(names):
        yield Flaw(where, ", ".join(names), "its fields by name")
    for name in names:
        if isinstance(bean[name], dict) and name == "dataVersion":
            yield from _by_name(name, bean[name])


def _by_hash(
    where: str, keys: Iterable[Any], *, is_numbered: bool = False
) -> Iterator[Flaw]:
    texts = [f"{key}" for key in keys]
    hash_of = _hash_of_number if is_numbered else _hash_of_text
    hashes = [hash_of(text) for text in texts]
    for bins in _BINS:
        places = [one & (bins - 1) for one in hashes]
        if all(first <= second for first, second in pairwise(places)):
            return
    yield Flaw(where, ", ".join(texts), "the order of a hash table")


def _hash_of_text(text: str) -> int:
    """Source: String#hashCode, of UTF-16 units, and ConcurrentHashMap#spread."""
    units = text.encode("utf-16-be", "surrogatepass")
    hashed = 0
    for at in range(0, len(units), 2):
        hashed = hashed * 31 + int.from_bytes(units[at : at + 2], "big") & 0xFFFFFFFF
    return hashed ^ hashed >> 16


def _hash_of_number(text: str) -> int:
    """Source: Integer#hashCode, which is the number."""
    hashed = int(text) & 0xFFFFFFFF
    return hashed ^ hashed >> 16


def _wrong_spaces(path: str, found: Mapping[str, Any], text: str) -> Iterator[Flaw]:
    expected = _written(found, 0, _NUMBERED.get(path, -1), TABLES[path])
    if text != expected:
        pairs = zip(text, expected, strict=False)
        same = [one != other for one, other in [*pairs, ("", " ")]]
        at = same.index(True)
        seen, wanted = text[at : at + 20], expected[at : at + 20]
        yield Flaw(f"character {at}", repr(seen), repr(wanted))


def _written(value: Any, indent: int, numbered: int, table: str = "") -> str:
    """A value as fastjson writes it in pretty mode.

    A map with texts for keys has an entry a line, one with numbers all in one line.
    ``numbered`` is how much deeper numbers are keys, within ``table`` if it is named.
    """
    if isinstance(value, list):
        return f"[{','.join([_written(one, indent, -1) for one in value])}]"
    if not isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    if not value:
        return "{}"
    entries = []
    line = "" if numbered == 0 else "\n" + "\t" * (indent + 1)
    for key, one in value.items():
        deeper = numbered - 1 if table in ("", key) else -1
        told = _written(one, indent + 1, deeper)
        name = key if numbered == 0 else json.dumps(key, ensure_ascii=False)
        entries.append(f"{line}{name}:{told}")
    return "{" + ",".join(entries) + "\n" + "\t" * indent + "}"
