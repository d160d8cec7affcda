"""What changed in a store's files between two moments, as records and units.

Decodes both states and has a line for each change: the records that the log gained and
lost, the units of each queue, the fields of the checkpoint; other files by their
lengths.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from crashmq.models.files.checkpoint import CheckpointImage, Mark
from crashmq.models.files.queue import QueueImage, Unit
from crashmq.models.files.record import Record
from crashmq.models.files.store_image import Bytes, StoreImage, read_store

_DECODED = ("commitlog/", "consumequeue/", "checkpoint")


@dataclass(frozen=True, slots=True)
class Changes:
    """What one image has and the other has not; records and units in log order."""

    before: StoreImage
    after: StoreImage

    @property
    def cut(self) -> list[Record]:
        """The records that are gone."""
        kept = set(self.after.commit_log.records)
        return [one for one in self.before.commit_log.records if one not in kept]

    @property
    def added(self) -> list[Record]:
        """The records that are new."""
        known = set(self.before.commit_log.records)
        return [one for one in self.after.commit_log.records if one not in known]

    def queues(self) -> Iterator[tuple[str, list[Unit], list[Unit]]]:
        """Each queue that changed, with the units that it lost and those it gained."""
        ours, theirs = self.before.queue_at, self.after.queue_at
        for key in sorted({*ours, *theirs}):
            old, new = _units(ours.get(key)), _units(theirs.get(key))
            if old != new:
                lost = [unit for unit in old if unit not in set(new)]
                gained = [unit for unit in new if unit not in set(old)]
                yield f"{key[0]}/{key[1]}", lost, gained

    def others(self) -> Iterator[str]:
        """The other files that were made, removed or changed."""
        ours, theirs = self.before.files, self.after.files
        for path in sorted({*ours, *theirs}):
            if path not in theirs:
                yield f"{path}: removed"
            elif path not in ours:
                yield f"{path}: made, {len(theirs[path])} B"
            elif not path.startswith(_DECODED) and bytes(ours[path]) != bytes(
                theirs[path]
            ):
                first = _first_difference(bytes(ours[path]), bytes(theirs[path]))
                yield f"{path}: {len(theirs[path])} B, changed from byte {first} on"


def changes(before: Mapping[str, Bytes], after: Mapping[str, Bytes]) -> Changes:
    """What changed between two states of a store's files."""
    return Changes(read_store(before), read_store(after))


def change_lines(seen: Changes) -> Iterator[str]:
    """A line for each thing that changed."""
    yield from (f"- record {_record(one)}" for one in seen.cut)
    yield from (f"+ record {_record(one)}" for one in seen.added)
    for name, lost, gained in seen.queues():
        yield from (f"- unit   {name} {_unit(one)}" for one in lost)
        yield from (f"+ unit   {name} {_unit(one)}" for one in gained)
    yield from (f"~ checkpoint {one}" for one in _checkpoint(seen))
    yield from (f"~ {one}" for one in seen.others())


def change_summary(seen: Changes) -> str:
    """What a start did to files, in one line; "changed nothing" if so."""
    said = []
    if seen.cut:
        size = sum(one.size for one in seen.cut)
        at = seen.cut[0].phy_offset
        said.append(f"cut {_many(len(seen.cut), 'record')}, {size} B, at {at}")
    if seen.added:
        said.append(f"brought {_many(len(seen.added), 'record')} back")
    for name, lost, gained in seen.queues():
        if lost:
            said.append(f"cut {_many(len(lost), 'unit')} of {name}")
        if gained:
            said.append(f"built {_many(len(gained), 'unit')} of {name}")
    fields = [one.partition(" ")[0] for one in _checkpoint(seen)]
    if fields:
        said.append(f"wrote the checkpoint's {', '.join(fields)}")
    said += list(seen.others())
    return "; ".join(said) or "changed nothing"


def _units(queue: QueueImage | None) -> tuple[Unit, ...]:
    return queue.units if queue else ()


def _record(one: Record) -> str:
    where = f"{one.topic}/{one.queue_id} #{one.queue_offset}"
    return f"@{one.phy_offset} {one.size} B {where}"


def _unit(one: Unit) -> str:
    tags = f" tags_code {one.tags_code}" if one.tags_code else ""
    return f"#{one.queue_offset} -> @{one.phy_offset} {one.size} B{tags}"


def _checkpoint(seen: Changes) -> Iterator[str]:
    if not (seen.before.has_checkpoint and seen.after.has_checkpoint):
        return  # that it was made or removed is said of the file
    old, new = seen.before.checkpoint, seen.after.checkpoint
    yield from _mark(old.mark, new.mark)
    for name in CheckpointImage._fields:
        was, is_now = getattr(old, name), getattr(new, name)
        if was != is_now and name != "mark":
            yield f"{name} {was} -> {is_now}"


def _mark(was: Mark | None, is_now: Mark | None) -> Iterator[str]:
    for name in Mark._fields:
        old, new = getattr(was, name, "none"), getattr(is_now, name, "none")
        if old != new:
            yield f"{name} {old} -> {new}"


def _first_difference(one: bytes, other: bytes) -> int:
    for at, (mine, theirs) in enumerate(zip(one, other, strict=False)):
        if mine != theirs:
            return at
    return min(len(one), len(other))


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
