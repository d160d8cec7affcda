from __future__ import annotations

from dataclasses import replace

import pytest
from written_store import record_bytes

from crashmq.models.appended import Appended
from crashmq.models.files.store_image import Record
from crashmq.models.knowledge.reads_beside import LogBetween, QueueBetween, bounds
from crashmq.models.laws.between import (
    filtered_pull_sees_a_moment,
    lookup_sees_a_moment,
    pull_sees_a_moment,
    query_misses_nothing,
    query_returns_what_was_put,
    reads_never_go_back,
    search_sees_a_moment,
)
from crashmq.models.messages import MessageToPut, message_for
from crashmq.models.observations import Looked, Pulled, Queried, Searched
from crashmq.models.ops import (
    Boundary,
    LookMessage,
    PullFiltered,
    PullMessage,
    PutMessage,
)

UNITS = 10


def message(number: int, tags: str = "") -> MessageToPut:
    return message_for(PutMessage("T0", 0, 16, tags), 1, number, 0, 0)


def record(number: int, tags: str = "") -> bytes:
    said = message(number, tags)
    text = "".join(f"{k}\x01{v}\x02" for k, v in said.properties.items())
    data = record_bytes(0, body=said.body, properties=text.encode())
    size = len(data)
    return (
        data[:20]
        + number.to_bytes(8, "big")
        + (number * size).to_bytes(8, "big")
        + data[36:40]
        + said.born_timestamp.to_bytes(8, "big")
        + said.born_host
        + data[56:64]
        + said.store_host
        + data[72:]
    )


def appended(number: int, tags: str = "") -> Appended:
    size = len(record(number, tags))
    return Appended(message(number, tags), number * size, size, number)


RECORDS = tuple(map(record, range(5)))
SIZE = len(RECORDS[0])
FIVE = [*map(appended, range(5))]
PULL = PullMessage("T0", 0, 1)
LOG = LogBetween((SIZE, 2 * SIZE), (3 * SIZE, 4 * SIZE), (0, 0), 4 * SIZE)


def queue(
    highs: tuple[int, int] = (3, 5), lows: tuple[int, int] = (0, 0)
) -> QueueBetween:
    gone = FIVE[lows[1]].phy_offset
    return QueueBetween(FIVE[: highs[1]], lows, highs, gone, (0, 0))


def is_right(
    pulled: Pulled,
    asked: PullMessage = PULL,
    *,
    highs: tuple[int, int] = (3, 5),
    lows: tuple[int, int] = (0, 0),
) -> bool:
    between = queue(highs, lows)
    return not pull_sees_a_moment.violations(pulled, asked, [between], UNITS)


@pytest.mark.parametrize(
    ("pulled", "right"),
    [
        (Pulled("FOUND", 3, 0, 3, RECORDS[1:3]), True),
        (Pulled("FOUND", 5, 0, 3, RECORDS[1:5]), True),  # the units were read later
        (Pulled("FOUND", 5, 0, 5, RECORDS[1:5]), True),
        (Pulled("FOUND", 3, 0, 5, RECORDS[1:3]), False),  # it stops before what it saw
        (Pulled("FOUND", 2, 0, 3, RECORDS[1:2]), False),  # before what was there
        (Pulled("FOUND", 6, 0, 3, RECORDS[1:3]), False),
        (Pulled("FOUND", 5, 0, 3, RECORDS[1:3]), False),  # it passes messages over
        (Pulled("FOUND", 3, 0, 3, RECORDS[2:4]), False),
        (Pulled("FOUND", 3, 0, 3, RECORDS[2:0:-1]), False),
        (Pulled("FOUND", 3, 0, 3, RECORDS[1:4]), False),
        (Pulled("FOUND", 3, 0, 3, (RECORDS[1], RECORDS[2][:-1] + b"\3")), False),
        (Pulled("FOUND", 3, 0, 2, RECORDS[1:3]), False),
        (Pulled("FOUND", 3, 0, 6, RECORDS[1:3]), False),
        (Pulled("FOUND", 3, 1, 3, RECORDS[1:3]), False),
        (Pulled("FOUND", 1, 0, 3), False),
        (Pulled("NO_MATCHED_MESSAGE", 3, 0, 3), False),
        (Pulled("MESSAGE_WAS_REMOVING", 3, 0, 3), False),
        (Pulled("OFFSET_FOUND_NULL", 10, 0, 3), False),
        (Pulled("OFFSET_TOO_SMALL", 0, 0, 3), False),
        (Pulled("OFFSET_OVERFLOW_ONE", 1, 0, 3), False),
        (Pulled("NO_MATCHED_LOGIC_QUEUE", 0, 0, 0), False),
    ],
)
def test_a_pull_is_what_some_moment_of_its_queue_makes_it(
    pulled: Pulled, right: bool
) -> None:
    assert is_right(pulled) is right


@pytest.mark.parametrize(
    ("pulled", "right"),
    [
        (Pulled("OFFSET_TOO_SMALL", 2, 2, 3), True),
        (Pulled("OFFSET_TOO_SMALL", 3, 2, 3), False),
        (Pulled("OFFSET_TOO_SMALL", 1, 1, 3), False),  # one is not before one
        (Pulled("FOUND", 3, 2, 3, RECORDS[1:3]), True),
        (Pulled("FOUND", 3, 1, 3, RECORDS[2:3]), True),  # it went while this was read
        (Pulled("FOUND", 4, 2, 3, RECORDS[1:2]), False),
        (Pulled("OFFSET_FOUND_NULL", 10, 2, 3), True),
        (Pulled("OFFSET_FOUND_NULL", 11, 2, 3), False),
        (Pulled("MESSAGE_WAS_REMOVING", 2, 2, 3), False),  # the next one is there
        (Pulled("NO_MATCHED_MESSAGE", 3, 2, 3), False),
    ],
)
def test_what_a_pull_passes_over_has_expired_meanwhile(
    pulled: Pulled, right: bool
) -> None:
    assert is_right(pulled, lows=(0, 2)) is right


def test_a_queue_may_be_unknown_as_long_as_it_may_have_been_empty() -> None:
    none = Pulled("NO_MATCHED_LOGIC_QUEUE", 0, 0, 0)

    assert is_right(none, highs=(0, 2))
    assert not is_right(none, highs=(1, 2))
    assert not is_right(Pulled("NO_MESSAGE_IN_QUEUE", 1, 0, 0), highs=(0, 2))


def test_a_pull_at_or_behind_an_end_says_which() -> None:
    at_end, behind = PullMessage("T0", 0, 4), PullMessage("T0", 0, 9)

    assert is_right(Pulled("OFFSET_OVERFLOW_ONE", 4, 0, 4), at_end)
    assert is_right(Pulled("OFFSET_OVERFLOW_BADLY", 3, 0, 3), at_end)
    assert not is_right(Pulled("OFFSET_OVERFLOW_BADLY", 4, 0, 4), at_end)
    assert not is_right(Pulled("OFFSET_OVERFLOW_ONE", 9, 0, 4), behind)
    assert not is_right(Pulled("OFFSET_OVERFLOW_BADLY", 9, 0, 4), behind)


def test_a_pull_passes_over_what_has_other_tags_alone() -> None:
    asked = PullMessage("T0", 0, 0, tags="TagA")
    kinds = ["TagA", "TagB", "TagA"]
    messages = [appended(n, tags) for n, tags in enumerate(kinds)]
    data = [record(n, tags) for n, tags in enumerate(kinds)]
    between = QueueBetween(messages, (0, 0), (3, 3), 0, (0, 0))

    def breaks(*given: bytes) -> bool:
        pulled = Pulled("FOUND", 3, 0, 3, given)
        return bool(pull_sees_a_moment.violations(pulled, asked, [between], UNITS))

    assert not breaks(data[0], data[2])
    assert breaks(data[0])
    assert breaks(*data)


@pytest.mark.parametrize(("memory_from", "most"), [((0, 0), 32), ((10**9, 10**9), 8)])
def test_a_pull_ends_where_it_is_full_and_not_before(
    memory_from: tuple[int, int], most: int
) -> None:
    data = [*map(record, range(40))]
    messages = [*map(appended, range(40))]
    between = QueueBetween(messages, (0, 0), (40, 40), 0, memory_from)

    def breaks(count: int) -> bool:
        pulled = Pulled("FOUND", count, 0, 40, tuple(data[:count]))
        asked = PullMessage("T0", 0, 0, 64)
        return bool(pull_sees_a_moment.violations(pulled, asked, [between], 100))

    assert [count for count in range(1, 41) if not breaks(count)] == [most]


def test_a_pull_for_no_message_looks_at_none() -> None:
    asked = PullMessage("T0", 0, 1, 0)

    assert is_right(Pulled("NO_MATCHED_MESSAGE", 1, 0, 3), asked)
    assert not is_right(Pulled("NO_MATCHED_MESSAGE", 2, 0, 3), asked)


def test_a_put_without_an_answer_may_be_read() -> None:
    pulled = Pulled("FOUND", 4, 0, 4, RECORDS[1:4])
    known = QueueBetween(FIVE[:3], (0, 0), (3, 4), 0, (0, 0), [message(3)])
    other = QueueBetween(FIVE[:3], (0, 0), (3, 4), 0, (0, 0), [message(4)])

    assert not pull_sees_a_moment.violations(pulled, PULL, [known], UNITS)
    assert pull_sees_a_moment.violations(pulled, PULL, [other], UNITS)


def test_beside_a_deletion_a_read_meets_the_queue_of_one_side_of_it() -> None:
    before = replace(queue(highs=(1, 3)), vanishes=True)
    nothing = QueueBetween([], (0, 0), (0, 0), 0, (0, 0))

    def right(pulled: Pulled) -> bool:
        law = pull_sees_a_moment
        return not law.violations(pulled, PULL, [before, nothing], UNITS)

    assert right(Pulled("FOUND", 3, 0, 3, RECORDS[1:3]))
    assert right(Pulled("FOUND", 2, 0, 2, RECORDS[1:2]))
    assert right(Pulled("NO_MATCHED_LOGIC_QUEUE", 0, 0, 0))
    assert not right(Pulled("FOUND", 3, 0, 3, RECORDS[1:2]))
    assert not right(Pulled("FOUND", 3, 0, 3, (record(9),)))
    assert not right(Pulled("OFFSET_OVERFLOW_BADLY", 0, 0, 0))
    assert right(Pulled("OFFSET_FOUND_NULL", 10, 0, 0))  # it went while this read it
    assert not right(Pulled("OFFSET_FOUND_NULL", 11, 0, 0))
    assert not right(Pulled("OFFSET_FOUND_NULL", 10, 0, 9))


@pytest.mark.parametrize(
    ("pulled", "right"),
    [
        (Pulled("FOUND", 3, 0, 3, RECORDS[1:2]), True),  # some may not match
        (Pulled("FOUND", 2, 0, 3, RECORDS[1:2]), True),  # it may have been full
        (Pulled("NO_MATCHED_MESSAGE", 3, 0, 3), True),
        (Pulled("NO_MATCHED_MESSAGE", 5, 0, 3), True),
        (Pulled("NO_MATCHED_MESSAGE", 2, 0, 3), False),
        (Pulled("FOUND", 1, 0, 3, RECORDS[1:2]), False),
        (Pulled("FOUND", 6, 0, 3, RECORDS[1:2]), False),
        (Pulled("FOUND", 3, 0, 2, RECORDS[1:2]), False),
        (Pulled("FOUND", 3, 1, 3, RECORDS[1:2]), False),
        (Pulled("FOUND", 3, 0, 3), False),
        (Pulled("OFFSET_TOO_SMALL", 0, 0, 3), False),
        (Pulled("OFFSET_FOUND_NULL", 10, 0, 3), True),
    ],
)
def test_a_filtered_pull_is_bounded_whatever_it_was_asked_for(
    pulled: Pulled, right: bool
) -> None:
    asked = PullFiltered("g", "T0", 0, 1)

    found = filtered_pull_sees_a_moment.violations(pulled, asked, [queue()], UNITS)

    assert bool(found) is not right


@pytest.mark.parametrize(
    ("number", "data", "right"),
    [
        (2, RECORDS[2], True),
        (2, None, False),
        (1, None, True),  # it may have expired
        (1, RECORDS[1], True),
        (3, None, True),  # it may have come later
        (3, RECORDS[3], True),
        (4, RECORDS[4], False),  # it came later
        (0, RECORDS[0], False),  # it had expired
        (2, RECORDS[3], False),
        (2, RECORDS[2][:-1], False),
    ],
)
def test_a_lookup_finds_what_the_log_had_all_the_while(
    number: int, data: bytes | None, right: bool
) -> None:
    law, asked = lookup_sees_a_moment, LookMessage(number * SIZE)

    found = law.violations(Looked(data), asked, FIVE[number], LOG, [])

    assert bool(found) is not right


def test_a_lookup_finds_nothing_that_was_never_put() -> None:
    law, asked = lookup_sees_a_moment, LookMessage(7)

    assert not law.violations(Looked(None), asked, None, LOG, [])
    assert law.violations(Looked(RECORDS[3]), asked, None, LOG, [message(2)])
    assert not law.violations(Looked(RECORDS[3]), asked, None, LOG, [message(3)])


@pytest.mark.parametrize(
    ("boundary", "lows", "right"),
    [
        ("LOWER", (0, 0), [2]),
        ("UPPER", (0, 0), [2]),
        ("LOWER", (0, 3), [0, 1, 2, 3]),
        ("UPPER", (0, 3), [0, 1, 2, 3]),
    ],
)
def test_a_search_finds_what_a_scan_finds_between_some_bounds(
    boundary: Boundary, lows: tuple[int, int], right: list[int]
) -> None:
    times = dict(enumerate((10, 20, 30, 40, 50)))

    def finds(found: int) -> bool:
        law, told = search_sees_a_moment, Searched(found)
        between = queue(lows=lows, highs=(4, 5))
        return not law.violations(told, 30, boundary, [(between, times)], [10])

    assert [found for found in range(-1, 80) if finds(found)] == right


def test_a_search_behind_all_ends_at_an_end_that_the_queue_had() -> None:
    times = dict(enumerate((10, 20, 30, 40, 50)))

    def ends(boundary: Boundary) -> list[int]:
        law, between = search_sees_a_moment, queue(highs=(3, 5))
        return [
            found
            for found in range(-1, 80)
            if not law.violations(
                Searched(found), 99, boundary, [(between, times)], [10]
            )
        ]

    assert (ends("LOWER"), ends("UPPER")) == ([3, 4, 5], [2, 3, 4])


def test_a_search_passes_over_nothing_that_came_meanwhile() -> None:
    times = dict(enumerate((10, 20, 30, 40, 50)))
    law, between = search_sees_a_moment, queue(highs=(3, 5))

    found = [
        law.violations(Searched(n), 35, "LOWER", [(between, times)], []) for n in (3, 4)
    ]

    assert [bool(one) for one in found] == [False, True]


def test_a_search_tells_times_that_were_stored() -> None:
    times = dict(enumerate((10, 20, 30, 40, 50)))

    def is_told(stored_at: int, earliest: int, found: int = 2) -> bool:
        law, told = search_sees_a_moment, Searched(found, stored_at, earliest)
        between = queue(highs=(3, 5))
        return not law.violations(told, 99, "UPPER", [(between, times)], [10, 20])

    assert is_told(30, 10)
    assert is_told(30, 20)
    assert not is_told(31, 10)
    assert not is_told(-1, 10)
    assert not is_told(30, 11)
    assert not is_told(30, -1)
    assert is_told(-1, 10, found=3)  # perhaps it was not dispatched yet


def test_no_pull_shows_less_than_was_shown_before() -> None:
    pulled = Pulled("OFFSET_OVERFLOW_ONE", 4, 1, 4)

    assert not reads_never_go_back.violations(pulled, PULL, (1, 4))
    assert reads_never_go_back.violations(pulled, PULL, (2, 4))
    assert reads_never_go_back.violations(pulled, PULL, (1, 5))


@pytest.mark.parametrize(
    ("given", "most", "right"),
    [
        ((1, 2), 9, True),
        ((1, 2, 3), 9, True),  # that came meanwhile
        ((2, 3), 2, True),
        ((1, 2), 2, True),
        ((2,), 9, False),
        ((), 9, False),
        ((1, 3), 2, False),
        ((), 0, True),
    ],
)
def test_a_query_misses_nothing_that_was_there_when_it_began(
    given: tuple[int, ...], most: int, right: bool
) -> None:
    queried = Queried(tuple([RECORDS[n] for n in given]))

    found = query_misses_nothing.violations(queried, most, [SIZE, 2 * SIZE])

    assert bool(found) is not right


@pytest.mark.parametrize(
    ("given", "most", "right"),
    [
        (RECORDS[1:3], 9, True),
        (RECORDS[1:3], 1, False),
        (RECORDS[3:5], 9, False),  # the last was never put
        ((RECORDS[1][:-1],), 9, False),
        ((), 0, True),
    ],
)
def test_a_query_returns_what_was_put(
    given: tuple[bytes, ...], most: int, right: bool
) -> None:
    def was_put(found: Record) -> bool:
        return found.queue_offset < 4

    found = query_returns_what_was_put.violations(Queried(given), most, was_put)

    assert bool(found) is not right


def test_the_bounds_of_a_queue_are_those_of_what_is_listed_and_not_expired() -> None:
    assert bounds(FIVE, 0, 0, 3) == (0, 3)
    assert bounds(FIVE, 0, SIZE, 3) == (1, 3)
    assert bounds(FIVE, 0, 9 * SIZE, 3) == (3, 3)
    assert bounds(FIVE, 4, 9 * SIZE, 3) == (4, 4)
    assert bounds([], 7, 0, 0) == (7, 7)
