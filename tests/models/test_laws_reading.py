from __future__ import annotations

from dataclasses import replace

import pytest
from written_store import record_bytes

from crashmq.models.appended import Appended
from crashmq.models.knowledge.reference import VisibleQueue
from crashmq.models.laws.reading import (
    looked_up_message_is_right,
    pull_is_answered_right,
    pulled_messages_are_right,
    searched_time_is_found,
    told_times_are_right,
)
from crashmq.models.messages import message_for
from crashmq.models.observations import Looked, Pulled, Searched
from crashmq.models.ops import Boundary, PutMessage

TIMES = (0, 16, 38, 39, 59, 59)  # of the store reference, measured on RocketMQ
MESSAGE = message_for(PutMessage("T0", 0, 16), 1, 0, 0)
RECORD = record_bytes(
    0, body=MESSAGE.body, properties=f"UNIQ_KEY\x01{MESSAGE.unique_key}\x02".encode()
)
# Of the message alone are when and where it was born, and who stores it.
RECORD = (
    RECORD[:40]
    + MESSAGE.born_timestamp.to_bytes(8, "big")
    + MESSAGE.born_host
    + RECORD[56:64]
    + MESSAGE.store_host
    + RECORD[72:]
)
LOG = [Appended(MESSAGE, 0, len(RECORD), 0)]


def test_a_pull_may_pass_over_what_goes_while_it_reads_and_nothing_else() -> None:
    gone = replace(LOG[0], message=replace(MESSAGE, body=b"gone"), phy_offset=-100)
    queue = [gone, replace(LOG[0], queue_offset=1)]
    pulled = Pulled("FOUND", 2, 0, 2, (RECORD[:20] + bytes(7) + b"\x01" + RECORD[28:],))

    assert not pulled_messages_are_right.violations(pulled, 0, queue, "*", 0)
    assert pulled_messages_are_right.violations(pulled, 0, queue, "*", -100)


@pytest.mark.parametrize(
    ("memory_from", "size", "most"), [(0, 100, 32), (9999, 100, 8), (0, 26_000, 10)]
)
def test_a_pull_ends_after_as_many_messages_or_bytes_as_rocketmq_s(
    memory_from: int, size: int, most: int
) -> None:
    messages = [Appended(MESSAGE, size * n, size, n) for n in range(40)]
    queue = VisibleQueue(messages, 0, 40)

    def is_right(count: int) -> bool:
        pulled = Pulled("FOUND", count, 0, 40, (RECORD,) * count)
        law = pull_is_answered_right
        return not law.violations(pulled, 0, 64, queue, 300_000, "*", memory_from)

    assert [count for count in range(1, 41) if is_right(count)] == [most]


@pytest.mark.parametrize(
    ("at_ms", "lower", "upper"),
    [(5, 1, 0), (38, 2, 2), (43, 4, 3), (59, 4, 5), (159, 6, 5), (-5, 0, 0)],
)
def test_a_search_must_find_what_rocketmq_finds(
    at_ms: int, lower: int, upper: int
) -> None:
    answers: tuple[tuple[Boundary, int], ...] = (("LOWER", lower), ("UPPER", upper))
    for boundary, expected in answers:
        for answer in range(-1, 8):
            broken = searched_time_is_found.violations(
                Searched(answer + 3), at_ms, boundary, 3, TIMES
            )
            assert bool(broken) == (answer != expected)


@pytest.mark.parametrize(
    ("message", "phy_offset"), [(RECORD, 0), (None, 7), (None, len(RECORD)), (None, -1)]
)
def test_a_look_is_right_at_a_begin_and_nowhere_else(
    message: bytes | None, phy_offset: int
) -> None:
    looked = Looked(message)

    assert looked_up_message_is_right.violations(looked, phy_offset, LOG) == []


@pytest.mark.parametrize(
    ("message", "phy_offset", "seen"),
    [
        (None, 0, "none"),
        (RECORD, 7, "bytes"),
        (RECORD[:-1], 0, "size field"),
        (record_bytes(0, body=b"another"), 0, "its body is not that of"),
    ],
)
def test_a_look_must_not_miss_invent_cut_or_mix_up_a_message(
    message: bytes | None, phy_offset: int, seen: str
) -> None:
    looked = Looked(message)

    (broken,) = looked_up_message_is_right.violations(looked, phy_offset, LOG)

    assert seen in broken.seen


def test_a_look_is_held_against_the_very_message_that_was_appended() -> None:
    other = replace(MESSAGE, topic="T1")

    assert looked_up_message_is_right.violations(
        Looked(RECORD), 0, [Appended(other, 0, len(RECORD), 0)]
    )


@pytest.mark.parametrize(
    ("searched", "broken"),
    [
        (Searched(7, 16, 0), 0),
        (Searched(7, 38, 0), 1),
        (Searched(7, 16, 1), 1),
        (Searched(12, -1, 0), 0),
        (Searched(12, 59, 0), 1),
        (Searched(5, 0, 0), 1),
        (Searched(7), 0),
    ],
)
def test_a_time_that_is_not_its_records_breaks_rd_8(
    searched: Searched, broken: int
) -> None:
    assert len(told_times_are_right.violations(searched, 6, TIMES, 0)) == broken
