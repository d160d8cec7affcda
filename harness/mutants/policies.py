"""Policies: what other harnesses let a power loss leave, on our simulated disk.

Each policy is one rule for which pending units survive (``harness.disk.units``). A
policy does not change a history: the same programs crash at the same disk actions, and
at a power loss the policy chooses the survivors, from the seed in the program. The
choice is written into the program, so that a kill under any policy is an ordinary case.
``ours`` keeps the program's own choice.

Rules that our disks exclude are left out, such as garbage in sectors where nothing was
being written: no file system does that, and the clean engine would violate laws.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeAlias

from crashmq.harness.disk.crash import StoreCrashed
from crashmq.harness.disk.hashing import mixed
from crashmq.harness.disk.units import PendingUnits, Unit
from crashmq.harness.episodes.episode import EpisodeResult, run_program
from crashmq.harness.subjects.python_store import PythonStore
from crashmq.models.ops import Crash, During, Event, KeptUnit, Op, Survivors
from crashmq.models.program import Program, Setup

SECTORS_A_PAGE = 8


@dataclass(frozen=True, slots=True)
class Moment:
    """What a policy may use at a power loss.

    Attributes:
        pending: the units, of any choice of names.
        path: the file of the disk action in progress.
        seed: decides what ``draw`` returns.
    """

    pending: PendingUnits
    path: str
    seed: int

    def draw(self, *what: object) -> int:
        """32 bits that depend only on the seed and on ``what``."""
        key = zlib.crc32(":".join(map(str, what)).encode())
        return mixed(self.seed ^ mixed(key)) >> 32

    def coin(self, *what: object) -> bool:
        """One bit of ``draw``."""
        return bool(self.draw(*what) & 1)

    def all_names(self) -> tuple[KeptUnit, ...]:
        """Every name and size unit at its newest version, as readers see them."""
        return kept(self.pending.names)

    def files(self, names: Sequence[KeptUnit]) -> dict[str, list[Unit]]:
        """Each file's sector units in order, given the ``names`` that survive."""
        files: dict[str, list[Unit]] = {}
        for unit in self.pending.sectors(names):
            files.setdefault(unit.path, []).append(unit)
        return files


Choose: TypeAlias = Callable[[Moment], tuple[KeptUnit, ...]]


@dataclass(frozen=True, slots=True)
class Policy:
    """One harness's rule for a power loss.

    ``choose`` is None if the program's own choice stays; ``loses_power`` is false if
    the harness knows only process kills.
    """

    name: str
    after: str
    sentence: str
    choose: Choose | None = None
    loses_power: bool = True


def kept(units: Sequence[Unit]) -> tuple[KeptUnit, ...]:
    """All of these units at their newest version."""
    return tuple(KeptUnit(u.path, u.place, u.versions - 1) for u in units)


def whole_cache(moment: Moment) -> tuple[KeptUnit, ...]:
    """Names survive; every byte that was not synced is lost."""
    return moment.all_names()


def file_suffix(moment: Moment) -> tuple[KeptUnit, ...]:
    """Each file keeps its synced bytes and a prefix of the others, perhaps none.

    In half of the losses files created since their directory's last sync are gone.
    """
    names = moment.all_names() if moment.coin("names") else ()
    left = list(names)
    for path, units in moment.files(names).items():
        if moment.coin("random", path):
            left += kept(units[: moment.draw("suffix", path) % (len(units) + 1)])
    return tuple(left)


def in_flight(moment: Moment) -> tuple[KeptUnit, ...]:
    """All finished actions survive; of the file being written, old and new sectors."""
    names = moment.all_names()
    left = list(names)
    for path, units in moment.files(names).items():
        for unit in units:
            version = unit.versions - 1
            if path == moment.path:
                version = moment.draw(path, unit.place) % unit.versions
            if version:
                left.append(KeptUnit(path, unit.place, version))
    return tuple(left)


def write_list(moment: Moment) -> tuple[KeptUnit, ...]:
    """Each write since the last sync survives as a whole or not at all."""
    names = moment.all_names()
    left = list(names)
    for path, units in moment.files(names).items():
        for run in runs_of(units):
            if moment.coin(path, run[0].place):
                left += kept(run)
    return tuple(left)


def page_modes(moment: Moment) -> tuple[KeptUnit, ...]:
    """Each page survives or not; in a third of the files each sector by itself."""
    names = moment.all_names()
    left = list(names)
    for path, units in moment.files(names).items():
        by_sector = moment.draw("mode", path) % 3 == 0
        for unit in units:
            place = unit.place if by_sector else unit.place // SECTORS_A_PAGE
            if moment.coin(path, place):
                left += kept([unit])
    return tuple(left)


def omit_one(moment: Moment) -> tuple[KeptUnit, ...]:
    """Everything survives but one unit: a sector's bytes, or a directory's change."""
    names = list(moment.pending.names)
    sectors = moment.pending.sectors(kept(names))
    every = [*names, *sectors]
    if not every:
        return ()
    lost = moment.draw("lost") % len(every)
    left = [*kept(every[:lost]), *kept(every[lost + 1 :])]
    if lost < len(names):
        name = names[lost]
        left.append(KeptUnit(name.path, name.place, name.versions - 2))
    return tuple(unit for unit in left if unit.version)


def runs_of(units: Sequence[Unit]) -> list[list[Unit]]:
    """Group the sectors into runs of neighbours: one write leaves such a run."""
    runs: list[list[Unit]] = []
    for unit in units:
        if runs and runs[-1][-1].place == unit.place - 1:
            runs[-1].append(unit)
        else:
            runs.append([unit])
    return runs


OURS = "ours"

_POLICIES = (
    Policy(OURS, "crashmq", "each sector at any version, names by the disk's rules"),
    Policy(
        "kill_only",
        "most test suites",
        "the process dies, the page cache lives",
        loses_power=False,
    ),
    Policy(
        "file_suffix",
        "RocksDB, FaultInjectionTestFS",
        "each file loses a suffix of what was not synced",
        file_suffix,
    ),
    Policy(
        "whole_cache", "LazyFS", "every byte that was not synced is lost", whole_cache
    ),
    Policy(
        "in_flight",
        "TigerBeetle, its simulator's storage",
        "only what is being written is torn",
        in_flight,
    ),
    Policy(
        "write_list",
        "SQLite, its crash VFS",
        "each write since the last sync is there or not",
        write_list,
    ),
    Policy(
        "page_modes",
        "FoundationDB, AsyncFileNonDurable",
        "each page, or each sector of it, is there or not",
        page_modes,
    ),
    Policy("omit_one", "ALICE", "everything survives but one piece", omit_one),
)

POLICIES: Mapping[str, Policy] = MappingProxyType({p.name: p for p in _POLICIES})


class PolicyStore(PythonStore):
    """Our engine on a disk whose power losses leave what a policy chooses."""

    def __init__(self, setup: Setup, choose: Choose, seeds: Mapping[int, int]) -> None:
        super().__init__(setup)
        self._choose = choose
        self._seeds = seeds
        self.chosen: dict[int, Crash] = {}  # by the identity of the program's crash

    def crash(self, crash: Crash) -> StoreCrashed:
        """End this life, with the survivors that the policy chooses."""
        chosen = crash
        if crash.kind == "power_loss":
            path = self.last_action().partition(":")[2]
            pending = PendingUnits.of(self.disk.snapshot())
            moment = Moment(pending, path, self._seeds[id(crash)])
            survivors = Survivors("units", units=self._choose(moment))
            chosen = replace(crash, survivors=survivors)
            self.chosen[id(crash)] = chosen
        return super().crash(chosen)


def run_under(
    policy: Policy, program: Program, scenario: str
) -> tuple[EpisodeResult, Program]:
    """Run a program under a policy: the result, and the program with its survivors."""
    if not policy.loses_power:
        program = _with_crashes(program, _killed)
    if policy.choose is None:
        return run_program(program, scenario, keep_trace=False), program
    crashes: list[Crash] = []

    def noted(crash: Crash) -> Crash:
        crashes.append(replace(crash))  # one object a place, to be known by
        return crashes[-1]

    program = _with_crashes(program, noted)
    seeds = {
        id(crash): zlib.crc32(f"{number} {crash}".encode())
        for number, crash in enumerate(crashes)
    }
    store = PolicyStore(program.setup, policy.choose, seeds)
    result = run_program(program, scenario, keep_trace=False, subject=store)
    return result, _with_crashes(program, lambda c: store.chosen.get(id(c), c))


def _killed(crash: Crash) -> Crash:
    return Crash("process_kill", cut=crash.cut)


def _with_crashes(program: Program, change: Callable[[Crash], Crash]) -> Program:
    """The program with ``change`` applied to each crash, in op order."""

    def changed(op: Op) -> Op:
        if not isinstance(op, During):
            return op
        event: Event = op.event
        inner = changed(op.op)
        if isinstance(event, Crash):
            event = change(event)
        elif isinstance(event, During):
            event = changed(event)
        return replace(op, op=inner, event=event)

    return replace(program, ops=tuple(map(changed, program.ops)))
