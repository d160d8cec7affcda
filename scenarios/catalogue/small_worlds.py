"""Small worlds: all short programs over a small alphabet of ops, as a trie.

A letter is an op, or two that only make sense together. A node of the trie is a
program; only crash points in its last letter count as its own, since those in earlier
letters belong to its ancestors. So exploring each node explores every program, and no
crash point twice. Files are small: two sectors of log, three units of queue, so that
all possible survivors of a power loss can be counted and tried.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

from crashmq.models.ops import AdvanceClock, Op, PutMessage, Restart, RunService
from crashmq.models.program import Program, Setup

SETUPS = (
    Setup(log_file_size=1024, queue_file_units=3),
    Setup(log_file_size=1024, queue_file_units=3, flush_mode="SYNC_FLUSH"),
)
LETTERS: dict[str, tuple[Op, ...]] = {
    "small": (PutMessage("T0", 0, 16),),
    "other": (PutMessage("T1", 0, 16),),
    "large": (PutMessage("T0", 0, 600),),  # the second one does not fit the first file
    "flush": (AdvanceClock(60_000), RunService("flush_commit_log")),
    "reput": (RunService("reput", 20),),
    "restart": (Restart(),),
}


@dataclass(frozen=True, slots=True)
class Node:
    """One program of a world.

    Attributes:
        letters: the names of its letters.
        program: their ops, on one store.
        shared: the number of its first ops whose crash points belong to its ancestors.
    """

    letters: tuple[str, ...]
    program: Program
    shared: int


def nodes(length: int, profile: str = "") -> Iterator[Node]:
    """Every program of at most ``length`` letters on each store, short ones first."""
    for count in range(1, length + 1):
        for letters in product(LETTERS, repeat=count):
            ops = tuple(op for letter in letters for op in LETTERS[letter])
            for setup in SETUPS:
                if profile:
                    setup = replace(setup, disk_profile=profile)
                shared = len(ops) - len(LETTERS[letters[-1]])
                yield Node(letters, Program(setup, ops), shared)
