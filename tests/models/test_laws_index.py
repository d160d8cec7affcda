from __future__ import annotations

import struct
from dataclasses import replace

import pytest
from written_store import FIRST_MS, record_bytes

from crashmq.models.files.index import guessed_slots, index_hash, read_index
from crashmq.models.files.store_image import Record, decode_record, read_store
from crashmq.models.laws.dispatching import queues_come_before_the_index
from crashmq.models.laws.file_laws import FILE_LAWS
from crashmq.models.laws.index import index_of
from crashmq.models.laws.judged import Judged
from crashmq.models.laws.querying import (
    queried_messages_are_right,
    query_finds_what_a_walk_finds,
)
from crashmq.models.laws.registry import declared_laws
from crashmq.models.observations import Queried

SLOTS, ENTRIES = 5, 6  # five keys fill a file
KEYS = ("one two", "Aa BB", "two", "three", "Aa", "four five")
PATHS = ("index/20231114221320000", "index/20231114221320001")


def a_log() -> tuple[bytes, list[Record]]:
    data, records = b"", []
    for number, keys in enumerate(KEYS):
        record = record_bytes(
            len(data),
            queue_offset=number,
            properties=f"KEYS\x01{keys}\x02".encode(),
            store_ms=FIRST_MS + 700 * number,
        )
        records.append(decode_record(record))
        data += record
    return data.ljust(4096, b"\0"), records


LOG, RECORDS = a_log()
EVERY_KEY = [
    (index_hash(f"T0#{key}"), record)
    for keys, record in zip(KEYS, RECORDS, strict=True)
    for key in keys.split()
]


def index_file(keys: list[tuple[int, Record]]) -> bytes:
    """A file with these keys, by the format's description."""
    slots, entries = [0] * SLOTS, [bytes(20)]
    begin = keys[0][1].store_timestamp
    for number, (key_hash, record) in enumerate(keys, 1):
        slot = key_hash % SLOTS
        seconds = (record.store_timestamp - begin) // 1000
        entries.append(
            struct.pack(">iqii", key_hash, record.phy_offset, seconds, slots[slot])
        )
        slots[slot] = number
    times = (begin, keys[-1][1].store_timestamp)
    offsets = (keys[0][1].phy_offset, keys[-1][1].phy_offset)
    used = sum(slot > 0 for slot in slots)
    header = struct.pack(">qqqqii", *times, *offsets, used, len(keys) + 1)
    data = header + struct.pack(f">{SLOTS}i", *slots) + b"".join(entries)
    return data.ljust(40 + 4 * SLOTS + 20 * ENTRIES, b"\0")


def units() -> bytes:
    data = b"".join(struct.pack(">qiq", r.phy_offset, r.size, 0) for r in RECORDS)
    return data.ljust(200, b"\0")


FILES = {
    "commitlog/00000000000000000000": LOG,
    "consumequeue/T0/0/00000000000000000000": units(),
    PATHS[0]: index_file(EVERY_KEY[:5]),
    PATHS[1]: index_file(EVERY_KEY[5:]),
}


def judged(files: dict[str, bytes], **known: bool) -> Judged:
    image = read_store(files)
    end = image.commit_log.max_phy_offset
    asked = Judged(image, end, index_slots=SLOTS, keeps_index=True)
    return replace(asked, **known)  # type: ignore[arg-type]  # all of them are bool


def broken(files: dict[str, bytes], **known: bool) -> set[str]:
    asked = judged(files, **known)
    laws = declared_laws()
    of_files = [laws[f"IX-{number}"] for number in range(3, 10)]
    return {law.id for law in of_files if law.violations(asked)}


def patched(path: str, at: int, data: bytes) -> dict[str, bytes]:
    old = FILES[path]
    return {**FILES, path: old[:at] + data + old[at + len(data) :]}


def with_index_time(files: dict[str, bytes], ms: int) -> dict[str, bytes]:
    checkpoint = struct.pack(">5q", FIRST_MS, FIRST_MS, ms, 0, 0).ljust(4096, b"\0")
    return {**files, "checkpoint": checkpoint}


def test_a_right_index_breaks_no_law() -> None:
    assert broken(FILES) == set()
    assert broken(with_index_time(FILES, FIRST_MS + 1500), clean=False) == set()


@pytest.mark.parametrize("units_left", range(len(KEYS) + 1))
def test_the_index_lists_nothing_that_its_queue_does_not(units_left: int) -> None:
    short = units()[: 20 * units_left].ljust(200, b"\0")
    image = read_store({**FILES, "consumequeue/T0/0/00000000000000000000": short})

    law, last = queues_come_before_the_index, RECORDS[units_left - 1].phy_offset
    assert len(law.violations(image, SLOTS, -1)) == len(KEYS) - units_left
    # What a start has found may lack its unit.
    assert not law.violations(image, SLOTS, RECORDS[-1].phy_offset)
    if units_left:
        left = law.violations(image, SLOTS, last)
        assert len(left) == len(KEYS) - units_left


def test_no_index_is_asked_for_where_none_is_kept() -> None:
    without = {path: data for path, data in FILES.items() if path not in PATHS}

    assert broken(without) == {"IX-6"}
    assert broken(without, keeps_index=False) == set()


@pytest.mark.parametrize("at", [7, 15, 23, 31, 35])
def test_a_header_that_is_no_recount_breaks_ix_3(at: int) -> None:
    assert "IX-3" in broken(patched(PATHS[0], at, b"\x7b"))


def test_a_header_that_counts_too_few_or_too_many_breaks_ix_3() -> None:
    assert "IX-3" in broken(patched(PATHS[0], 36, struct.pack(">i", 4)))
    assert "IX-3" in broken(patched(PATHS[0], 36, struct.pack(">i", 400)))


@pytest.mark.parametrize("at", [0, 11, 15])
def test_an_entry_that_is_no_key_of_the_log_breaks_ix_4(at: int) -> None:
    assert "IX-4" in broken(patched(PATHS[0], 60 + 20 * 2 + at, b"\x7b"))


def test_a_key_listed_twice_breaks_ix_4_but_in_a_store_of_rocketmqs() -> None:
    doubled = {**FILES, PATHS[1]: index_file([EVERY_KEY[4], *EVERY_KEY[5:]])}

    assert broken(doubled) == {"IX-4"}
    assert broken(doubled, stale_allowed=True, keeps_index=False) == set()


def test_an_entry_past_the_log_breaks_ix_4() -> None:
    lost = {**FILES, "commitlog/00000000000000000000": bytes(4096)}

    assert "IX-4" in broken(lost)


def test_an_entry_of_no_key_breaks_ix_4_in_a_store_of_rocketmqs_too() -> None:
    wrong = patched(PATHS[0], 60 + 20 * 2, b"\x7b")

    assert "IX-4" in broken(wrong, stale_allowed=True)


@pytest.mark.parametrize("link", [-1, 3, 4])
def test_a_link_that_does_not_lead_back_breaks_ix_5(link: int) -> None:
    wrong = patched(PATHS[0], 60 + 20 * 3 + 16, struct.pack(">i", link))

    assert broken(wrong) == {"IX-5"}


@pytest.mark.parametrize("slot", range(SLOTS))
def test_a_slot_that_names_another_entry_breaks_ix_5(slot: int) -> None:
    wrong = patched(PATHS[0], 40 + 4 * slot, struct.pack(">i", 9))

    assert broken(wrong) == {"IX-5"}


def test_a_key_that_is_not_listed_breaks_ix_6_once_it_is_dispatched() -> None:
    short = {**FILES, PATHS[1]: index_file(EVERY_KEY[5:-1])}
    asked = judged(short)
    undispatched = replace(asked, reput_from_offset=RECORDS[-1].phy_offset)

    assert broken(short) == {"IX-6"}
    assert not declared_laws()["IX-6"].violations(undispatched)


def test_a_strange_name_or_length_breaks_ix_7() -> None:
    assert broken({**FILES, "index/notes": b""}) == {"IX-7"}
    longer = {**FILES, PATHS[1]: FILES[PATHS[1]] + bytes(20)}
    assert broken(longer) == {"IX-7"}


def test_a_file_behind_one_that_is_not_full_breaks_ix_7() -> None:
    files = {
        **FILES,
        PATHS[0]: index_file(EVERY_KEY[:4]),
        PATHS[1]: index_file(EVERY_KEY[4:9]),
    }

    assert broken(files) == {"IX-7"}


def test_a_file_that_nobody_fills_breaks_ix_9_where_the_disk_failed() -> None:
    files = {
        **FILES,
        PATHS[0]: index_file(EVERY_KEY[:4]),
        PATHS[1]: index_file(EVERY_KEY[4:9]),
    }
    crashed = replace(judged(files, clean=False), reput_from_offset=None)

    assert broken(files, clean=False) == {"IX-9"}
    assert not declared_laws()["IX-9"].violations(crashed)


def test_an_empty_file_after_a_crash_breaks_no_law() -> None:
    files = {**FILES, "index/20231114221320002": b""}

    crashed = replace(judged(files, clean=False), reput_from_offset=None)

    assert broken(files) == {"IX-7"}
    assert not [law for law in FILE_LAWS if law.violations(crashed)]


@pytest.mark.parametrize("at", [24, 36, 52, 88, 100, 136])
def test_damage_in_a_file_that_had_ended_breaks_ix_8_after_a_crash_too(at: int) -> None:
    damaged = patched(PATHS[0], at, struct.pack(">i", 0x01010101))

    first_has_ended = FIRST_MS + 3500  # and the other, which is not full, has not

    assert broken(with_index_time(FILES, first_has_ended), clean=False) == set()
    assert broken(with_index_time(damaged, first_has_ended), clean=False) == {"IX-8"}
    assert broken(damaged, clean=False) == set()


def test_a_file_that_had_ended_and_is_not_full_breaks_ix_8() -> None:
    both_have_ended = with_index_time(FILES, FIRST_MS + 3501)

    assert broken(both_have_ended, clean=False) == {"IX-8"}


def test_entries_of_expired_records_are_nobodys() -> None:
    name = f"commitlog/{4096:020d}"
    expired = {name: bytes(4096), PATHS[0]: FILES[PATHS[0]]}

    assert broken(expired) == set()


def test_how_many_slots_a_file_has_is_found_out() -> None:
    assert guessed_slots(FILES[PATHS[0]]) == SLOTS
    assert guessed_slots(bytes(len(FILES[PATHS[0]]))) == 0
    assert guessed_slots(b"short") == 0
    image = read_store(FILES)
    assert index_of(Judged(image)) == read_index(FILES, SLOTS)


def answer(*numbers: int) -> Queried:
    data = [LOG[r.phy_offset : r.end] for r in RECORDS]
    return Queried(tuple(data[number] for number in numbers))


def is_right(queried: Queried, key: str = "two", until_ms: int = 1 << 62) -> bool:
    by_offset = {record.phy_offset: record for record in RECORDS}
    law = queried_messages_are_right
    return not law.violations(queried, "T0", key, (0, until_ms), by_offset)


def test_an_answer_of_other_messages_breaks_ix_1() -> None:
    assert is_right(answer(0, 2))
    assert not is_right(answer(0, 3))
    assert not is_right(answer(2, 0))
    assert not is_right(answer(0, 0))
    assert not is_right(answer(0, 2), until_ms=FIRST_MS)
    assert not is_right(Queried((b"no record",)))
    assert not is_right(answer(1), key="Aa BB")


def test_an_answer_that_lacks_a_message_breaks_ix_2() -> None:
    law = query_finds_what_a_walk_finds
    all_of_them = [record.phy_offset for record in RECORDS]

    assert not law.violations(answer(0, 1), 9, all_of_them[:2], all_of_them[:2])
    assert not law.violations(answer(1), 1, all_of_them[:2], all_of_them[:2])
    assert not law.violations(answer(), 0, all_of_them, all_of_them)
    assert not law.violations(answer(0, 1), 9, all_of_them[:1], all_of_them[:2])
    assert law.violations(answer(0), 9, all_of_them[:2], all_of_them[:2])
    assert law.violations(answer(0), 1, all_of_them[:2], all_of_them[:2])
