"""Describes a shrunk failure, so that failures of one bug are grouped.

A signature names the violated law, what was done to the store (which kinds of pieces
were lost, which files were damaged, which calls failed), unusual requests (properties
of puts, batches, deletions, concurrent callers), how its last start recovered, and what
the law saw instead of what it expected. It leaves out topics, sizes, offsets and kinds
of damage, which differ between two programs that show the same bug; and process kills,
since the way of recovery implies them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import MISSING, dataclass, fields, replace

from crashmq.harness.disk.crash import StoreCrashed
from crashmq.harness.disk.profiles import PROFILES
from crashmq.harness.disk.units import PendingUnits
from crashmq.harness.episodes.episode import Episode, run_program
from crashmq.harness.subjects.python_store import PythonStore
from crashmq.models.laws.registry import LawUnknown, LawViolated
from crashmq.models.ops import (
    UNIT_END,
    UNIT_ENTRY,
    UNIT_ORDER,
    ChangeConfig,
    CleanOffsets,
    CleanTopics,
    Crash,
    Damage,
    DeleteTopic,
    DiskFault,
    Event,
    KeptUnit,
    Op,
    PlantFile,
    PutBatch,
    PutMessage,
    ResetOffset,
    Restart,
    SendMessage,
    TellReset,
    Together,
    parts,
)
from crashmq.models.program import Program, Setup
from crashmq.models.verdict import Outcome

_PLACES = {UNIT_ENTRY: "entry", UNIT_END: "size", UNIT_ORDER: "order"}
_PLACE = re.compile(r"[\w./-]*\d[\w./-]*")
_PLAIN = {
    field.name: field.default
    for field in fields(PutMessage)
    if field.default is not MISSING
}
_RECOVERIES = ("recover.normal", "recover.abnormal", "load.refused")


@dataclass(frozen=True, slots=True)
class FailureSignature:
    """What a failing program does, and what its law saw.

    Attributes:
        law: the violated law.
        done: what was done to the store, each kind once.
        lost: the kinds of pieces that power losses lost, each once.
        lost_units: how many pieces they lost, where the program lists them; else how
            many were at risk.
        recovery: the branches that the last start took.
        seen: what the law first saw and expected, without offsets.
        asked: the unusual requests, each kind once.
    """

    law: str
    done: tuple[str, ...]
    lost: tuple[str, ...]
    lost_units: int
    recovery: tuple[str, ...]
    seen: str = ""
    asked: tuple[str, ...] = ()

    @property
    def signature(self) -> str:
        """One text, equal for failures with one cause."""
        parts = (self.done, self.asked, self.lost, self.recovery)
        told = (", ".join(part) or "-" for part in parts)
        return " | ".join([self.law, *told, self.seen or "-"])


def failure_signature(program: Program, scenario: str, law: str) -> FailureSignature:
    """Describe a failure; the caller plants the bug."""
    store = _LossStore(program.setup)
    episode = Episode(scenario, program.setup, subject=store, keep_trace=False)
    way: list[str] = []
    seen = ""
    try:
        for op in program.ops:
            _step(episode, op, way)
        if not episode.is_up:
            _step(episode, Restart(), way)
        episode.finish()
    except (LawViolated, LawUnknown) as breach:
        seen = _without_places(str(breach))  # the failure whose cause is asked for
    episode.close()
    done = {name for op in program.ops for name in _harm(op)}
    lost = {_kind_of(unit) for unit in store.lost}
    asked = {name for op in program.ops for name in _asked(op)}
    return FailureSignature(
        law,
        tuple(sorted(done)),
        tuple(sorted(lost)),
        len(store.lost),
        tuple(way),
        seen,
        tuple(sorted(asked)),
    )


def _without_places(message: str) -> str:
    """The first thing that a law saw, without words that have a digit."""
    first = [line.strip() for line in message.splitlines()[1:2]]
    return _PLACE.sub("#", "".join(first))


def _step(episode: Episode, op: Op, way: list[str]) -> None:
    """Run an op; if it starts the store, put the branches of recovery into ``way``."""
    before = dict(episode.probes)
    try:
        episode.step(op)
    finally:
        if any(isinstance(part, Restart) for part in _parts(op)):
            now = episode.probes
            reached = (name for name in now if now[name] > before.get(name, 0))
            way[:] = sorted(filter(_is_recovery, reached))


def _is_recovery(probe: str) -> bool:
    """Whether the branch shows how a start recovered; most do not."""
    return probe.endswith(_RECOVERIES)


def mildest_profile(program: Program, scenario: str, law: str) -> str:
    """The mildest disk profile on which the program violates the law."""
    for name in PROFILES:
        setup = replace(program.setup, disk_profile=name)
        result = run_program(replace(program, setup=setup), scenario, keep_trace=False)
        if result.outcome is Outcome.VIOLATED and result.law == law:
            return name
    return program.setup.disk_profile


class _LossStore(PythonStore):
    """Our engine, with a record of what each power loss takes."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.lost: list[KeptUnit] = []

    def crash(self, crash: Crash) -> StoreCrashed:
        """Record what is lost, and end this life."""
        if crash.kind == "power_loss" and crash.survivors.kind != "all":
            pending = PendingUnits.of(self.disk.snapshot())
            chosen = crash.survivors.units
            kept = {(unit.path, unit.place): unit.version for unit in chosen}
            for unit in (*pending.names, *pending.sectors(chosen)):
                version = kept.get((unit.path, unit.place), 0)
                if version < unit.versions - 1:
                    self.lost.append(KeptUnit(unit.path, unit.place, version))
        return super().crash(crash)


def _kind_of(unit: KeptUnit) -> str:
    top = unit.path.partition("/")[0] or "names"
    return f"{top} {_PLACES.get(unit.place, 'bytes')}"


def _parts(op: Event) -> Iterator[Event]:
    """An op, and the ops and events inside it."""
    yield op
    for part in parts(op):
        yield from _parts(part)


def _harm(op: Event) -> Iterator[str]:
    """The kinds of harm in an op: faults and damage, but no kills and no use."""
    for part in _parts(op):
        match part:
            case Damage(file):
                yield f"damage to {file.partition('[')[0]}"
            case PlantFile():
                yield "a foreign file"
            case ChangeConfig():
                yield "another configuration"
            case DiskFault(call):
                yield f"failing {call}"


def _asked(op: Event) -> Iterator[str]:
    """The requests of an op that go beyond a plain put or read."""
    for part in _parts(op):
        match part:
            case PutMessage():
                yield from (
                    name for name in _PLAIN if _PLAIN[name] != getattr(part, name)
                )
            case PutBatch():
                yield "batch"
            case SendMessage():
                yield "send"
            case DeleteTopic() | CleanTopics() | CleanOffsets():
                yield "deletion"
            case ResetOffset() | TellReset():
                yield "reset"
            case Together():
                yield "callers at once"
