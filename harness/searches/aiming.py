"""Aiming: moves a program's damage to bytes of the store that have a meaning.

The program is run, without judging it, up to its last damage; then the store's files
show where records, units and fields lie (``scenarios.programs.aims``). The result is an
ordinary program with other damage.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeGuard

from crashmq.harness.searches.supervised import Around, Lost, supervised
from crashmq.harness.subjects.damage import selected
from crashmq.harness.subjects.interpreter import interpreter_of
from crashmq.harness.subjects.python_store import PythonStore
from crashmq.models.files.store_image import StoreImage, read_store
from crashmq.models.observations import Skipped
from crashmq.models.ops import Damage, DamageKind, Op, Restart
from crashmq.models.program import Program, Setup
from crashmq.scenarios.programs.aims import AIMED, aimed
from crashmq.scenarios.programs.chance import Chance, SeededChance

TRIES = (0, 1, 4, 7)  # of damage in front of the one that stays
FILES_MET = 8  # of a folder, modulo as many as it has
KINDS: dict[DamageKind, tuple[DamageKind, ...]] = {
    "zero": ("zero", "flip", "flip"),
    "flip": ("flip", "flip", "zero"),
}
_APART = 1 << 32  # from the seeds that programs are drawn by


def perhaps_aimed(program: Program, run: int, number: int) -> Program:
    """The program, or in half of the cases the program with its damage aimed.

    The result depends on the arguments and on the engine's text alone.
    """
    until, chance = _decided(program, run, number)
    return with_aim(program, until, chance) if until else program


def aimed_until_lost(
    program: Program, run: int, number: int, around: Around, timeout_s: float
) -> Program:
    """``perhaps_aimed`` for an episode that hung or died, perhaps while being aimed.

    A child process aims op by op, inside the context ``around``. If an op takes longer
    than ``timeout_s`` or ends the child, it and all later ops are left as they are.
    """
    until, chance = _decided(program, run, number)
    aiming: list[_Aiming] = []  # the child's one, made there

    def aimed_op(at: int) -> list[Op]:
        if not aiming:
            aiming.append(_Aiming(program.setup, chance))
        before = len(aiming[0].ops)
        aiming[0].do(program.ops[at])
        return aiming[0].ops[before:]

    ops: list[Op] = []
    done = 0
    for row in supervised(aimed_op, range(until), timeout_s, around):
        if isinstance(row, Lost):
            break
        ops += row
        done += 1
    return replace(program, ops=(*ops, *program.ops[done:]))


def _decided(program: Program, run: int, number: int) -> tuple[int, Chance]:
    """The number of ops to aim, 0 to aim none, and the chance that decides where."""
    chance = SeededChance(run + _APART, number)
    lasts = [n for n, op in enumerate(program.ops) if _can_be_aimed(op)]
    return (lasts[-1] + 1 if lasts and chance.coin() else 0), chance


def with_aim(program: Program, until: int, chance: Chance) -> Program:
    """The program with the damage among its first ``until`` ops aimed."""
    aiming = _Aiming(program.setup, chance)
    try:
        for op in program.ops[:until]:
            aiming.do(op)
    finally:
        aiming.subject.close()
    return replace(program, ops=(*aiming.ops, *program.ops[until:]))


class _Aiming:
    """A store that is run without a judge, and the ops that were done to it."""

    def __init__(self, setup: Setup, chance: Chance) -> None:
        self.subject = PythonStore(setup)
        self.ops: list[Op] = []
        self._slots, self._levels = setup.index_slots, setup.delay_levels
        self._chance = chance
        self._image: StoreImage | None = None
        self._interpreter = interpreter_of(setup, self.subject)
        self._seen = self._interpreter.run(Restart(), 0).seen

    def do(self, op: Op) -> None:
        """Do the op; if it is damage, do it aimed."""
        if not _can_be_aimed(op) or self.subject.is_up:
            self._take(op)
            return
        # Where a start refuses, and what it refused is put back, another may be tried.
        for _ in range(self._chance.pick(TRIES)):
            self._take_aimed(self._alike(op))
            self._take(Restart())
            self._take(Damage("", "restore"))
            if isinstance(self._seen, Skipped):
                return  # it is up
        self._take_aimed(op)

    def _alike(self, op: Damage) -> Damage:
        """The damage with a kind drawn anew, in any file of the same folder."""
        folder, bracket, _ = op.file.partition("[")
        file = f"{folder}[{self._chance.below(FILES_MET)}]" if bracket else op.file
        kinds = KINDS.get(op.kind, (op.kind,))
        return replace(op, file=file, kind=self._chance.pick(kinds))

    def _take_aimed(self, op: Damage) -> None:
        files = self.subject.files()
        self._image = read_store(files, self._image, self._levels)
        path = selected(files, op.file)
        if path is None:
            self._take(op)
            return
        for each in aimed(op, path, self._image, self._slots, self._chance):
            self._take(each)

    def _take(self, op: Op) -> None:
        self._seen = self._interpreter.run(op, len(self.ops)).seen
        self.ops.append(op)


def _can_be_aimed(op: Op) -> TypeGuard[Damage]:
    return isinstance(op, Damage) and op.kind in AIMED
