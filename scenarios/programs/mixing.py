"""Mixing: programs of two scenarios on one store that has what both need.

Each scenario concentrates on one subject, and so on part of the code. A single scenario
never combines two subjects, such as a full disk after a failed sync.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, fields, replace
from functools import cache
from typing import Any

from crashmq.models.files.queue import UNIT_SIZE
from crashmq.models.ops import StartConsumer, Strategy
from crashmq.models.program import Setup
from crashmq.scenarios.programs.space import AtActions, Kind, Numbers, Space

ROOM = 16  # log files that a disk with an end holds at least
EXT_MAX = 600  # bytes of a consumequeue_ext file on such a disk
QUEUES = 24  # of which a program has hardly more, those of delay levels included
COMMITTING: frozenset[Kind] = frozenset({"progress", "hold", "filter"})
"""Kinds of phrases in which offsets of groups are committed, without consumers."""
LYING = ("lying_disk",)  # where nothing is promised, nothing can be asked of meetings
_PLAIN = Setup()
_UNSAID: dict[str, Any] = {
    field.name: None if field.default is MISSING else field.default
    for field in fields(Space)
}


@cache
def mixed_space(one: Space, other: Space) -> Space:
    """The ranges of both scenarios; where one has none, those of the other."""
    both = {
        name: _both(getattr(one, name), getattr(other, name), unsaid)
        for name, unsaid in _UNSAID.items()
    }
    consumers = _of_one_manner(both["consumers"])
    groups = both["groups"]
    if not COMMITTING.isdisjoint(both["kinds"]):
        groups = _apart(groups, consumers)
    return Space(**both | {"consumers": consumers, "groups": groups})


def _apart(
    groups: tuple[str, ...], consumers: Sequence[StartConsumer]
) -> tuple[str, ...]:
    """The groups without running consumers, or all if there is no other.

    What else commits for a group passes over what its consumers have not consumed.
    """
    taken = {one.group for one in consumers}
    return tuple([one for one in groups if one not in taken]) or groups


def _of_one_manner(consumers: Sequence[StartConsumer]) -> tuple[StartConsumer, ...]:
    """The consumers configured as the first of their group, as RocketMQ requires."""
    manners: dict[str, tuple[Strategy, bool, bool, int]] = {}
    return tuple(
        [
            one
            for one in consumers
            if manners.setdefault(one.group, _manner(one)) == _manner(one)
        ]
    )


def _manner(one: StartConsumer) -> tuple[Strategy, bool, bool, int]:
    return one.strategy, one.is_orderly, one.broadcasts, one.max_reconsume_times


def _both(one: Any, other: Any, unsaid: Any) -> Any:
    if other in (one, unsaid) or isinstance(one, AtActions):
        return one
    if one == unsaid:
        return other
    if isinstance(one, Numbers):
        special = (*one.special, *other.special)
        below, least = max(one.below, other.below), min(one.least, other.least)
        return Numbers(special, below, least)
    return (*one, *other)


def each_once(space: Space) -> Space:
    """The same ranges, with every choice equally likely."""
    said: dict[str, Any] = {name: getattr(space, name) for name in _UNSAID}
    for name, value in said.items():
        if type(value) is tuple:
            said[name] = tuple(dict.fromkeys(value))
    return Space(**said)


def in_view(space: Space, setup: Setup) -> Setup:
    """The setup; if unread data may be damaged, a start reads everything."""
    if setup.start_window == _PLAIN.start_window or not _may_spoil(space):
        return setup
    return replace(setup, start_window=_PLAIN.start_window)


def _may_spoil(space: Space) -> bool:
    return bool(space.damage_targets) or any(
        fault.call in ("lose", "misdirect") for fault in space.faults
    )


def mixed_setup(one: Setup, other: Setup) -> Setup:
    """The first setup, with the special options of the other."""
    special = {
        field.name: value
        for field in fields(Setup)
        if (value := getattr(other, field.name)) != getattr(_PLAIN, field.name)
    }
    return promising(replace(one, **special))


def mixed(one: tuple[Space, Setup], other: tuple[Space, Setup]) -> tuple[Space, Setup]:
    """The ranges of both, on the store of the first with the options of the other."""
    space = mixed_space(one[0], other[0])
    return space, in_view(space, mixed_setup(one[1], other[1]))


def promising(setup: Setup) -> Setup:
    """The setup, on a disk that does not lie about syncs and has room for the ops."""
    if setup.disk_profile in LYING:
        setup = replace(setup, disk_profile=_PLAIN.disk_profile)
    return with_room(setup)


def with_room(setup: Setup) -> Setup:
    """The setup; a disk with an end has room for ``ROOM`` log files at least.

    And for a first file of each of ``QUEUES`` queues, which may be larger than those.
    Its consumequeue_ext files are small: an entry may take a whole file, and then large
    ones soon fill any disk.
    """
    if not setup.disk_capacity:
        return setup
    ext_size = min(setup.queue_ext_size, EXT_MAX)
    a_queue = UNIT_SIZE * setup.queue_file_units + ext_size
    capacity = max(setup.disk_capacity, ROOM * setup.log_file_size + QUEUES * a_queue)
    return replace(setup, disk_capacity=capacity, queue_ext_size=ext_size)
