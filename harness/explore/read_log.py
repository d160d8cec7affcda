"""ReadLog: finds an earlier start that read the same bytes, so that none is run twice.

What a start does depends only on what it reads. Its first read is the same on all disks
with the same *frame* (paths, sizes, times), and each next read follows from the answers
so far. So the starts that were run form a tree of reads, with an answer on each branch.
If a disk's files give the answers down to a leaf, a start on it would do and leave the
same as the start of that leaf. Bytes that a start left unchanged are the last reads
(``harness/disk/read_tracking.py``).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeAlias, TypeVar

from crashmq.harness.disk.read_tracking import Read

T = TypeVar("T")
Reads: TypeAlias = Sequence[Read]


@dataclass(slots=True)
class _Question(Generic[T]):
    """A read, and for each answer the next read or the leaf."""

    read: Read
    after: dict[Hashable, _Question[T] | _Leaf[T]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Leaf(Generic[T]):
    value: T


class ReadLog(Generic[T]):
    """The starts that were run, by what they read."""

    def __init__(self) -> None:
        self._roots: dict[Hashable, _Question[T] | _Leaf[T]] = {}

    def find(self, root: Hashable, files: Mapping[str, bytes]) -> T | None:
        """The result of an earlier start that a start on these files would repeat.

        None if there was none. ``root`` is what a start knows before it reads.
        """
        node = self._roots.get(root)
        while isinstance(node, _Question):
            node = node.after.get(node.read.answer(files[node.read.path]))
        return node.value if node is not None else None

    def path(self, root: Hashable, files: Mapping[str, bytes]) -> Reads | None:
        """What a start on these files reads, in order; None if unknown."""
        node, reads = self._roots.get(root), list[Read]()
        while isinstance(node, _Question):
            reads.append(node.read)
            node = node.after.get(node.read.answer(files[node.read.path]))
        return None if node is None else reads

    def add(
        self, root: Hashable, reads: Reads, files: Mapping[str, bytes], of: T
    ) -> None:
        """Store the result ``of`` a start that read these files in this order."""
        leaf = _Leaf(of)
        if not reads:
            self._roots[root] = leaf
            return
        node = self._roots.setdefault(root, _Question(reads[0]))
        for read, following in zip(reads, (*reads[1:], None), strict=True):
            assert isinstance(node, _Question), "a start asked on where one had ended"
            assert node.read == read, f"a start asked {read}, another {node.read}"
            answer = read.answer(files[read.path])
            if following is None:
                node.after[answer] = leaf
            else:
                node = node.after.setdefault(answer, _Question(following))
