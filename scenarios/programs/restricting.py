"""Restricting a scenario to what a store can do.

A subject has the core and some capabilities (``models.ops.Capability``). A scenario can
be run on it if it has those that every program of the scenario needs; ops that need
others are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Final

from crashmq.models.ops import Capability
from crashmq.scenarios.programs.space import Kind, Space

_CORE: frozenset[Capability] = frozenset()

OF_KINDS: Final[Mapping[Kind, frozenset[Capability]]] = {
    "batch": frozenset({Capability.PUTS_BATCHES}),
    "look": frozenset({Capability.SEARCHES}),
    "search": frozenset({Capability.SEARCHES}),
    "query": frozenset({Capability.SEARCHES}),
    "service": frozenset({Capability.TURNS_SERVICES}),
    "clock": frozenset({Capability.HAS_CLOCK}),
    "fault": frozenset({Capability.STEPS_IN, Capability.MEETS_FAULTS}),
    "interleave": frozenset({Capability.STEPS_IN, Capability.RUNS_SEVERAL}),
    "together": frozenset({Capability.RUNS_SEVERAL}),
    "contend": frozenset({Capability.RUNS_SEVERAL}),
    "overlap": frozenset({Capability.STEPS_IN, Capability.RUNS_SEVERAL}),
    "damage": frozenset({Capability.TAKES_DAMAGE}),
    "disown": frozenset({Capability.TAKES_DAMAGE}),
    "expire": frozenset(
        {Capability.HAS_CLOCK, Capability.TURNS_SERVICES, Capability.DELETES}
    ),
    "fill": frozenset({Capability.HAS_ROOM}),
    "delete": frozenset({Capability.DELETES}),
    "progress": frozenset({Capability.TRACKS_PROGRESS}),
    "consume": frozenset({Capability.RUNS_CONSUMERS}),
    "hold": frozenset({Capability.TRACKS_PROGRESS, Capability.HOLDS_PULLS}),
    "filter": frozenset({Capability.FILTERS}),
    "delay": frozenset(
        {
            *(Capability.DELIVERS_DELAYED, Capability.HAS_CLOCK),
            Capability.TURNS_SERVICES,
        }
    ),
    **dict.fromkeys(
        ("outlive", "stay", "hang", "suspend", "send"),
        frozenset(
            {
                *(Capability.RUNS_CONSUMERS, Capability.HAS_CLOCK),
                Capability.TURNS_SERVICES,
            }
        ),
    ),
    **dict.fromkeys(
        ("ask", "subscribe", "lock", "commit"),
        frozenset(
            {
                *(Capability.RUNS_CONSUMERS, Capability.HAS_CLOCK),
                *(Capability.TURNS_SERVICES, Capability.HOLDS_PULLS),
            }
        ),
    ),
    "retry": frozenset(
        {
            *(Capability.RUNS_CONSUMERS, Capability.DELIVERS_DELAYED),
            *(Capability.HAS_CLOCK, Capability.TURNS_SERVICES),
        }
    ),
}
"""What each kind of phrase is pointless without; the others need the core alone."""

_OF_POWER_LOSS = frozenset({Capability.STEPS_IN, Capability.LOSES_POWER})


def needs_of(space: Space) -> frozenset[Capability]:
    """The capabilities that every program of a space needs."""
    return _CORE.union(*[_needs_of_kind(space, kind) for kind in space.kept])


def _needs_of_kind(space: Space, kind: Kind) -> frozenset[Capability]:
    if kind == "crash":
        # Where mostly power is lost, a kill is not the question.
        losses = space.crash_kinds.count("power_loss")
        return _OF_POWER_LOSS if 2 * losses > len(space.crash_kinds) else _CORE
    return OF_KINDS.get(kind, _CORE)


@cache
def within(space: Space, can: frozenset[Capability]) -> Space:
    """The space without ops that need capabilities not in ``can``.

    Raises:
        ValueError: no op is left.
    """
    crashes = space.crash_kinds
    if not can >= _OF_POWER_LOSS:
        crashes = tuple([kind for kind in crashes if kind == "process_kill"])
    kinds = tuple(
        [
            kind
            for kind in space.kinds
            if OF_KINDS.get(kind, _CORE) <= can and (crashes or kind != "crash")
        ]
    )
    if not kinds:
        raise ValueError(
            f"nothing is left of a scenario of {', '.join(sorted({*space.kinds}))} for "
            f"a subject without more than {', '.join(sorted(c.name for c in can))}: "
            f"choose one by Scenario.needs."
        )
    interrupted = space.interrupted
    if Capability.TURNS_SERVICES not in can:
        interrupted = tuple([kind for kind in interrupted if kind != "service"])
    return replace(
        space,
        kinds=kinds,
        kept=tuple([kind for kind in space.kept if kind in kinds]) or kinds[:1],
        crash_kinds=crashes,
        interrupted=interrupted or ("put",),
    )
