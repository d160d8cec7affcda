"""Laws of a store that serves around damage, each seen to fire and to hold."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from written_store import FIRST_MS, record_bytes, slot_bytes

from crashmq.models.appended import Appended
from crashmq.models.files.store_image import (
    Record,
    StoreImage,
    decode_record,
    read_store,
)
from crashmq.models.laws.around import (
    Floors,
    Range,
    Spoilt,
    keeps_what_is_whole,
    pull_goes_around,
    put_spares_what_is_damaged,
    query_goes_around,
    refuses_what_cannot_be_located,
    search_goes_around,
)
from crashmq.models.messages import MessageToPut, message_for
from crashmq.models.observations import (
    Pulled,
    PullStatus,
    Put,
    Queried,
    Refused,
    Searched,
    Started,
)
from crashmq.models.ops import Boundary, PullMessage, PutMessage

MESSAGES = tuple(message_for(PutMessage("T0", 0, 16), 1, n, 0) for n in range(3))


def log_of(messages: tuple[MessageToPut, ...]) -> tuple[bytes, list[Appended]]:
    """The bytes of a log of these messages, and what a model knows of them."""
    log, known = b"", []
    for number, message in enumerate(messages):
        text = "".join(f"{k}\1{v}\2" for k, v in message.properties.items())
        data = record_bytes(
            len(log),
            queue_offset=number,
            body=message.body,
            properties=text.encode(),
            store_ms=FIRST_MS,
        )
        born = message.born_timestamp.to_bytes(8, "big", signed=True)
        data = data[:40] + born + message.born_host + data[56:]
        data = data[:64] + message.store_host + data[72:]
        known.append(Appended(message, len(log), len(data), number))
        log += data
    return log, known


LOG, KNOWN = log_of(MESSAGES)
RECORDS = [decode_record(LOG[a.phy_offset : a.end]) for a in KNOWN]
ENDS = [appended.end for appended in KNOWN]
LOST: Range = (ENDS[0], ENDS[1])


def files(log: bytes) -> StoreImage:
    """A store of one log file whose mark covers all of ``LOG``."""
    checkpoint = bytes(512) + slot_bytes(1, 0, len(LOG))
    checkpoint = checkpoint.ljust(4096, b"\0")
    path = f"commitlog/{0:020d}"
    return read_store({path: log.ljust(4096, b"\0"), "checkpoint": checkpoint})


DAMAGED = files(LOG[: LOST[0]] + bytes(LOST[1] - LOST[0]) + LOG[LOST[1] :])


def test_what_was_written_for_these_tests_is_whole() -> None:
    assert all(a.end == b.phy_offset for a, b in pairwise(KNOWN))
    assert kept(RECORDS) == []


@pytest.mark.parametrize(
    ("found", "start", "broken"),
    [
        (DAMAGED, Started(True, 0, (LOST,)), 0),
        (DAMAGED, Started(True), 1),
        (DAMAGED, Refused("damage"), 1),
        (files(LOG), Started(True), 0),
        (files(LOG), Started(True, 0, (LOST,)), 1),
    ],
)
def test_what_can_be_located_must_be_listed_and_served_around(
    found: StoreImage, start: Started | Refused, broken: int
) -> None:
    broke = refuses_what_cannot_be_located.violations(found, found, start)

    assert len(broke) == broken


def test_what_others_may_have_left_may_be_refused() -> None:
    refused = (files(LOG), files(LOG), Refused("units would go"))

    assert refuses_what_cannot_be_located.violations(*refused)
    assert not refuses_what_cannot_be_located.violations(*refused, is_foreign=True)


def kept(
    records: list[Record],
    *,
    spoilt: tuple[Range, ...] = (),
    listed: tuple[Range, ...] = (),
    durable: int = len(LOG),
    listed_from: int = 0,
) -> list[str]:
    broken = keeps_what_is_whole.violations(
        {record.phy_offset: record for record in records},
        KNOWN,
        (),
        Floors(len(LOG), durable, listed_from),
        Spoilt(4096, True, [*spoilt]),
        listed,
    )
    return [violation.seen for violation in broken]


def test_a_damaged_message_may_be_gone_if_it_is_listed() -> None:
    left = [RECORDS[0], RECORDS[2]]

    assert kept(left, spoilt=(LOST,), listed=(LOST,)) == []
    assert kept(left, spoilt=(LOST,)) == ["gone, and not listed"]


def test_what_may_have_expired_before_the_log_begins_need_not_be_listed() -> None:
    left, first = [RECORDS[1], RECORDS[2]], (0, LOST[0])

    assert kept(left, spoilt=(first,)) == ["gone, and not listed"]
    assert kept(left, spoilt=(first,), listed_from=LOST[0]) == []
    assert kept(left, listed_from=LOST[0]) == ["gone"]


def test_a_message_that_nothing_damaged_must_be_there() -> None:
    left = [RECORDS[0], RECORDS[2]]

    assert kept(left, listed=(LOST,)) == ["gone"]


def test_above_the_mark_damage_takes_what_follows_it() -> None:
    assert kept(RECORDS[:1], spoilt=(LOST,), durable=ENDS[0]) == []
    assert kept(RECORDS[:2], durable=ENDS[0]) == ["gone"]


def test_what_is_whole_is_not_listed_and_is_what_was_put() -> None:
    stranger = replace_body(RECORDS[1])

    assert kept(RECORDS, listed=(LOST,)) == ["listed as damaged"]
    assert len(kept([RECORDS[0], stranger, RECORDS[2]])) == 1
    unknown = RECORDS[2]._replace(phy_offset=9000)
    assert kept([*RECORDS, unknown]) == ["a record of T0"]


def replace_body(record: Record) -> Record:
    return record._replace(body=b"another body 16B")


def test_a_pull_may_pass_over_what_has_expired_and_nothing_else() -> None:
    pull, third = PullMessage("T0", 0, 0), LOG[KNOWN[2].phy_offset : KNOWN[2].end]
    pulled = Pulled("FOUND", 3, 0, 3, (third,))

    def broken(gone_below: int) -> int:
        found = pull_goes_around.violations(pull, pulled, KNOWN, len(LOG), gone_below)
        return len(found)

    assert broken(KNOWN[2].phy_offset) == 0
    assert broken(KNOWN[1].phy_offset) == 1


def test_a_pull_goes_past_what_is_damaged_and_gives_the_rest() -> None:
    whole = [KNOWN[0], KNOWN[2]]
    first, second, third = (LOG[a.phy_offset : a.end] for a in KNOWN)

    def broken(pulled: Pulled, queue: list[Appended], at: int = 0) -> int:
        pull = PullMessage("T0", 0, at)
        return len(pull_goes_around.violations(pull, pulled, queue, len(LOG)))

    assert broken(Pulled("FOUND", 3, 0, 3, (first, third)), whole) == 0
    assert broken(Pulled("FOUND", 3, 0, 3, (third,)), whole, 1) == 0
    assert broken(Pulled("FOUND", 3, 0, 3, (first,)), whole) == 1
    assert broken(Pulled("FOUND", 3, 0, 3, (first, second, third)), whole) == 1
    assert broken(Pulled("FOUND", 3, 0, 3, (third, first)), whole) == 1
    assert broken(Pulled("MESSAGE_WAS_REMOVING", 1, 0, 3), whole, 1) == 1
    assert broken(Pulled("FOUND", 3, 0, 3, (first[:-1], third)), whole) == 1
    assert broken(Pulled("FOUND", 3, 0, 3, (first, third)), KNOWN[:1]) == 1
    other = [replace(KNOWN[0], message=MESSAGES[1]), KNOWN[2]]
    assert broken(Pulled("FOUND", 3, 0, 3, (first, third)), other) == 1


@pytest.mark.parametrize(
    ("status", "tags", "broken"),
    [
        ("MESSAGE_WAS_REMOVING", "*", 0),
        ("NO_MATCHED_MESSAGE", "*", 1),
        ("NO_MATCHED_MESSAGE", "TagA", 0),
        ("FOUND", "*", 1),
    ],
)
def test_a_pull_of_damaged_messages_alone_says_that_they_are_gone(
    status: PullStatus, tags: str, broken: int
) -> None:
    pull, pulled = PullMessage("T0", 0, 1, tags=tags), Pulled(status, 2, 0, 3)

    found = pull_goes_around.violations(pull, pulled, [KNOWN[0], KNOWN[2]], len(LOG))

    assert len(found) == broken


def test_nothing_is_listed_behind_the_file_that_the_mark_lies_in() -> None:
    listed = (LOST, (4096, 8192))

    assert "lists [4096, 8192)" in kept(RECORDS, spoilt=(LOST,), listed=listed)


@pytest.mark.parametrize(("phy_offset", "broken"), [(300, 1), (4096, 0), (-1, 0)])
def test_a_put_spares_a_file_that_has_damage(phy_offset: int, broken: int) -> None:
    spoilt = Spoilt(4096, True, listed=(LOST,))

    answer = Put("PUT_OK", phy_offset, 131, 3)

    assert len(put_spares_what_is_damaged.violations(answer, spoilt)) == broken


@pytest.mark.parametrize(
    ("boundary", "found", "told", "broken"),
    [
        ("LOWER", 2, 20, 0),
        ("LOWER", 1, -1, 0),
        ("LOWER", 3, -1, 1),
        ("LOWER", 0, 10, 1),
        ("LOWER", 2, -1, 1),
        ("UPPER", 1, -1, 0),
        ("UPPER", 0, 10, 0),
        ("UPPER", 2, 20, 1),
    ],
)
def test_a_search_lands_between_what_is_whole(
    boundary: Boundary, found: int, told: int, broken: int
) -> None:
    searched = Searched(found, told, 10)

    seen = search_goes_around.violations(
        searched, 15, boundary, {0: 10, 2: 20}, (0, 2), 10
    )

    assert len(seen) == broken


def test_the_earliest_time_is_that_of_the_first_whole_message() -> None:
    searched = Searched(2, 20, -1)

    assert search_goes_around.violations(searched, 15, "LOWER", {2: 20}, (2,), 20)


def test_a_query_gives_the_newest_that_are_whole() -> None:
    first, _, third = (LOG[a.phy_offset : a.end] for a in KNOWN)
    whole = [RECORDS[0], RECORDS[2]]

    def broken(most: int, *messages: bytes) -> int:
        return len(query_goes_around.violations(Queried(messages), most, whole))

    assert broken(9, first, third) == broken(1, third) == broken(0) == 0
    assert broken(9, third) == broken(9, third, first) == broken(1, first) == 1
    assert broken(9, first[:-1], third) == 1
