"""Properties that no client writes: which of them are damage."""

from __future__ import annotations

import pytest

from crashmq.models.files.properties import are_damaged, are_named, property_names

NAMES = property_names(()) | {b"buyer"}

AS_PUT = (
    b"",
    b"\x02",
    b"k",
    b"k\x01",
    b"\x01v\x02",
    b"a\x01b\x02\x02c\x01d\x02",
    b"x\x01a\0b\x02",
    b"buyer\x01\0\x02WAIT\x01true\x02",
    b"KEYS\x01a\0b\x02",
    b"x\0y\x01v\x02",
    b"x\x01\xff\x02",
)


@pytest.mark.parametrize("raw", AS_PUT)
def test_what_no_damage_of_a_known_name_makes_was_put_so(raw: bytes) -> None:
    assert not are_damaged(raw, NAMES)


@pytest.mark.parametrize(
    "raw",
    [
        b"KEYS\x03order\x02",
        b"KEYS\x02order\x02",
        b"KE\x02S\x01order\x02",
        b"\x02EYS\x01order\x02",
        b"\x01EYS\x01order\x02",
        b"TAGS\x01a\x02buyer=me\x02",
        b"KE\0\0\0rder\x02",
        b"\0\0\0\0\x01order\x02",
        b"x\x01a\0\0\0YS\x01order\x02",
        b"WAIT\x01tr\0e\x02",
        b"KEYS\x01\xff\x02",
        b"buyer",
    ],
)
def test_what_a_wrong_byte_makes_of_a_known_name_is_damage(raw: bytes) -> None:
    assert are_damaged(raw, NAMES)


def test_names_with_values_are_named() -> None:
    assert are_named(b"KEYS\x01order\x02TAGS\x01a")
    assert not are_named(b"KEYS")
