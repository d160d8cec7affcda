"""Classes of states that starts read alike: a partition, and as good as each state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crashmq.harness.disk.inode import Inode
from crashmq.harness.disk.read_tracking import Read
from crashmq.harness.disk.units import LeftFile, Unit
from crashmq.harness.explore.certificate import Certificate
from crashmq.harness.explore.closing import BODY_SIZE_MAX, READ_WINDOW, to_close
from crashmq.harness.explore.crash_point import record
from crashmq.harness.explore.explorer import Explorer
from crashmq.harness.explore.limits import Limits
from crashmq.harness.explore.read_classes import ReadClasses, Versions
from crashmq.harness.mutants.mutants import MUTANTS
from crashmq.harness.mutants.mutation import applied
from crashmq.models.ops import During, PutBatch, PutMessage, Restart, RunService
from crashmq.models.program import Program, Setup

SECTOR = 4
READS = (
    Read("a", 0, 6),
    Read("b", 2, 4),
    Read("a", 3, 12, (lambda data: sum(data) % 3,)),
    Read("b", 0, 8, (max,)),
    Read("a", 8, 11),
    Read("c", 0, 4),
)


def file_of(path: str, sectors: Sequence[Sequence[bytes]]) -> LeftFile:
    units = [
        (Unit(path, place, len(versions)), list(versions))
        for place, versions in enumerate(sectors)
        if len(versions) > 1
    ]
    content = b"".join(versions[0] for versions in sectors)
    return LeftFile(0, Inode(path), False, (path,), content, tuple(units))


def content_of(file: LeftFile, versions: Sequence[int]) -> bytes:
    content = bytearray(file.content)
    for (unit, of), version in zip(file.units, versions, strict=True):
        content[unit.place * SECTOR : (unit.place + 1) * SECTOR] = of[version]
    return bytes(content)


def toy_start(files: Mapping[str, bytes]) -> tuple[list[Read], list[Hashable]]:
    """A start whose next read follows from what it has read."""
    reads, answers, at = list[Read](), list[Hashable](), 0
    while at < len(READS):
        read = READS[at]
        reads.append(read)
        answers.append(read.answer(files[read.path]))
        at += 1 + len(repr(answers[-1])) % 2
    return reads, answers


def of_files(files: Sequence[LeftFile], vector: Versions) -> dict[str, bytes]:
    found, begin = {"c": b"same"}, 0
    for file in files:
        end = begin + len(file.units)
        found[file.paths[0]] = content_of(file, vector[begin:end])
        begin = end
    return found


sectors = st.lists(
    st.lists(st.binary(min_size=SECTOR, max_size=SECTOR), min_size=1, max_size=3),
    min_size=2,
    max_size=3,
)


@pytest.mark.slow
@given(sectors, sectors)
def test_classes_are_the_states_by_what_a_start_reads(
    of_a: list[list[bytes]], of_b: list[list[bytes]]
) -> None:
    files = [file_of("a", of_a), file_of("b", of_b)]
    units = [unit for file in files for unit, _ in file.units]
    each = [
        repr(toy_start(of_files(files, vector)))
        for vector in product(*(range(unit.versions) for unit in units))
    ]
    run: list[str] = []

    def reads_of(vector: Versions) -> Sequence[Read]:
        run.append(repr(toy_start(of_files(files, vector))))
        return toy_start(of_files(files, vector))[0]

    found = list(ReadClasses(files, SECTOR).all(reads_of))

    assert all(one is not None for one in found)
    sizes = {name: one.size for name, one in zip(run, found, strict=True) if one}
    assert sizes == Counter(each)


def test_a_class_names_its_oldest_and_newest_state() -> None:
    file = file_of("a", [[b"aaaa", b"bbbb", b"cccc"]])

    (one,) = ReadClasses([file], SECTOR).all(lambda _: ())

    assert one is not None
    assert (one.size, one.others) == (3, ((0,),))


def test_without_the_reads_of_a_state_nothing_is_closed() -> None:
    file = file_of("a", [[b"aaaa", b"bbbb"]])

    assert list(ReadClasses([file], SECTOR).all(lambda _: None)) == [None]


OPS = (
    PutMessage("T0", 0, 16),
    PutMessage("T1", 0, 700),
    RunService("reput"),
)


def explored(limits: Limits, mutant: str) -> tuple[Certificate, set[str]]:
    with applied(MUTANTS[mutant]) if mutant else nullcontext():
        explorer = Explorer("power_loss", replace(limits, depth=1, states_max=0))
        explorer.explore(record(Program(Setup(), OPS), "power_loss"))
    return explorer.counts, {one.law for one in explorer.found.values()}


@pytest.mark.slow
@pytest.mark.parametrize("mutant", ["", "R01"])
def test_what_is_closed_by_classes_is_what_each_state_tells(mutant: str) -> None:
    each, laws = explored(Limits(), mutant)
    by_class, laws_by_class = explored(Limits(exact_max=1, classes_max=4096), mutant)

    assert laws_by_class == laws
    assert bool(laws) == bool(mutant)
    assert (by_class.space, by_class.open) == (each.space, each.open) == (each.space, 0)
    assert by_class.visited < each.visited


def test_a_history_to_close_has_short_records_and_small_reads() -> None:
    ops = (
        During(PutMessage("T0", 0, 5000), 1, Restart()),
        PutBatch("T0", 0, (10, 9000)),
    )

    closing = to_close(Program(Setup(), ops))

    assert closing.setup.read_window == READ_WINDOW
    assert closing.ops == (
        During(PutMessage("T0", 0, BODY_SIZE_MAX), 1, Restart()),
        PutBatch("T0", 0, (10, BODY_SIZE_MAX)),
    )
