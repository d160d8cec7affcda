"""A judged crash: what the judge knows after a crash, before its states are tried.

The judge of the history is asked about the interrupted op, once for a process kill and
once for a power loss. What it knows then is the same for every state that the crash can
leave.
"""

from __future__ import annotations

from typing import NamedTuple

from crashmq.harness.disk.sim_disk import SimDisk
from crashmq.harness.explore.crash_point import CrashPoint
from crashmq.harness.explore.state_key import StateKeys
from crashmq.harness.judging.judge import Judge
from crashmq.models.history import MAIN, ConsumerEnded, Entry, OpEnded, Step
from crashmq.models.laws.registry import LawUnknown, LawViolated
from crashmq.models.observations import DOWN, Crashed, Done
from crashmq.models.ops import Crash, CrashKind, During, EndConsumer, Op
from crashmq.models.plain_state import token

_WRITES_CHECKPOINT = ("write", "checkpoint")


class JudgedCrash(NamedTuple):
    """A crash whose state was judged.

    Attributes:
        kind: process kill, or power loss.
        judge: the judge's knowledge after the crash.
        ops: what was done up to and including the crash, without the survivors.
        number: two crashes have the same number if they have the same verdict on the
            same files.
        breach: the law that the interrupted op had violated before the crash; else
            None.
    """

    kind: CrashKind
    judge: Judge
    ops: tuple[Op, ...]
    number: int
    breach: LawViolated | LawUnknown | None


class JudgedCrashes:
    """Judges the crashes of one crash point after the other, and reuses the last.

    Most disk actions of an op come between the same two calls. Then the judged crashes
    are equal, since no law depends on the action's number.
    """

    def __init__(self, state_keys: StateKeys) -> None:
        self._state_keys = state_keys
        self._newest: dict[tuple[CrashKind, bool], tuple[CrashPoint, JudgedCrash]] = {}

    def at(self, crash_point: CrashPoint, kind: CrashKind, cut: int = 0) -> JudgedCrash:
        """Judge a crash at a crash point, whatever state it leaves.

        ``cut``: a store into a mapping was done up to that byte. That matters only for
        the checkpoint, which may then be torn.
        """
        is_torn = cut > 0 and crash_point.disk.last == _WRITES_CHECKPOINT
        known = self._newest.get((kind, is_torn))
        if known is not None and _are_alike(known[0], crash_point):
            return known[1]._replace(ops=crash_point.ops(Crash(kind)))
        one = judged_crash(crash_point, kind, self._state_keys, cut if is_torn else 0)
        self._newest[kind, is_torn] = crash_point, one
        return one


def _are_alike(one: CrashPoint, other: CrashPoint) -> bool:
    return (
        one.judge is other.judge
        and one.entries is other.entries
        and one.op is other.op
        and (one.clock, one.life) == (other.clock, other.life)
    )


def judged_crash(
    crash_point: CrashPoint, kind: CrashKind, state_keys: StateKeys, cut: int = 0
) -> JudgedCrash:
    """Judge a crash at a crash point, whatever it leaves."""
    crash = Crash(kind, cut=cut)
    verb, path = crash_point.disk.last
    seen = Crashed(kind, crash_point.at_action, f"{verb}:{path}")
    judge = crash_point.judge.fork(crash_point.subject, state_keys.read)
    op = During(crash_point.op, crash_point.at_action, crash)
    step = Step.cut_short(op, crash_point.entries, seen, crash)
    breach: LawViolated | LawUnknown | None = None
    try:
        judge.judge(step, DOWN)
        for client in crash_point.clients:
            judge.judge(_killed(client, crash_point.clock[0], step), DOWN)
    except (LawViolated, LawUnknown) as error:
        breach = error
    known = (
        token(judge.state()),
        crash_point.clock,
        crash_point.life,
        _kept(crash_point),
    )
    ops = crash_point.ops(Crash(kind))
    return JudgedCrash(kind, judge, ops, state_keys.number(known), breach)


def _kept(crash_point: CrashPoint) -> tuple[object, ...]:
    """What is on the disks of the clients' machines."""
    disks = sorted(crash_point.client_disks.items())
    return tuple(
        [
            (client, *sorted(SimDisk.fork(disk).files().items()))
            for client, disk in disks
        ]
    )


def _killed(client: str, at_ms: int, crash: Step) -> Step:
    """The step in which a client's consumer is killed, after its broker."""
    events = (
        ConsumerEnded(client, "kill"),
        OpEnded(Done(), 0, crash.world, is_unreadable=False),
    )
    op = EndConsumer(client, "kill")
    return Step(op, [Entry(at_ms, MAIN, event) for event in events])
