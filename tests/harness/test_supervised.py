"""One row a number, whatever the work does to its process."""

from __future__ import annotations

import gc
import os
import pickle
import select
import signal
import struct
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from crashmq.harness.searches.supervised import Lost, supervised

PATIENT_S = 60.0


def kill_itself() -> int:
    os.kill(os.getpid(), signal.SIGSEGV)
    return 0


def hang() -> int:
    while True:
        signal.pause()


def leave() -> int:
    os._exit(3)


FATES: dict[str, Callable[[], int]] = {
    "signal:11": kill_itself,
    "exit:3": leave,
    "raised": lambda: sys.exit(5),
}


@pytest.mark.slow
@pytest.mark.parametrize("how", FATES)
@pytest.mark.parametrize("victim", [0, 2, 4])
def test_a_death_costs_its_own_number_alone(how: str, victim: int) -> None:
    rows = list(
        supervised(
            lambda n: FATES[how]() if n == victim else n * n, range(5), PATIENT_S
        )
    )

    assert [row for row in rows if not isinstance(row, Lost)] == [
        n * n for n in range(5) if n != victim
    ]
    lost = rows[victim]
    assert isinstance(lost, Lost)
    assert (lost.number, lost.how) == (victim, how)


@pytest.mark.slow
def test_work_that_hangs_is_killed_and_named() -> None:
    rows = list(supervised(lambda n: hang() if n == 1 else n, range(3), 0.3))

    assert rows == [0, Lost(1, "timeout"), 2]


def work_for(seconds: float) -> None:
    ends = time.process_time() + seconds
    while time.process_time() < ends:
        pass


@pytest.mark.slow
def test_work_without_an_end_is_killed_after_its_own_time() -> None:
    rows = list(
        supervised(lambda n: work_for(PATIENT_S) if n == 1 else n, range(3), 0.3)
    )

    assert rows == [0, Lost(1, "timeout"), 2]


@pytest.mark.slow
def test_each_number_has_all_the_time() -> None:
    rows = list(supervised(lambda _: work_for(0.2), range(5), 0.5))

    assert rows == [None] * 5


@pytest.mark.slow
def test_a_child_that_is_late_because_others_work_is_not_killed() -> None:
    def gets_no_turn(number: int) -> int:
        select.select([], [], [], 0.8)
        return number

    assert list(supervised(gets_no_turn, range(2), 0.3)) == [0, 1]


@pytest.mark.slow
def test_a_child_that_has_grown_gives_way_to_another() -> None:
    kept: list[bytes] = []

    def grows(number: int) -> tuple[int, int]:
        kept.append(bytes(range(256)) * 240_000)  # 61 MB
        return number, len(kept)

    def numbers_and_kept(growth_max: int | None) -> list[tuple[int, int]]:
        rows = supervised(grows, range(6), PATIENT_S, growth_max=growth_max)
        return [row for row in rows if not isinstance(row, Lost)]

    gc.collect()  # what a child frees of its parent's it may take again unseen
    unbounded, bounded = numbers_and_kept(None), numbers_and_kept(92_000_000)

    assert unbounded == [(n, n + 1) for n in range(6)]
    assert bounded == [(n, n % 2 + 1) for n in range(6)]


def test_a_child_that_says_it_has_grown_and_did_nothing_is_lost() -> None:
    rows = list(supervised(lambda _: os._exit(96), range(2), PATIENT_S, growth_max=1))

    assert rows == [Lost(0, "exit:96"), Lost(1, "exit:96")]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts what it gave")
def test_one_number_gets_so_much_memory_and_no_more() -> None:
    def eats(number: int) -> int:
        return len(bytearray(number * 100_000_000))

    rows = list(supervised(eats, [1, 3, 1], PATIENT_S, growth_max=50_000_000))

    assert [isinstance(row, Lost) for row in rows] == [False, True, False]
    assert isinstance(rows[1], Lost)
    assert "MemoryError" in rows[1].detail


def test_what_was_raised_is_told() -> None:
    (lost,) = supervised(lambda n: 1 // n, [0], PATIENT_S)

    assert isinstance(lost, Lost)
    assert lost.how == "raised"
    assert "ZeroDivisionError" in lost.detail


@pytest.mark.parametrize(
    ("code", "kind", "said"),
    [
        ("1 // 0", "ZeroDivisionError", "ZeroDivisionError: "),
        ("raise KeyError", "KeyError", "KeyError"),
        ("raise OSError('one:\\ntwo')", "OSError", "OSError: one:"),
        ("(", "SyntaxError", "SyntaxError: '(' was never closed"),
        ("import json; json.loads('')", "json.decoder.JSONDecodeError", "json.decoder"),
        ("raise SystemExit(3)", "SystemExit", "SystemExit: 3"),
        ("raise ValueError('x' * 9000)", "ValueError", "ValueError: xx"),
    ],
)
def test_a_loss_names_the_class_and_the_first_line(
    code: str, kind: str, said: str
) -> None:
    (lost,) = supervised(lambda _: exec(code), [0], PATIENT_S)

    assert isinstance(lost, Lost)
    assert lost.kind == kind
    assert lost.said.startswith(said)
    assert "\n" not in lost.said
    assert len(lost.said) <= 1000


def test_a_row_that_cannot_be_pickled_is_lost_alone() -> None:
    rows = list(supervised(lambda n: (lambda: n) if n == 0 else n, [0, 1], PATIENT_S))

    assert isinstance(rows[0], Lost)
    assert rows[1] == 1


def test_every_number_may_die() -> None:
    rows = list(supervised(lambda _: leave(), range(4), PATIENT_S))

    assert rows == [Lost(n, "exit:3") for n in range(4)]


def test_big_rows_arrive_whole() -> None:
    rows = list(supervised(lambda n: bytes([n]) * 3_000_000, range(3), PATIENT_S))

    assert rows == [bytes([n]) * 3_000_000 for n in range(3)]


def test_the_context_holds_in_the_child_alone() -> None:
    places: list[str] = []

    @contextmanager
    def marked() -> Iterator[None]:
        places.append("inside")
        yield

    rows = list(supervised(lambda _: list(places), range(2), PATIENT_S, marked))

    assert rows == [["inside"], ["inside"]]
    assert places == []


def test_a_context_that_cannot_be_entered_is_told_for_each_number() -> None:
    def missing() -> AbstractContextManager[object]:
        raise LookupError("no such bug")

    rows = list(supervised(lambda n: n, [4, 5], PATIENT_S, missing))

    assert all(isinstance(row, Lost) and row.how == "raised" for row in rows)
    assert [row.number for row in rows if isinstance(row, Lost)] == [4, 5]
    assert all("no such bug" in row.detail for row in rows if isinstance(row, Lost))


def test_nobody_is_left_when_the_reader_stops_early() -> None:
    others = psutil.Process().children()  # of tests that ran here before
    rows = supervised(lambda n: n, range(1_000_000), PATIENT_S)
    assert next(rows) == 0

    rows.close()  # type: ignore[attr-defined]  # it is a generator

    assert psutil.Process().children() == others


def test_the_child_holds_no_other_descriptor(tmp_path: Path) -> None:
    with (tmp_path / "open").open("w"):
        (held,) = supervised(
            lambda _: len(list(Path("/proc/self/fd").iterdir())), [0], PATIENT_S
        )

    assert isinstance(held, int)
    assert held <= 5  # three standard ones, the pipe, the listing itself


def test_an_orphan_dies_with_its_parent(tmp_path: Path) -> None:
    note = tmp_path / "pid"

    def start_one_and_die(_: int) -> None:
        orphans = supervised(
            lambda n: hang() if n == 1 else os.getpid(), [0, 1], PATIENT_S
        )
        note.write_text(str(next(orphans)))
        os.kill(os.getpid(), signal.SIGKILL)

    (lost,) = supervised(start_one_and_die, [0], PATIENT_S)

    assert lost == Lost(0, "signal:9")
    assert ends_soon(int(note.read_text()))


def test_a_copy_of_a_child_tells_nothing() -> None:
    def forks(number: int) -> int:
        return number if number != 1 or os.fork() else 100

    rows = list(supervised(forks, range(4), PATIENT_S))

    assert rows == [0, 1, 2, 3]


@pytest.mark.parametrize("goes_on", [True, False])
def test_whoever_a_child_started_ends_with_it(tmp_path: Path, goes_on: bool) -> None:
    note = tmp_path / "pid"

    def leaves_one(number: int) -> int:
        if number == 0:
            started = os.fork()
            if started == 0:
                hang()
            note.write_text(str(started))
            if not goes_on:
                leave()
        return number

    began = time.monotonic()
    rows = list(supervised(leaves_one, range(2), PATIENT_S))

    assert rows == [0 if goes_on else Lost(0, "exit:3"), 1]
    assert ends_soon(int(note.read_text()))
    assert time.monotonic() - began < PATIENT_S / 2  # nobody waited for its pipe


def test_what_somebody_else_writes_is_no_row() -> None:
    def meddles(number: int) -> int:
        if number == 1:
            payload = pickle.dumps((0, "not mine"))
            for descriptor in range(3, 64):
                with suppress(OSError):
                    os.write(descriptor, struct.pack("<I", len(payload)) + payload)
        return number

    assert list(supervised(meddles, range(3), PATIENT_S)) == [0, 1, 2]


def ends_soon(pid: int) -> bool:
    """Whether the process ends within ten seconds."""
    try:
        watched = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    poll = select.poll()
    poll.register(watched, select.POLLIN)
    ended = bool(poll.poll(10_000))
    os.close(watched)
    return ended
