"""Damage that is aimed by what the files hold."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from crashmq.harness.subjects.interpreter import Interpreter
from crashmq.harness.subjects.python_store import PythonStore
from crashmq.models.files.store_image import StoreImage, read_store
from crashmq.models.ops import (
    Crash,
    Damage,
    During,
    Op,
    PutMessage,
    Restart,
    RunService,
)
from crashmq.models.program import Setup
from crashmq.scenarios.programs.aims import Part, _parts_of, _pieces_of, aimed
from crashmq.scenarios.programs.chance import Chance, SeededChance

PUT = PutMessage("T0", 0, 16, tags="A", keys="one two")
LARGE = PutMessage("T0", 0, 3000)
LOG, NEXT = (f"commitlog/{at:020d}" for at in (0, 4096))
QUEUE = f"consumequeue/T0/0/{0:020d}"
BESIDE = f"consumequeue_ext/T0/0/{0:020d}"
SETUP = Setup(queue_ext_size=200, index_slots=4, index_entries=30)


def stored(*ops: Op) -> StoreImage:
    """A store that was killed after some ops."""
    subject = PythonStore(SETUP)
    interpreter = Interpreter(subject)
    kill = During(RunService("checkpoint"), 1000, Crash("process_kill"))
    for number, op in enumerate((Restart(), *ops, RunService("reput"), kill)):
        interpreter.run(op, number)
    image = read_store(subject.files())
    subject.close()
    return image


IMAGE = stored(PUT, PUT, LARGE, LARGE, PUT)


def pieces(path: str) -> list[tuple[Part, ...]]:
    return list(_pieces_of(path, IMAGE, SETUP.index_slots))


def test_a_log_file_holds_its_records_and_what_closes_it() -> None:
    first, second, large, filler = pieces(LOG)
    begin = large[0].at + IMAGE.commit_log.files[0].records[2].size

    assert first[0] == Part(0, 4)
    assert second[0].at == IMAGE.commit_log.records[1].phy_offset
    assert filler == (
        Part(begin, 4),
        Part(begin + 4, 4),
        Part(begin + 8, 4096 - begin - 8),
        Part(4095, 1),
    )


def test_behind_the_last_record_lies_what_may_be_torn() -> None:
    *_, last, behind = pieces(NEXT)

    assert behind[0] == Part(IMAGE.commit_log.max_phy_offset - 4096, 4)
    assert last[0].at < behind[0].at


def test_the_parts_of_a_record_lie_in_it_and_are_its_fields() -> None:
    record = IMAGE.commit_log.records[0]
    data = IMAGE.files[LOG]
    parts = _parts_of(record, 0)
    names, body = parts[-2:]

    assert bytes(data[body.at : body.at + body.size]) == bytes(record.body)
    assert b"T0" in bytes(data[names.at : names.at + names.size])
    assert names.at + names.size == record.size
    assert all(at >= 0 and at + size <= record.size for at, size in parts)


@pytest.mark.parametrize(
    ("path", "starts"),
    [
        (QUEUE, [0, 20, 40]),
        (BESIDE, [0, 28, 56]),
        ("checkpoint", [0, 512, 1024]),
    ],
)
def test_units_and_slots_are_found_where_they_lie(path: str, starts: list[int]) -> None:
    assert [piece[0].at for piece in pieces(path)][:3] == starts


def test_an_index_file_holds_a_header_slots_in_use_and_entries() -> None:
    (path,) = (path for path in IMAGE.files if path.startswith("index/"))
    header, *rest = pieces(path)
    file = IMAGE.index(SETUP.index_slots).files[0][1]

    assert header[0] == Part(0, 8)
    assert len(rest) == len(file.written_slots) + file.written_entries
    assert rest[-1][0] == Part(file.entry_at(file.written_entries), 4)


def chance() -> Chance:
    return SeededChance(3, 1)


def aims(damage: Damage, path: str, times: int) -> Iterator[tuple[Damage, ...]]:
    one = chance()
    return (aimed(damage, path, IMAGE, SETUP.index_slots, one) for _ in range(times))


def test_a_field_is_hit_as_a_whole_and_by_a_byte_and_twice_at_times() -> None:
    made = list(aims(Damage("commitlog[0]", "zero", 9, 1), LOG, 400))
    places = {(each.at, each.size) for hit in made for each in hit}

    assert {(0, 4), (8, 4)} <= places
    assert any(size == 1 for _, size in places)
    assert {len(hit) for hit in made} == {1, 2}
    assert {each.kind for hit in made for each in hit} == {"zero", "flip"}
    assert all(0 <= at < 4096 for at, _ in places)


def test_a_sector_and_a_cut_keep_their_kind_and_size() -> None:
    for kind in ("unreadable", "truncate"):
        damage = Damage("commitlog[0]", kind, 9, 513)
        for first, *_ in aims(damage, LOG, 50):
            assert (first.kind, first.size) == (kind, 513)


@pytest.mark.parametrize("kind", ["delete", "touch", "restore"])
def test_what_has_no_place_stays_as_it_is(kind: str) -> None:
    damage = Damage("commitlog[0]", kind, 9)  # type: ignore[arg-type]

    assert aimed(damage, LOG, IMAGE, 4, chance()) == (damage,)


def test_a_file_that_nobody_knows_is_aimed_at_as_a_whole() -> None:
    files = {**IMAGE.files, "deletedTopics": b"some words"}
    damage = Damage("deletedTopics", "flip", 0, 8)

    (hit, *_) = aimed(damage, "deletedTopics", read_store(files), 0, chance())

    assert 0 <= hit.at < 10
