"""Neighbours: a program that reached something rare, with a few changes.

Seeded programs are drawn independently, so three rare things in a row occur only with
the product of their odds. A neighbour keeps the program and changes one to three
places: a phrase is added, ops are cut or repeated, a number is replaced by one next to
it, or a crash or another activity is put into an op. It stays in the space of its
scenario.
"""

from __future__ import annotations

from dataclasses import replace

from crashmq.models.ops import (
    AdvanceClock,
    Crash,
    Damage,
    During,
    Event,
    LookMessage,
    Op,
    PullMessage,
    PutBatch,
    PutMessage,
    Restart,
    RunService,
    SendMessage,
    Shutdown,
    Together,
)
from crashmq.models.program import Program, Setup
from crashmq.scenarios.catalogue.scenario import Scenario
from crashmq.scenarios.programs.chance import Chance, SeededChance
from crashmq.scenarios.programs.space import Kind, Space, schedule_of
from crashmq.scenarios.programs.workload import phrase_for

CHANGES_MAX = 3
RUN_MAX = 4  # ops that are cut, or come again, at once
OPS_MAX = 120
STEPS = (-8, -2, -1, 1, 2, 8)  # from a number to the one next to it
SETUP_CHANGES = 8  # one neighbour of so many has another store or disk


def neighbour_of(
    program: Program, scenario: Scenario, run: int, number: int
) -> Program:
    """A neighbour of a program of a scenario; a function of the arguments alone."""
    chance = SeededChance(run, number)
    setup = program.setup
    if chance.one_in(SETUP_CHANGES):
        setup = chance.pick(scenario.setups)
    change = _Change(scenario.space, setup, chance)
    ops = list(program.ops)
    for _ in range(chance.integer(1, CHANGES_MAX)):
        ops = change.one_place(ops)
    return Program(setup, tuple(ops[:OPS_MAX]))


class _Change:
    """Changes of a list of ops, each at a drawn place."""

    def __init__(self, space: Space, setup: Setup, chance: Chance) -> None:
        self._space = space
        self._setup = setup
        self._chance = chance
        self._kinds = (
            *(self._insert, self._insert, self._nudge, self._nudge),
            *(self._interrupt, self._cut, self._again, self._swap),
        )

    def one_place(self, ops: list[Op]) -> list[Op]:
        """The ops with one change."""
        if not ops:
            return self._insert(ops)
        return self._chance.pick(self._kinds)(ops)

    def _insert(self, ops: list[Op]) -> list[Op]:
        at = self._chance.below(len(ops) + 1)
        kind = self._chance.pick(self._space.kinds)
        phrase = phrase_for(self._space, self._setup, kind, self._chance.word())
        return [*ops[:at], *phrase, *ops[at:]]

    def _run(self, ops: list[Op]) -> slice:
        start = self._chance.below(len(ops))
        return slice(start, start + self._chance.integer(1, RUN_MAX))

    def _cut(self, ops: list[Op]) -> list[Op]:
        gone = self._run(ops)
        return ops[: gone.start] + ops[gone.stop :]

    def _again(self, ops: list[Op]) -> list[Op]:
        again, at = ops[self._run(ops)], self._chance.below(len(ops) + 1)
        return [*ops[:at], *again, *ops[at:]]

    def _swap(self, ops: list[Op]) -> list[Op]:
        at = self._chance.below(len(ops))
        return [*ops[:at], *ops[at + 1 : at + 2], ops[at], *ops[at + 2 :]]

    def _nudge(self, ops: list[Op]) -> list[Op]:
        at = self._chance.below(len(ops))
        return [*ops[:at], self._nudged(ops[at]), *ops[at + 1 :]]

    def _interrupt(self, ops: list[Op]) -> list[Op]:
        """A crash during an op, and the start after it; or another activity."""
        space, chance, at = self._space, self._chance, self._chance.below(len(ops))
        if isinstance(ops[at], During | Together):
            return self._nudge(ops)
        kind: Kind = "crash" if chance.coin() else "interleave"
        if kind not in space.kinds:
            return self._insert(ops)
        events = self._events(kind)
        if not events:
            return self._insert(ops)
        at_action = chance.number(space.at_actions.service)
        then = (Restart(),) if isinstance(events[0], Crash | Shutdown) else ()
        during = During(ops[at], at_action, events[0])
        return [*ops[:at], during, *then, *ops[at + 1 :]]

    def _near(self, value: int, least: int = 0) -> int:
        return max(least, value + self._chance.pick(STEPS))

    def _nudged(self, op: Op) -> Op:
        """The op with one number replaced by the next or previous one."""
        match op:
            case During(inner, at_action, event):
                if self._chance.coin():
                    return replace(op, op=self._nudged(inner))
                if isinstance(event, Crash) and self._chance.coin():
                    return replace(op, event=self._other_crash(event))
                return During(inner, self._near(at_action, 1), event)
            case Together(parts):
                templates = self._space.schedules
                template = self._chance.pick(templates)
                return Together(
                    parts, schedule_of(template, len(parts), self._chance.word())
                )
            case PutMessage(body_size=size):
                return replace(op, body_size=self._near(size))
            case SendMessage(reconsume_times=times):
                return replace(op, reconsume_times=self._near(times))
            case PutBatch(body_sizes=sizes) if sizes:
                at = self._chance.below(len(sizes))
                near = self._near(sizes[at])
                return replace(op, body_sizes=(*sizes[:at], near, *sizes[at + 1 :]))
            case PullMessage(queue_offset=offset):
                return replace(op, queue_offset=self._near(offset, -1))
            case LookMessage(phy_offset):
                return LookMessage(self._near(phy_offset))
            case RunService(times=times):
                return replace(op, times=min(60, self._near(times, 1)))
            case AdvanceClock(ms):
                return AdvanceClock(ms + self._chance.pick(STEPS))
            case Damage(at=at) if op.kind != "delete":
                return replace(op, at=self._near(at))
            case _:
                return op

    def _other_crash(self, crash: Crash) -> Crash:
        """The same crash with other survivors."""
        drawn = self._events("crash")
        return next((event for event in drawn if isinstance(event, Crash)), crash)

    def _events(self, kind: Kind) -> list[Event]:
        """The events that can happen during the ops of a phrase."""
        phrase = phrase_for(self._space, self._setup, kind, self._chance.word())
        return [op.event for op in phrase if isinstance(op, During)]
