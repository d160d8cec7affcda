"""The ranges of ops for a store whose files are damaged while it is down."""

from __future__ import annotations

from dataclasses import replace

from crashmq.models.program import HOUR_MS, OnDamage
from crashmq.scenarios.programs.space import Numbers, often
from crashmq.scenarios.programs.spaces import CALM

SERVING: tuple[OnDamage, ...] = often(("refuse", 2), ("serve", 1))
"""What the stores do that meet damage below the durable mark."""

_FIELDS = (0, 4, 8, 12, 16, 20, 28, 36, 40, 48, 56, 64, 72, 76, 84)
ROTTEN_BYTES = tuple(
    [
        first + at
        for first in (0, 131)
        for at in (*_FIELDS * 2, *range(26), *range(26, 131, 6))
    ]
)
"""Bytes of the first two records of a log, if their bodies are the commonest.

The first of each field more often than others, so that a field may go as a whole; each
of size, magic, CRC, queue id and queue offset, and some of the others."""

ROTTING = replace(
    CALM,
    kinds=often(
        ("put", 4),
        ("burst", 5),
        ("service", 8),
        ("pull", 2),
        ("look", 2),
        ("search", 1),
        ("damage", 5),
        ("clock", 2),
        ("expire", 4),
    ),
    kept=("burst", "service", "damage"),
    crash_kinds=often(("process_kill", 2), ("power_loss", 1)),
    survivor_kinds=often(("none", 1), ("prefix", 2), ("hashed", 1)),
    damage_targets=often(
        (("commitlog[-1]", "flip"), 4),
        (("commitlog[0]", "flip"), 4),
        (("commitlog[1]", "flip"), 2),
        (("commitlog[-1]", "zero"), 4),
        (("commitlog[0]", "zero"), 4),
        (("commitlog[0]", "delete"), 1),
        (("commitlog[1]", "delete"), 1),
        (("commitlog[-1]", "delete"), 1),
        (("consumequeue[-1]", "flip"), 2),
        (("consumequeue[0]", "flip"), 2),
        (("consumequeue[1]", "flip"), 2),
        (("consumequeue[-1]", "repeat"), 2),
        (("consumequeue[0]", "repeat"), 2),
        (("commitlog[-1]", "repeat"), 1),
        (("commitlog[0]", "repeat"), 1),
        (("consumequeue[0]", "delete"), 1),
        (("consumequeue[-1]", "delete"), 1),
        (("consumequeue[-1]", "zero"), 1),
        (("checkpoint", "flip"), 2),
        (("checkpoint", "delete"), 1),
        (("abort", "flip"), 1),
    ),
    damage_offsets=Numbers((*ROTTEN_BYTES, 512, 552, 1024, 1064), 4096),
    damage_sizes=often((1, 5), (4, 5), (8, 2), (512, 1)),
    expiry_steps_ms=Numbers((3 * HOUR_MS, 2 * HOUR_MS, HOUR_MS), 8 * HOUR_MS),
)
