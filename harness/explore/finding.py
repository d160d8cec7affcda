"""Finding: makes a program as small as possible that shows what the explorer found.

First ``run_program`` must violate the same law as the state did. Then the program is
shrunk. Then its power losses lose as few pieces as possible: piece by piece is kept as
long as the law is still violated. Last, the mildest disk that shows it is searched.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from crashmq.harness.disk.crash import StoreCrashed
from crashmq.harness.disk.units import PendingUnits, Unit
from crashmq.harness.episodes.episode import Episode, EpisodeResult, run_program
from crashmq.harness.explore.explorer import Found
from crashmq.harness.failures.shrink import shrink
from crashmq.harness.mutants.failure_signature import failure_signature, mildest_profile
from crashmq.harness.subjects.python_store import PythonStore
from crashmq.models.laws.registry import LawUnknown, LawViolated
from crashmq.models.ops import (
    UNIT_END,
    UNIT_ENTRY,
    UNIT_ORDER,
    Crash,
    During,
    KeptUnit,
    Op,
    Survivors,
)
from crashmq.models.program import Program, Setup

RUNS_MAX = 400


class ProgramDisagrees(AssertionError):
    """A state violated a law and its program does not: a defect of the explorer."""


@dataclass(frozen=True, slots=True)
class Small:
    """A finding with its smallest program.

    Attributes:
        words: which pieces have to be lost, in a sentence; "" if none.
        profile: the mildest disk that shows it.
        cause: equal for findings that seem to be one bug.
    """

    found: Found
    program: Program
    result: EpisodeResult
    words: str
    profile: str
    cause: str


def made_small(found: Found, scenario: str, budget_runs: int = RUNS_MAX) -> Small:
    """The smallest program that violates the law; the caller plants the bug.

    Args:
        found: the violation, with its program.
        scenario: decides how the program is judged at its end.
        budget_runs: programs to try at most for fewer ops, and then for fewer losses.

    Raises:
        ProgramDisagrees: the program does not break the law that the state did.
    """
    result = run_program(found.program, scenario)
    if result.law != found.law:
        raise ProgramDisagrees(
            f"the explorer saw {found.law} broken where the program breaks "
            f"{result.law or 'no law'}: {found.program}"
        )
    program = found.program
    if not found.is_unknown:
        small = shrink(program, scenario, found.law, budget_runs=budget_runs)
        program = fewest_lost(small.program, scenario, found.law, budget_runs)
        result = run_program(program, scenario)
    return Small(
        found,
        program,
        result,
        words_for(program, scenario),
        mildest_profile(program, scenario, found.law),
        failure_signature(program, scenario, found.law).signature,
    )


def fewest_lost(
    program: Program, scenario: str, law: str, budget_runs: int = RUNS_MAX
) -> Program:
    """The program whose power losses lose the fewest pieces and still break the law."""
    tried: set[tuple[int, str, int]] = set()
    while len(tried) < budget_runs:
        untried = [
            (at, loss, unit)
            for at, loss in _losses(program, scenario).items()
            for unit in loss.lost
            if (at, unit.path, unit.place) not in tried
        ]
        if not untried:
            break
        at, loss, unit = untried[0]
        tried.add((at, unit.path, unit.place))
        kept = {**loss.newest, **loss.lost, unit: loss.newest[unit]}
        candidate = _with_survivors(program, at, kept)
        if unit.place < 0 and (now := _losses(candidate, scenario).get(at)):
            # With the name come units that nobody has chosen yet: they are kept.
            still = {u: v for u, v in now.lost.items() if u in loss.lost}
            candidate = _with_survivors(program, at, {**now.newest, **still})
        if run_program(candidate, scenario, keep_trace=False).law == law:
            program = candidate
    return program


def words_for(program: Program, scenario: str) -> str:
    """A sentence that says which pieces the power losses of a program lose."""
    told = []
    for at, loss in _losses(program, scenario).items():
        pieces: Counter[str] = Counter(_piece(unit) for unit in loss.lost)
        if pieces:
            listed = " and ".join(
                f"{_count(number, name)}" for name, number in pieces.items()
            )
            op = program.ops[at]
            assert isinstance(op, During)
            told.append(
                f"{listed}, lost when power goes at disk action {op.at_action} of step "
                f"{at}, {'is' if loss.lost and len(loss.lost) == 1 else 'are'} enough"
            )
    return "; ".join(told)


def _piece(unit: Unit) -> str:
    match unit.place:
        case place if place == UNIT_ENTRY:
            return f"entry of {unit.path}"
        case place if place == UNIT_END:
            return f"size of {unit.path}"
        case place if place == UNIT_ORDER:
            return "tail of the directory changes"
        case _:
            return f"sector of {unit.path}"


def _count(number: int, name: str) -> str:
    if number == 1:
        return f"one {name}"
    first, _, rest = name.partition(" ")
    plural = "entries" if first == "entry" else f"{first}s"
    return f"{number} {plural} {rest}"


@dataclass(slots=True)
class _Loss:
    """What one power loss could lose (each unit's newest version), and what it lost."""

    newest: dict[Unit, int]
    lost: dict[Unit, int]


class _LossStore(PythonStore):
    """Our engine, with a record of what each power loss takes."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.losses: list[_Loss] = []

    def crash(self, crash: Crash) -> StoreCrashed:
        """Record what is lost, and end this life."""
        if crash.kind == "power_loss" and self.disk.profile.loses_unsynced:
            self.losses.append(_loss(self, crash))
        return super().crash(crash)


def _loss(store: PythonStore, crash: Crash) -> _Loss:
    pending = PendingUnits.of(store.disk.snapshot())
    given = {(u.path, u.place): u.version for u in crash.survivors.units}
    is_all = crash.survivors.kind == "all"
    names = [
        KeptUnit(u.path, u.place, u.versions - 1 if is_all else given[u.path, u.place])
        for u in pending.names
        if is_all or given.get((u.path, u.place))
    ]
    newest, lost = {}, {}
    for unit in (*pending.names, *pending.sectors(names)):
        top = unit.versions - 1
        version = top if is_all else min(top, given.get((unit.path, unit.place), 0))
        newest[unit] = top
        if version < top:
            lost[unit] = version
    return _Loss(newest, lost)


def _losses(program: Program, scenario: str) -> dict[int, _Loss]:
    """What each power loss lost, by the number of the op in which it came."""
    store = _LossStore(program.setup)
    episode = Episode(scenario, program.setup, subject=store, keep_trace=False)
    losses: dict[int, _Loss] = {}
    try:
        for number, op in enumerate(program.ops):
            before = len(store.losses)
            try:
                episode.step(op)
            finally:
                if len(store.losses) > before and _has_listed_survivors(op):
                    losses[number] = store.losses[-1]
    except (LawViolated, LawUnknown):
        pass  # it is what the program is kept for
    finally:
        episode.close()
    return losses


def _has_listed_survivors(op: Op) -> bool:
    """Whether the survivors of the op's crash are all, none, or a list of units."""
    return (
        isinstance(op, During)
        and isinstance(op.event, Crash)
        and op.event.survivors.kind in ("none", "all", "units")
    )


def _with_survivors(program: Program, at: int, kept: dict[Unit, int]) -> Program:
    op = program.ops[at]
    assert isinstance(op, During)
    assert isinstance(op.event, Crash)
    units = tuple(
        KeptUnit(unit.path, unit.place, version)
        for unit, version in kept.items()
        if version
    )
    crash = replace(op.event, survivors=Survivors("units", units=units))
    ops = (*program.ops[:at], replace(op, event=crash), *program.ops[at + 1 :])
    return replace(program, ops=ops)
