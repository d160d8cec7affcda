"""Options that any store may have, whatever a scenario is about.

A scenario lists the setups that its subject needs. An option that is nobody's subject
is in few of them, so it meets few ops: replicas confirmed the log in two scenarios of
forty. A search turns on one or two of them in some programs of every scenario.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from crashmq.models.ops import ConfirmLog, FillDisk, Op, RunService, innermost
from crashmq.models.program import Program, Setup
from crashmq.scenarios.programs.chance import Chance
from crashmq.scenarios.programs.holding import BEHIND
from crashmq.scenarios.programs.mixing import with_room
from crashmq.scenarios.programs.space import often

OPTIONS: tuple[Mapping[str, object], ...] = often(
    ({"multi_dispatch": True}, 3),
    ({"duplicates": True}, 3),
    ({"prop_crc": True}, 2),
    ({"checks_crc": True}, 1),
    ({"queue_ext_size": 100}, 2),
    ({"queue_ext_size": 600}, 1),
    ({"queue_ext_size": 100_000}, 1),
    ({"index_slots": 8, "index_entries": 20}, 2),
    ({"index_slots": 3, "index_entries": 7}, 2),
    ({"index_slots": 40, "index_entries": 60}, 1),
    ({"index_slots": 99, "index_entries": 60}, 2),
    ({"transient_store_pool": True}, 2),
    ({"transient_store_pool": True, "transient_store_buffers": 1}, 1),
    ({"preallocate": True}, 1),
    ({"flush_least_pages": 0}, 1),
    ({"flush_mode": "SYNC_FLUSH"}, 1),
    ({"read_window": 64}, 2),
    ({"read_window": 600}, 1),
    ({"in_memory_size": 150}, 1),
    ({"disk_capacity": 1, "cleans": True}, 3),
    ({"cleans": True, "reserved_hours": 2}, 2),
    ({"disk_profile": "posix_min"}, 3),
    ({"queue_file_units": 2}, 1),
    ({"queue_file_units": 7}, 1),
    ({"queue_file_units": 30}, 2),
    ({"max_span": 2}, 2),
    ({"topic_threshold": 6}, 1),
    ({"pull_interval": 300}, 2),
    ({"long_polling": False}, 1),
    ({"posts_subscription": True}, 1),
    ({"takes_lite_pulls": False}, 1),
    ({"retry_queues": 3}, 1),
    ({"sends_records": False}, 1),
)
"""Sets of options that mean something together; a disk with an end gets some room."""

_OF_BROKERS = frozenset(
    {
        *("max_span", "topic_threshold", "pull_interval", "long_polling"),
        *(
            "posts_subscription",
            "reserved_hours",
            "takes_lite_pulls",
            "sends_records",
            "retry_queues",
        ),
    }
)

RENAMED = 3
"""Of so many programs with other options one has topics of other names."""

ODD_TOPICS = ("a b", " ", "T.0", "付", "T0 1", "é", "0", "t" * 60, "T\r0", "T\u20280")
"""What a store may be given that no broker would take, and what is just unusual."""

BROKER_TOPICS = ("T-0_|a", "%T", "0", "t" * 60)
"""Names that RocketMQ's brokers take."""

FULL_PERCENTS = often((76, 1), (86, 2), (90, 1), (91, 3), (96, 2), (100, 1))
"""Just below and above where cleaning begins, is forced, and puts stop."""


def with_what_options_need(program: Program, chance: Chance) -> Program:
    """The program with the ops that its options need, and perhaps another topic."""
    setup = program.setup
    ops = with_ops_for(setup, program.ops, chance)
    if chance.one_in(RENAMED) and not setup.begins_with:
        name = chance.pick(BROKER_TOPICS if setup.keeps_progress else ODD_TOPICS)
        ops = tuple([renamed(op, name) for op in ops])
    return Program(setup, ops)


def with_options(setup: Setup, chance: Chance) -> Setup:
    """The setup with one or two of the ``OPTIONS``; a found store keeps its own."""
    if setup.begins_with:
        return setup
    for _ in range(1 + chance.below(2)):
        more = chance.pick(OPTIONS)
        if not _is_spoilt_by(setup, more):
            setup = replace(setup, **more)  # type: ignore[arg-type]  # names of fields
    return with_room(setup)


def _is_spoilt_by(setup: Setup, more: Mapping[str, object]) -> bool:
    """Whether a setup would lose its subject by these options.

    Only a broker holds pulls and has consumers; consumequeue_ext files hold the bit
    maps of filters; a broker that cannot write its tables, since the disk is full,
    excuses nearly all that laws ask of it.
    """
    is_full = setup.keeps_progress and "disk_capacity" in more
    lacks_broker = not setup.keeps_progress and not _OF_BROKERS.isdisjoint(more)
    return lacks_broker or is_full or (setup.filters and "queue_ext_size" in more)


def with_ops_for(setup: Setup, ops: tuple[Op, ...], chance: Chance) -> tuple[Op, ...]:
    """The ops, and those without which the setup's options would mean nothing."""
    if setup.duplicates:
        ops = _confirmed(ops, chance)
    fills = any(isinstance(op, FillDisk) for op in ops)
    if setup.disk_capacity and not (fills or setup.keeps_progress):
        ops = _on_a_full_disk(ops, chance)
    return ops


def renamed(value: Any, name: str) -> Any:
    """The op or a part of one, with another name for T0, also in a list of topics."""
    if isinstance(value, str):
        return ",".join([name if each == "T0" else each for each in value.split(",")])
    if type(value) is tuple:
        return tuple([renamed(each, name) for each in value])
    if not is_dataclass(value) or isinstance(value, type):
        return value
    changed = {
        field.name: now
        for field in fields(value)
        if (now := renamed(was := getattr(value, field.name), name)) != was
    }
    return replace(value, **changed) if changed else value


def _confirmed(ops: tuple[Op, ...], chance: Chance) -> tuple[Op, ...]:
    """Before most rounds of dispatch replicas confirm what there is."""
    found: list[Op] = []
    for op in ops:
        if innermost(op) == RunService("reput") and not chance.one_in(4):
            found.append(ConfirmLog(chance.number(BEHIND)))
        found.append(op)
    return tuple(found)


def _on_a_full_disk(ops: tuple[Op, ...], chance: Chance) -> tuple[Op, ...]:
    """Others fill the disk at some time, and mostly free it again."""
    filled = chance.below(len(ops) + 1)
    freed = filled + chance.below(len(ops) - filled + 1)
    look = RunService("clean_commit_log")
    fill = (FillDisk(chance.pick(FULL_PERCENTS)), look)
    free = (FillDisk(0), *((look,) if chance.coin() else ()))
    return (*ops[:filled], *fill, *ops[filled:freed], *free, *ops[freed:])
