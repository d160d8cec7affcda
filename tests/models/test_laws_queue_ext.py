"""What an address leads to is its record's, and a breach is told where it is."""

from __future__ import annotations

import struct

from damaged_store import judged
from written_store import FIRST_MS, WrittenStore, patched, queue_path, unit_bytes

from crashmq.models.files.bloom_bits import bits_of
from crashmq.models.files.filters import BitMapFilters
from crashmq.models.laws.queue_ext import (
    addresses_lead_to_their_records,
    bit_maps_name_no_group_in_vain,
    nothing_lies_behind_the_last_address,
)
from crashmq.models.limits import FILTER_BITS
from crashmq.models.verdict import Violation

COUNT = 6
EXT_SIZE = 24
Q0, EXT = queue_path(), "consumequeue_ext/T0/0/00000000000000000000"


def ext_unit(number: int) -> bytes:
    """Without tags, and with a bit map of four bytes."""
    return struct.pack(">hqqh4s", EXT_SIZE, 0, FIRST_MS + number, 4, b"bits")


def addressed_files() -> dict[str, bytes]:
    """Six records of one queue, each unit with an address, and what lies there."""
    store = WrittenStore()
    for _ in range(COUNT):
        store.put(body_size=10)
    store.put("other")
    files = store.files()
    addresses = [number * EXT_SIZE - (1 << 63) for number in range(COUNT)]
    units = b"".join(map(unit_bytes, *zip(*store.records, strict=True), addresses))
    beside = b"".join(map(ext_unit, range(COUNT))).ljust(512, b"\0")
    other = {"consumequeue_ext/other/0/00000000000000000000": bytes(512)}
    return {**patched(files, Q0, 0, units), EXT: beside, **other}


FILES = addressed_files()


def told(files: dict[str, bytes], *, crashed: bool = False) -> list[Violation]:
    asked = judged(files, clean=not crashed, whole_sectors=crashed)
    return addresses_lead_to_their_records.violations(asked)


def test_what_lies_beside_a_queue_as_it_was_put_is_right() -> None:
    assert told(FILES) == []
    assert told(FILES, crashed=True) == []


def test_a_wrong_unit_beside_the_queue_is_told_there() -> None:
    (found,) = told(patched(FILES, EXT, 2 * EXT_SIZE + 10, b"?"))

    assert found.where == f"{EXT} byte 48"
    assert f"{Q0} byte 40 (queue_offset 2) leads there" in found.expected


def test_an_address_amid_a_unit_is_told_in_the_queue() -> None:
    (found,) = told(patched(FILES, Q0, 2 * 20 + 19, b"\x31"))

    assert found.where == f"{Q0} byte 40 (queue_offset 2)"
    assert f"{EXT} byte 49" in found.seen


def test_the_address_of_another_unit_is_told_in_the_queue() -> None:
    (found,) = told(patched(FILES, Q0, 2 * 20 + 12, FILES[Q0][32:40]))

    assert found.where == f"{Q0} byte 40 (queue_offset 2)"
    assert "another record's unit" in found.seen


def test_files_that_are_gone_are_told_once() -> None:
    (found,) = told({path: data for path, data in FILES.items() if path != EXT})

    assert found.where == "consumequeue_ext/T0/0"
    assert "6 units" in found.seen


def test_after_a_crash_a_later_unit_of_the_sector_settles_those_before_it() -> None:
    amid = patched(FILES, EXT, 2 * EXT_SIZE + 10, b"?")
    last = patched(FILES, EXT, (COUNT - 1) * EXT_SIZE + 10, b"?")

    assert [found.where for found in told(amid, crashed=True)] == [f"{EXT} byte 48"]
    assert told(last, crashed=True) == []


def left_over(files: dict[str, bytes], *, ext_size: int = 512) -> list[Violation]:
    asked = judged(files, ext_size=ext_size)
    return nothing_lies_behind_the_last_address.violations(asked)


def test_a_unit_that_nothing_leads_to_is_left_over() -> None:
    (found,) = left_over(patched(FILES, EXT, COUNT * EXT_SIZE, ext_unit(COUNT)))

    assert found.where == f"{EXT} byte 144 (address 144)"
    assert left_over(FILES) == []


def test_all_is_left_over_beside_a_queue_that_leads_nowhere() -> None:
    other = "consumequeue_ext/other/0/00000000000000000000"
    (found,) = left_over(patched(FILES, other, 0, ext_unit(0)))

    assert found.where == f"{other} byte 0 (address 0)"


def test_a_file_behind_that_of_the_last_address_holds_nothing() -> None:
    behind = "consumequeue_ext/T0/0/00000000000000000512"

    assert left_over(FILES | {behind: bytes(512)}) == []
    (found,) = left_over(FILES | {behind: ext_unit(0).ljust(512, b"\0")})
    assert found.where == f"{behind} byte 0 (address 512)"


def test_nothing_is_asked_where_nobody_knows_of_an_extension() -> None:
    files = patched(FILES, EXT, COUNT * EXT_SIZE, ext_unit(COUNT))

    assert left_over(files, ext_size=0) == []


def in_vain(bit_map: bytes, filters: BitMapFilters | None) -> list[Violation]:
    """What is told if the third unit's bit map, of 32 bits, is this one."""
    files = FILES
    for number in range(COUNT):
        told = bit_map if number == 2 else bytes(4)
        files = patched(files, EXT, number * EXT_SIZE + 20, told)
    asked = judged(files, ext_size=512, filters=filters)
    return bit_maps_name_no_group_in_vain.violations(asked)


def filters_of(*rows: tuple[str, str, str]) -> BitMapFilters:
    """Filters by group, topic and expression."""
    return BitMapFilters(
        frozenset([((group, topic), one) for group, topic, one in rows])
    )


def bit_map_of(group: str) -> bytes:
    """The bit map in which one group is named."""
    bits = sum({1 << bit for bit in bits_of(group, "T0", FILTER_BITS, 32)})
    return bits.to_bytes(4, "little")


def test_a_bit_map_names_groups_that_may_want_its_record() -> None:
    wants = filters_of(("g", "T0", "a IS NULL"), ("h", "T0", "a > 5"))

    assert in_vain(bit_map_of("g"), wants) == []
    (found,) = in_vain(bit_map_of("h"), wants)
    assert found.where == f"{Q0} byte 40 (queue_offset 2)"


def test_the_filter_of_another_topic_names_no_group() -> None:
    elsewhere = filters_of(("g", "T1", "a IS NULL"))

    assert len(in_vain(bit_map_of("g"), elsewhere)) == 1
    assert in_vain(bytes(4), elsewhere) == []


def test_a_group_that_may_ask_for_anything_is_never_named_in_vain() -> None:
    assert in_vain(bit_map_of("g"), BitMapFilters(open_groups=frozenset({"g"}))) == []
    assert in_vain(bit_map_of("g"), None) == []
