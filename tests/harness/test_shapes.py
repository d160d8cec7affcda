"""Records of one shape, looked at together, tell what each tells by itself."""

from __future__ import annotations

import random
from zlib import crc32

import numpy as np
import pytest

from crashmq.harness.fsck.shapes import crcs_of, numbered, read_each, read_tails

PIECES = (
    *(
        b"KEYS\x01order-17\x02",
        b"TAGS\x01paid\x02",
        b"TAGS\x01due\x02",
        b"TAGS\x01\x02",
    ),
    *(b"a\x01b\x02", b"\x01b\x02", b"ab\x02", b"a\x00\x01b\x02", b"a\x01\xc3\xa9\x02"),
    *(b"__CRC32#\x0112\x02", b"x__CRC32#\x0112\x02", b"a\x01b\x01c\x02", b"k\x01v"),
    b"INNER_MULTI_QUEUE_OFFSET\x010\x02",
)
"""Plain ones, and such that no client writes or that mean something of their own."""


def made_tails() -> dict[int, list[bytes]]:
    """Properties by their length, of which many have the same one."""
    chance = random.Random(7)
    found: dict[int, list[bytes]] = {}
    for _ in range(3_000):
        tail = b"".join(chance.choices(PIECES, k=chance.randrange(4)))
        found.setdefault(len(tail), []).append(tail)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("number", range(6))
def test_columns_tell_what_a_text_tells(number: int) -> None:
    plain = looked_at = 0
    for size, tails in made_tails().items():
        rows = tails[number:] + tails[:number]  # each first row has a shape of its own
        block = np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), size)

        together, each = read_tails(block), read_each(rows)

        alone = [read_each([row]) for row in rows]
        assert each.plain.tolist() == [bool(one.plain[0]) for one in alone]
        assert not (together.plain & ~each.plain).any()
        same = together.plain
        assert together.codes[same].tolist() == each.codes[same].tolist()
        plain, looked_at = plain + int(same.sum()), looked_at + len(rows)
    assert 0.1 * looked_at < plain < looked_at


@pytest.mark.parametrize("width", [0, 1, 3])
def test_values_are_numbered(width: int) -> None:
    rows = [f"{number * number % 11:03}".encode()[3 - width :] for number in range(200)]
    block = np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), width)

    ids, values = numbered(block)

    assert [values[one] for one in ids] == rows
    assert len(set(values)) == len(values)


def test_the_sum_of_a_range_does_not_depend_on_its_company() -> None:
    data = random.Random(3).randbytes(60_000)
    sizes = [200] * 100 + [0, 1, 5_000] + [300] * 40 + [199]
    starts = [number * 41 for number in range(len(sizes))]
    raw = np.frombuffer(data, np.uint8)

    found = crcs_of(raw, memoryview(data), np.array(starts), np.array(sizes))

    assert found.tolist() == [
        crc32(data[at : at + size]) for at, size in zip(starts, sizes, strict=True)
    ]
