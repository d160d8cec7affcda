"""Odd values: one field of one op, anywhere in the range of its type.

A space lists the values that make an op do something. A check of a limit, a bit that is
masked, or a number that is packed into fewer bytes shows at other ones: below 0, at a
power of two, or where a field alone is odd, so that no other check is met first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from crashmq.models.ops import (
    BatchLength,
    LookMessage,
    Op,
    PullMessage,
    PullThroughBroker,
    PutBatch,
    PutMessage,
    QueryMessage,
    SearchOffset,
    SendMessage,
)
from crashmq.scenarios.programs.chance import Chance
from crashmq.scenarios.programs.space import PROPERTY_ENDS

SMALL_MAX: Final = 20
_NUMBER_MAX: Final = (1 << 63) - 1
_COUNT_MAX: Final = (1 << 31) - 1
_AT_MS_MAX: Final = 10**12
_SYS_FLAG_BITS: Final = 11
_TEXTS: Final = ("", " ", "a", "a b", "  a", "a  b", "0", "付", "a\u3000b", "t" * 255)
_WRONG: tuple[BatchLength, ...] = ("message", "body", "properties")
_PROPERTIES: Final = ("a=1", "a=", "=1", "a", "a=1;a=2", "INNER_NUM=1", "a=b=c")
_SIZES: Final = (0, 1, 2, 127, 128, 255, 256)

_NUMBERS: Mapping[type[Op], tuple[str, ...]] = {
    PutMessage: ("queue_id", "flag", "reconsume_times", "delay_level"),
    PutBatch: ("queue_id",),
    SendMessage: ("queue_id", "reconsume_times", "delay_level"),
    PullMessage: ("queue_id", "queue_offset"),
    PullThroughBroker: ("queue_id", "queue_offset"),
    LookMessage: ("phy_offset",),
    SearchOffset: ("queue_id",),
    QueryMessage: ("begin_ms", "end_ms"),
}
_COUNTS: Mapping[type[Op], tuple[str, ...]] = {
    SendMessage: ("max_reconsume_times",),
    PullMessage: ("max_msg_nums",),
    PullThroughBroker: ("max_msg_nums",),
    QueryMessage: ("max_num",),
    SearchOffset: ("at_ms",),
}
_CHOICES: Mapping[type[Op], Mapping[str, tuple[Any, ...]]] = {
    PutMessage: {
        "body_size": _SIZES,
        "tags": _TEXTS,
        "keys": _TEXTS,
        "ipv6": ("born", "store", "both"),
        "properties": _PROPERTIES,
        "sys_flag": tuple([1 << bit for bit in range(_SYS_FLAG_BITS)]),
    },
    PutBatch: {
        "body_sizes": ((), (0,), (1,), (1, 0), (0, 0, 1)),
        "tags": _TEXTS,
        "keys": _TEXTS,
        "properties": _PROPERTIES,
        "properties_end": tuple(dict.fromkeys(PROPERTY_ENDS)),
        "wrong": _WRONG,
    },
    SendMessage: {"body_size": _SIZES, "properties": _PROPERTIES},
    PullMessage: {"tags": _TEXTS},
    QueryMessage: {"key": _TEXTS},
}


def has_fields(op: Op) -> bool:
    """Whether one of the op's fields can get an odd value."""
    return type(op) in _NUMBERS


def with_an_odd_value(op: Op, chance: Chance, *, keeps_queue: bool = False) -> Op:
    """The op with one field anywhere in its range; not its queue if ``keeps_queue``."""
    kind = type(op)
    choices = _CHOICES.get(kind, {})
    numbers, counts = _NUMBERS[kind], _COUNTS.get(kind, ())
    if keeps_queue:
        numbers = tuple([name for name in numbers if name != "queue_id"])
    name = chance.pick((*numbers, *counts, *choices))
    if name in choices:
        value: object = chance.pick(choices[name])
    else:
        most = _NUMBER_MAX
        if name in counts:
            most = _AT_MS_MAX if name == "at_ms" else _COUNT_MAX
        value = _number(chance, most)
    return replace(op, **{name: value})  # type: ignore[arg-type]  # names of fields


def _number(chance: Chance, most: int) -> int:
    """A small number, one about a power of two, or one below 0."""
    if chance.one_in(3):
        return chance.integer(0, SMALL_MAX)
    number = (1 << chance.below(most.bit_length() + 1)) + chance.integer(0, 2) - 1
    number = min(most, number)
    return -number if chance.one_in(3) else number
