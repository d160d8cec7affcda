"""Phrases in which a directory is found that no durable mark says is the store's own.

A directory that another program wrote has no mark, or one that is older than its files.
Here the store's own directory becomes such a one: the checkpoint goes, loses its mark,
or is put back as it was at an earlier stop. Then files change as they may anywhere:
each file and each kind of change is drawn by itself, and so are files of other layouts.
If a start refuses that, all is put back, and the history goes on with the next changes.

Source: rules E6 and E9 of the disk fault model.
"""

from __future__ import annotations

from typing import Literal

from crashmq.models.ops import Damage, DamageKind, During, Op, PlantFile, Restart
from crashmq.scenarios.programs.ageing import flush_and_dispatch, tell
from crashmq.scenarios.programs.crashing import crash_during
from crashmq.scenarios.programs.draft import Draft
from crashmq.scenarios.programs.losing import end_of_life
from crashmq.scenarios.programs.space import often

CHECKPOINT = "checkpoint"
KEPT = "checkpoint.kept"
"""Where a copy of an earlier checkpoint lies; no store has a file of that name."""

SLOTS_AT, SLOTS_END = 512, 1536  # of the mark, behind the fields of RocketMQ

LOG_FILES = often((0, 3), (2, 2), (4, 4), (6, 1))
"""How many more files a log has; after an orderly end RocketMQ reads its last three."""

SMALLER = often((0, 3), (1, 2), (2, 1))
"""How many records such a file has before the one that fills it."""

MarkLeft = Literal["none", "no file", "older", "newest"]
MARKS_LEFT: tuple[MarkLeft, ...] = often(
    ("none", 5), ("no file", 2), ("older", 3), ("newest", 2)
)

FILES = often(
    ("commitlog[0]", 4),
    ("commitlog[1]", 3),
    ("commitlog[-1]", 3),
    ("commitlog[-2]", 1),
    ("commitlog[-3]", 1),
    ("consumequeue[0]", 3),
    ("consumequeue[1]", 2),
    ("consumequeue[-1]", 3),
    ("index[0]", 1),
    ("index[-1]", 1),
    ("abort", 1),
    (CHECKPOINT, 1),
)
"""What a change is of; each with each kind of change."""

CHANGES: tuple[DamageKind, ...] = often(
    ("zero", 3), ("flip", 3), ("truncate", 3), ("delete", 2), ("repeat", 2)
)

COUNTS = often((0, 2), (1, 5), (2, 3), (3, 1))
"""How many changes a directory has seen."""

PLANTED = 3
"""One change of so many adds a file."""

EMPTIED = 8
"""Of so many changes that add no file one takes all files of a folder away."""

BROKEN_OFF = 4
"""Of so many others one breaks the log off before its newest file."""

_UNMADE: tuple[tuple[DamageKind, int], ...] = (
    ("delete", 0),
    ("zero", 0),
    ("zero", 4),
    ("flip", 1),
)
BREAKS: tuple[Damage, ...] = tuple(
    Damage(f"commitlog[{number}]", kind, 0, size)
    for number in (-2, -2, -3, 1)
    for kind, size in _UNMADE
)
"""A file that is missing or empty, or whose first record nobody can read."""

FOLDERS = often(("commitlog", 2), ("consumequeue", 1))
FILES_MAX = 9
"""More files than that no folder has here, as a rule."""

CUT_SHORT = 4
"""One of so many starts on such a directory is cut short by a crash."""

AGAIN = often((0, 2), (1, 3), (2, 1))
"""How often the directory changes again after a start on it."""


def disown(draft: Draft) -> None:
    """Add ops: a directory without a mark of its own, its starts, puts and changes."""
    chance = draft.chance
    _fill_files(draft)
    if chance.coin():
        flush_and_dispatch(draft, 9)
    left: MarkLeft = chance.pick(MARKS_LEFT)
    if left == "older":
        _keep_the_mark(draft)
    end_of_life(draft)
    draft.add(*_with_mark(left))
    _start(draft, _change(draft))
    for _ in range(chance.pick(AGAIN)):
        draft.add(draft.drawn.put())
        if chance.coin():
            tell(draft, "flush_consume_queue")
        end_of_life(draft)
        if chance.coin():
            draft.add(*_with_mark(left))
        _start(draft, _change(draft))


def _fill_files(draft: Draft) -> None:
    """Add puts that fill log files, each with one record or with a few."""
    chance, drawn = draft.chance, draft.drawn
    files = chance.pick(LOG_FILES)
    for _ in range(files):
        draft.add(*[drawn.put() for _ in range(chance.pick(SMALLER))])
        draft.add(drawn.put_at_the_end())
    if files and chance.coin():
        draft.add(drawn.put())  # alone in the newest file


def _keep_the_mark(draft: Draft) -> None:
    """Add ops: a stop after which the checkpoint is copied, and a life after that."""
    end_of_life(draft)
    draft.add(PlantFile(KEPT, "copy", source=CHECKPOINT), Restart())
    for _ in range(draft.chance.integer(1, 4)):
        draft.add(draft.drawn.put())
    if draft.chance.coin():
        tell(draft, "flush_consume_queue")


def _with_mark(left: MarkLeft) -> tuple[Op, ...]:
    match left:
        case "none":
            return (Damage(CHECKPOINT, "zero", SLOTS_AT, SLOTS_END - SLOTS_AT),)
        case "no file":
            return (Damage(CHECKPOINT, "delete"),)
        case "older":
            old = PlantFile(CHECKPOINT, "copy", source=KEPT)
            return Damage(CHECKPOINT, "delete"), old
        case "newest":
            return ()


def _change(draft: Draft) -> list[PlantFile | Damage]:
    """Add ops: some changes; returns them."""
    chance = draft.chance
    changes: list[PlantFile | Damage] = []
    for _ in range(chance.pick(COUNTS)):
        if chance.one_in(PLANTED):
            changes.append(chance.pick(draft.space.plants))
        elif chance.one_in(EMPTIED):
            first = Damage(f"{chance.pick(FOLDERS)}[0]", "delete")
            changes += [first] * FILES_MAX
        elif chance.one_in(BROKEN_OFF):
            changes.append(chance.pick(BREAKS))
        else:
            changes.append(_changed(draft))
    draft.add(*changes)
    return changes


def _changed(draft: Draft) -> Damage:
    """One change of one file: all of it, its end, or a place that says something."""
    space, chance = draft.space, draft.chance
    file, kind = chance.pick(FILES), chance.pick(CHANGES)
    if kind == "delete":
        return Damage(file, kind)
    at = chance.number(space.damage_offsets)
    if kind == "truncate":
        return Damage(file, kind, at)
    place, width = draft.drawn.whereabouts.place_of(file, at, chance)
    size = chance.pick((width or 1, *space.damage_sizes))
    return Damage(file, kind, place, size)


def _start(draft: Draft, changes: list[PlantFile | Damage]) -> None:
    """Add ops: a start, perhaps cut short; if it refuses, one on what is put back.

    A start that fills up a file that was cut is not cut short itself: the next one
    cannot see that what it filled was never synced.
    """
    chance, space = draft.chance, draft.space
    damages = [one for one in changes if isinstance(one, Damage)]
    planted = [one for one in changes if isinstance(one, PlantFile)]
    may_end = not any(one.kind == "truncate" for one in damages)
    if may_end and space.crash_kinds and chance.one_in(CUT_SHORT):
        crash_during(draft, Restart(), chance.number(space.at_actions.restart))
    elif may_end and space.faults and chance.one_in(CUT_SHORT):
        at_action = chance.number(space.at_actions.restart)
        draft.add(During(Restart(), at_action, draft.drawn.fault()))
    taken = [Damage(one.path, "delete") for one in planted]
    draft.add(Restart(), Damage("", "restore"), *taken, Restart())
