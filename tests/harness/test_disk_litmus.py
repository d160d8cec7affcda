"""Litmus tests of the simulated disk: which results each kind of disk allows.

A row is a tiny program, one result of it, and the profiles on which a power loss right
after the program can have that result. On every other profile no choice of survivors
has it. What a program starts with is on the medium for certain.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import combinations
from typing import NamedTuple

import pytest
from disk_programs import Call, Files, after, states

from crashmq.harness.disk.profiles import PROFILES
from crashmq.models.ops import DiskFault, KeptUnit, Survivors

A, B, OLD = (letter * 512 for letter in (b"A", b"B", b"O"))
ZERO = bytes(512)
PAGE = bytes(4096)
WORD = b"w" * 64

EVERY = frozenset(PROFILES)
LOSSY = EVERY - {"kill9"}
UNORDERED = LOSSY - {"ext4_data"}
LYING = frozenset({"lying_disk"})
HONEST = LOSSY - LYING
SUBSET = frozenset({"posix_min"})
NOWHERE: frozenset[str] = frozenset()


class Program(NamedTuple):
    """``left``: what each sync that fails may leave of its pages, of which one."""

    start: Files
    calls: tuple[Call | DiskFault, ...]
    left: tuple[Survivors, ...] = (Survivors(),)


class Row(NamedTuple):
    program: str
    result: str
    holds: Callable[[Files], bool]
    where: frozenset[str]


def each_subset(path: str, sectors: tuple[int, ...]) -> tuple[Survivors, ...]:
    """Every choice of sectors that are new, the others old."""
    return tuple(
        Survivors("units", units=tuple(KeptUnit(path, n, 1) for n in chosen))
        for count in range(len(sectors) + 1)
        for chosen in combinations(sectors, count)
    )


PROGRAMS = {
    "two sectors written": Program(
        {"f": ZERO + ZERO}, (("write", "f", 0, A), ("write", "f", 512, B))
    ),
    "two sectors stored": Program(
        {"f": ZERO + ZERO}, (("store", "f", 0, A), ("store", "f", 512, B))
    ),
    "two pages stored": Program(
        {"f": PAGE + PAGE}, (("store", "f", 0, A), ("store", "f", 4096, B))
    ),
    "one write over two sectors": Program(
        {"f": ZERO + ZERO}, (("write", "f", 0, A + B),)
    ),
    "written and synced": Program({"f": ZERO}, (("write", "f", 0, A), ("sync", "f"))),
    "synced and written over": Program(
        {"f": ZERO}, (("write", "f", 0, A), ("sync", "f"), ("write", "f", 0, B))
    ),
    "written twice": Program({"f": ZERO}, (("write", "f", 0, A), ("write", "f", 0, B))),
    "two words stored at once": Program({"f": ZERO}, (("store", "f", 0, WORD * 2),)),
    "two words stored at once, and one more": Program(
        {"f": ZERO}, (("store", "f", 0, WORD * 2), ("store", "f", 128, WORD))
    ),
    "a word stored over two sectors": Program(
        {"f": ZERO + ZERO}, (("store", "f", 448, WORD * 2),)
    ),
    "two words written at once": Program({"f": ZERO}, (("write", "f", 0, WORD * 2),)),
    "one sector written": Program({"f": OLD}, (("write", "f", 0, A),)),
    "one sector written beside one that was synced": Program(
        {"f": ZERO + ZERO},
        (("write", "f", 0, A), ("sync", "f"), ("write", "f", 512, B)),
    ),
    "a sector of another page written": Program(
        {"f": OLD * 8 + OLD}, (("write", "f", 4096, A),)
    ),
    "another file synced": Program(
        {"f": ZERO, "g": ZERO},
        (("write", "f", 0, A), ("write", "g", 0, B), ("sync", "g")),
    ),
    "another file synced, mapped": Program(
        {"f": ZERO, "g": ZERO},
        (("store", "f", 0, A), ("store", "g", 0, B), ("sync", "g")),
    ),
    "its directory synced": Program(
        {"f": ZERO}, (("write", "f", 0, A), ("mkdir", "d"), ("sync_dir", ""))
    ),
    "a file made": Program({"o": OLD}, (("create", "n", 512),)),
    "a file made, written and synced": Program(
        {}, (("create", "n", 512), ("write", "n", 0, A), ("sync", "n"))
    ),
    "a file made and its directory synced": Program(
        {}, (("create", "n", 512), ("sync_dir", ""))
    ),
    "a file and its directory synced": Program(
        {},
        (("create", "n", 512), ("write", "n", 0, A), ("sync", "n"), ("sync_dir", "")),
    ),
    "two files made": Program({}, (("create", "m", 8), ("create", "n", 8))),
    "two files made, the second synced": Program(
        {}, (("create", "m", 8), ("create", "n", 8), ("sync", "n"))
    ),
    "a file renamed": Program({"f": OLD}, (("rename", "f", "g"),)),
    "a file renamed and its directory synced": Program(
        {"f": OLD}, (("rename", "f", "g"), ("sync_dir", ""))
    ),
    "a file moved to another directory": Program(
        {"d/f": OLD, "e/x": OLD}, (("rename", "d/f", "e/f"), ("sync_dir", "d"))
    ),
    "a file replaced": Program(
        {"t": OLD},
        (("create", "tmp", 512), ("write", "tmp", 0, A), ("rename", "tmp", "t")),
    ),
    "a file replaced with care": Program(
        {"t": OLD},
        (
            ("create", "tmp", 512),
            ("write", "tmp", 0, A),
            ("sync", "tmp"),
            ("rename", "tmp", "t"),
            ("sync_dir", ""),
        ),
    ),
    "a file replaced, no directory synced": Program(
        {"t": OLD},
        (
            ("create", "tmp", 512),
            ("write", "tmp", 0, A),
            ("sync", "tmp"),
            ("rename", "tmp", "t"),
        ),
    ),
    "a file removed": Program({"f": OLD}, (("remove", "f"),)),
    "a file removed and its directory synced": Program(
        {"f": OLD}, (("remove", "f"), ("sync_dir", ""))
    ),
    "a file made and removed": Program({}, (("create", "n", 8), ("remove", "n"))),
    "a file removed, then one made": Program(
        {"f": OLD}, (("remove", "f"), ("create", "n", 8))
    ),
    "a file below a new directory": Program(
        {},
        (("mkdir", "d"), ("create", "d/n", 8), ("sync", "d/n"), ("sync_dir", "d")),
    ),
    "all directories synced": Program(
        {},
        (
            *(("mkdir", "d"), ("create", "d/n", 8), ("sync", "d/n")),
            *(("sync_dir", "d"), ("sync_dir", "")),
        ),
    ),
    "a file cut": Program({"f": OLD + OLD}, (("truncate", "f", 512),)),
    "a file cut and synced": Program(
        {"f": OLD + OLD}, (("truncate", "f", 512), ("sync", "f"))
    ),
    "three pages cut": Program({"f": b"x" * 12288}, (("truncate", "f", 100),)),
    "a file cut and grown": Program(
        {"f": OLD + OLD}, (("truncate", "f", 512), ("truncate", "f", 1024))
    ),
    "a sync that fails": Program(
        {"f": OLD},
        (("write", "f", 0, A), DiskFault("sync", "EIO"), ("sync", "f")),
        each_subset("f", (0,)),
    ),
    "a sync of two pages that fails": Program(
        {"f": PAGE + PAGE},
        (
            *(("write", "f", 0, A), ("write", "f", 4096, B)),
            *(DiskFault("sync", "EIO"), ("sync", "f")),
        ),
        each_subset("f", (0, 8)),
    ),
    "a sync that fails, and pages leave memory": Program(
        {"f": PAGE + PAGE},
        (
            *(("write", "f", 0, A), ("write", "f", 4096, B)),
            *(DiskFault("sync", "EIO"), ("sync", "f"), DiskFault("evict", "EIO")),
        ),
        each_subset("f", (0, 8)),
    ),
    "a sync that fails, and one that does not": Program(
        {"f": OLD},
        (
            *(("write", "f", 0, A), DiskFault("sync", "EIO")),
            *(("sync", "f"), ("sync", "f")),
        ),
        each_subset("f", (0,)),
    ),
    "written again after a sync that failed": Program(
        {"f": OLD},
        (
            *(("write", "f", 0, A), DiskFault("sync", "EIO"), ("sync", "f")),
            *(("write", "f", 0, A), ("sync", "f"), ("sync", "f")),
        ),
        each_subset("f", (0,)),
    ),
    "a sync that loses a page": Program(
        {"f": OLD}, (("write", "f", 0, A), DiskFault("lose", "EIO"), ("sync", "f"))
    ),
    "a sync that loses the first of two pages": Program(
        {"f": PAGE + PAGE},
        (
            *(("write", "f", 0, A), ("write", "f", 4096, B)),
            *(DiskFault("lose", "EIO"), ("sync", "f")),
        ),
    ),
    "a sync that misdirects a page": Program(
        {"f": PAGE + PAGE},
        (("write", "f", 0, A), DiskFault("misdirect", "EIO"), ("sync", "f")),
    ),
    "a sync that misdirects a page to another file": Program(
        {"f": OLD, "g": OLD},
        (
            *(("write", "f", 0, A), DiskFault("misdirect", "EIO", written=1)),
            ("sync", "f"),
        ),
    ),
    "a lost page that leaves memory": Program(
        {"f": OLD},
        (
            *(("write", "f", 0, A), DiskFault("lose", "EIO")),
            *(("sync", "f"), DiskFault("evict", "EIO")),
        ),
    ),
}

ROWS = (
    Row("two sectors written", "both are there", lambda f: f["f"] == A + B, EVERY),
    Row("two sectors written", "neither is", lambda f: f["f"] == ZERO + ZERO, LOSSY),
    Row("two sectors written", "the first is", lambda f: f["f"] == A + ZERO, LOSSY),
    Row(
        "two sectors written",
        "the second is",
        lambda f: f["f"] == ZERO + B,
        UNORDERED,
    ),
    Row("two sectors stored", "the second is", lambda f: f["f"] == ZERO + B, LOSSY),
    Row("two sectors stored", "the first is", lambda f: f["f"] == A + ZERO, LOSSY),
    Row(
        "two pages stored",
        "the second is",
        lambda f: f["f"][:512] == ZERO and f["f"][4096:4608] == B,
        LOSSY,
    ),
    Row(
        "one write over two sectors",
        "the second is",
        lambda f: f["f"] == ZERO + B,
        UNORDERED,
    ),
    Row("written and synced", "it is there", lambda f: f["f"] == A, EVERY),
    Row("written and synced", "it is not", lambda f: f["f"] == ZERO, LYING),
    Row("synced and written over", "the old", lambda f: f["f"] == A, LOSSY),
    Row("synced and written over", "the new", lambda f: f["f"] == B, EVERY),
    Row("synced and written over", "the oldest", lambda f: f["f"] == ZERO, LYING),
    Row("written twice", "what lay between", lambda f: f["f"] == A, LOSSY),
    Row(
        "two words stored at once",
        "one of them",
        lambda f: f["f"].rstrip(b"\0") == WORD,
        LOSSY,
    ),
    Row(
        "two words stored at once, and one more",
        "half of the first store, and the second",
        lambda f: f["f"] == WORD + ZERO[:64] + WORD + ZERO[192:],
        NOWHERE,
    ),
    Row(
        "a word stored over two sectors",
        "a half of it in each, alone",
        lambda f: f["f"][:512].strip(b"\0") == WORD and f["f"][512:] == ZERO,
        LOSSY,
    ),
    Row(
        "two words written at once",
        "one of them",
        lambda f: f["f"].rstrip(b"\0") == WORD,
        NOWHERE,
    ),
    Row(
        "one sector written",
        "its first half",
        lambda f: f["f"] == A[:256] + OLD[256:],
        frozenset({"nvme_torn"}),
    ),
    Row(
        "one sector written",
        "its second half",
        lambda f: f["f"] == OLD[256:] + A[:256],
        frozenset({"nvme_torn"}),
    ),
    Row(
        "one sector written",
        "neither new nor old",
        lambda f: set(f["f"]) - set(A + OLD) != set(),
        frozenset({"nvme_torn", "physical_4k"}),
    ),
    Row(
        "one sector written beside one that was synced",
        "what was synced is spoilt",
        lambda f: f["f"][:512] not in (A, ZERO),
        frozenset({"physical_4k"}),
    ),
    Row(
        "one sector written beside one that was synced",
        "what was synced is old",
        lambda f: f["f"][:512] == ZERO,
        LYING,
    ),
    Row(
        "a sector of another page written",
        "the page beside is spoilt",
        lambda f: f["f"][:4096] != OLD * 8,
        NOWHERE,
    ),
    Row("another file synced", "its own is lost", lambda f: f["g"] == ZERO, LYING),
    Row(
        "another file synced", "the first is lost", lambda f: f["f"] == ZERO, UNORDERED
    ),
    Row(
        "another file synced, mapped",
        "the first is lost",
        lambda f: f["f"] == ZERO,
        LOSSY,
    ),
    Row(
        "its directory synced",
        "its bytes are lost",
        lambda f: f["f"] == ZERO,
        UNORDERED,
    ),
    Row("a file made", "it is gone", lambda f: "n" not in f, LOSSY),
    Row("a file made", "it is empty", lambda f: f.get("n") == b"", LOSSY),
    Row("a file made", "it has zeros", lambda f: f.get("n") == ZERO, EVERY),
    Row("a file made", "another file's bytes", lambda f: f.get("n") == OLD, SUBSET),
    Row(
        "a file made",
        "garbage",
        lambda f: f.get("n") not in (None, b"", ZERO, OLD),
        SUBSET,
    ),
    Row(
        "a file made, written and synced",
        "it is gone",
        lambda f: "n" not in f,
        SUBSET | LYING,
    ),
    Row(
        "a file made, written and synced",
        "it is whole",
        lambda f: f.get("n") == A,
        EVERY,
    ),
    Row(
        "a file made, written and synced",
        "it has zeros",
        lambda f: f.get("n") == ZERO,
        LYING,
    ),
    Row(
        "a file made and its directory synced",
        "it is gone",
        lambda f: "n" not in f,
        LYING,
    ),
    Row(
        "a file made and its directory synced",
        "it is empty",
        lambda f: f.get("n") == b"",
        SUBSET | LYING | {"btrfs"},
    ),
    Row(
        "a file and its directory synced",
        "anything but the whole file",
        lambda f: f.get("n") != A,
        LYING,
    ),
    Row("two files made", "the second alone", lambda f: set(f) == {"n"}, SUBSET),
    Row("two files made", "the first alone", lambda f: set(f) == {"m"}, LOSSY),
    Row(
        "two files made, the second synced",
        "the second alone",
        lambda f: set(f) == {"n"},
        SUBSET | {"btrfs"},
    ),
    Row(
        "two files made, the second synced",
        "the first alone",
        lambda f: set(f) == {"m"},
        SUBSET | LYING,
    ),
    Row("a file renamed", "the old name", lambda f: f == {"f": OLD}, LOSSY),
    Row("a file renamed", "the new name", lambda f: f == {"g": OLD}, EVERY),
    Row("a file renamed", "both names", lambda f: f == {"f": OLD, "g": OLD}, SUBSET),
    Row("a file renamed", "no name", lambda f: f == {}, SUBSET),
    Row(
        "a file renamed and its directory synced",
        "the old name",
        lambda f: "f" in f,
        LYING,
    ),
    Row(
        "a file moved to another directory",
        "no name",
        lambda f: set(f) == {"e/x"},
        SUBSET,
    ),
    Row(
        "a file moved to another directory",
        "both names",
        lambda f: {"d/f", "e/f"} <= set(f),
        NOWHERE,
    ),
    Row(
        "a file replaced",
        "the name, and not the bytes",
        lambda f: f.get("t") in (b"", ZERO),
        frozenset({"xfs", "btrfs", "posix_min"}),
    ),
    Row("a file replaced", "the old file", lambda f: f.get("t") == OLD, LOSSY),
    Row("a file replaced", "no such name", lambda f: "t" not in f, NOWHERE),
    Row(
        "a file replaced with care",
        "anything but the new file",
        lambda f: f.get("t") != A,
        LYING,
    ),
    Row(
        "a file replaced, no directory synced",
        "neither old nor new",
        lambda f: f.get("t") not in (OLD, A),
        NOWHERE,
    ),
    Row("a file removed", "it is back", lambda f: f == {"f": OLD}, LOSSY),
    Row(
        "a file removed and its directory synced",
        "it is back",
        lambda f: "f" in f,
        LYING,
    ),
    Row("a file made and removed", "it is there", lambda f: "n" in f, LOSSY),
    Row(
        "a file removed, then one made",
        "both are there",
        lambda f: set(f) == {"f", "n"},
        SUBSET,
    ),
    Row(
        "a file below a new directory",
        "it is gone",
        lambda f: f == {},
        SUBSET | LYING,
    ),
    Row("all directories synced", "it is gone", lambda f: f == {}, LYING),
    Row("a file cut", "its old size", lambda f: f["f"] == OLD + OLD, LOSSY),
    Row("a file cut", "its new size", lambda f: f["f"] == OLD, EVERY),
    Row("a file cut and synced", "its old size", lambda f: f["f"] == OLD + OLD, LYING),
    Row("three pages cut", "two of them", lambda f: len(f["f"]) == 8192, SUBSET),
    Row(
        "a file cut and grown",
        "old bytes beyond the cut",
        lambda f: f["f"] == OLD + OLD,
        LOSSY,
    ),
    Row(
        "a file cut and grown",
        "zeros beyond the cut",
        lambda f: f["f"] == OLD + ZERO,
        EVERY,
    ),
    Row("a sync that fails", "its bytes are lost", lambda f: f["f"] == OLD, LOSSY),
    Row("a sync that fails", "its bytes are there", lambda f: f["f"] == A, EVERY),
    Row(
        "a sync of two pages that fails",
        "the first is new alone",
        lambda f: f["f"] == A + PAGE[512:] + PAGE,
        LOSSY,
    ),
    Row(
        "a sync of two pages that fails",
        "the second is new alone",
        lambda f: f["f"] == PAGE + B + PAGE[512:],
        LOSSY,
    ),
    Row(
        "a sync that fails, and pages leave memory",
        "the second is new alone",
        lambda f: f["f"] == PAGE + B + PAGE[512:],
        EVERY,
    ),
    Row(
        "a sync that fails, and one that does not",
        "its bytes are lost",
        lambda f: f["f"] == OLD,
        LOSSY,
    ),
    Row(
        "a sync that fails, and one that does not",
        "its bytes are there",
        lambda f: f["f"] == A,
        EVERY,
    ),
    Row(
        "written again after a sync that failed",
        "its bytes are lost",
        lambda f: f["f"] == OLD,
        LYING,
    ),
    Row("a sync that loses a page", "it is old", lambda f: f["f"] == OLD, LOSSY),
    Row(
        "a sync that loses a page",
        "it is new",
        lambda f: f["f"] == A,
        LYING | {"kill9"},
    ),
    Row(
        "a sync that loses the first of two pages",
        "the second is new alone",
        lambda f: f["f"] == PAGE + B + PAGE[512:],
        LOSSY,
    ),
    Row(
        "a sync that loses the first of two pages",
        "the first is new alone",
        lambda f: f["f"] == A + PAGE[512:] + PAGE,
        LYING,
    ),
    Row(
        "a sync that misdirects a page",
        "it lies in the next page",
        lambda f: f["f"] == PAGE + A + PAGE[512:],
        HONEST,
    ),
    Row(
        "a sync that misdirects a page",
        "it lies in both",
        lambda f: f["f"] == 2 * (A + PAGE[512:]),
        NOWHERE,
    ),
    Row(
        "a sync that misdirects a page to another file",
        "the other has its bytes",
        lambda f: f == {"f": OLD, "g": A},
        HONEST,
    ),
    Row(
        "a lost page that leaves memory",
        "it is new",
        lambda f: f["f"] == A,
        LYING,
    ),
)


@cache
def results(profile: str, program: str) -> tuple[Files, ...]:
    start, calls, choices = PROGRAMS[program]
    return tuple(
        files
        for left in choices
        for files in states(after(profile, start, _leaving(calls, left)))
    )


def _leaving(
    calls: tuple[Call | DiskFault, ...], left: Survivors
) -> tuple[Call | DiskFault, ...]:
    return tuple(
        replace(call, survivors=left)
        if isinstance(call, DiskFault) and call.call == "sync"
        else call
        for call in calls
    )


@pytest.mark.slow
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.program}: {row.result}")
def test_a_result_is_possible_just_where_the_table_says(row: Row, profile: str) -> None:
    seen = any(row.holds(files) for files in results(profile, row.program))

    assert seen == (profile in row.where)


def test_every_profile_is_held_to_forty_rows() -> None:
    assert len({(row.program, row.result) for row in ROWS}) == len(ROWS) >= 40
    assert {row.program for row in ROWS} == set(PROGRAMS)
