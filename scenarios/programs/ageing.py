"""Phrases in which time passes, files fill, and data becomes durable."""

from __future__ import annotations

from typing import Final

from crashmq.models.ops import (
    AdvanceClock,
    DeleteManually,
    FillDisk,
    Restart,
    RunService,
    ServiceName,
)
from crashmq.scenarios.programs.draft import THOROUGH_MS, Draft
from crashmq.scenarios.programs.space import FLUSHED_BY

ROLLED_BY = 8
AGED_FLUSHES = (9, 2, 1)  # files that are flushed before the messages grow old
YOUNG_MAX = 3  # messages that follow the old ones
TICKS_MS = (500, 1000, 1500, 200, 1900)  # between two turns of one service
TICKS = (2, 5)  # how many, at least and at most

TICKING = 4  # one wait of so many is a service's that is turned often
FULL_OF_OLD = 4  # one full disk of so many is so while files may go

AGAIN: Final = 4
"""One phrase of a service in so many has another round."""

SOON_MS: Final = (0, 1, 100, 199, 200, 400, 500, 999, 1000, 1500, 1999, 2000, 2001)
"""Around the intervals after which a flush or a commit takes everything."""

BACK_MS: Final = (1, 100, 500, 5_000, 60_000, 86_400_000)
"""How far back the clock is set between two rounds, where clocks are set back."""

WRITES_THE_LOG: Final = ("flush_commit_log", "commit", "reput", "allocate")
"""Those whose work is there as soon as a message is put."""

LEAVES_FOR_LATER: Final = ("flush_commit_log", "commit", "flush_consume_queue")
"""Those with an interval after which they take everything."""

PUTS_MAX: Final = 12


def perhaps_dispatch(draft: Draft) -> None:
    """Add a round of dispatch, as often as the space says."""
    if draft.chance.pick(draft.space.served_first):
        draft.add(RunService("reput"))


def settle(draft: Draft, path: str) -> None:
    """Add ops: restart the store, then as ``tell``, with the flush of ``path``."""
    draft.add(Restart())
    tell(draft, FLUSHED_BY.get(path, "flush_commit_log"))


def tell(draft: Draft, service: ServiceName) -> None:
    """Add ops: a put, and what makes it durable and records that in the checkpoint."""
    draft.add(draft.drawn.put(), RunService("reput"), AdvanceClock(THOROUGH_MS))
    draft.add(RunService("flush_commit_log"), RunService(service))
    draft.add(RunService("checkpoint"))


def clean_now(draft: Draft) -> None:
    """Add ops: request a deletion, and a round of the cleaner that must do it."""
    draft.add(DeleteManually(), RunService("clean_commit_log"))


def wait(draft: Draft) -> None:
    """Add ops that let time pass: alone, amid puts and rounds, or by a service."""
    chance, drawn = draft.chance, draft.drawn
    if chance.one_in(TICKING):
        _tick(draft)
        return
    waiting = AdvanceClock(chance.number(draft.space.clock_steps_ms))
    paced = draft.space.paced
    # One question the less where there is no choice.
    if len(paced) == 1 or not chance.pick(paced):
        draft.add(waiting)
        return
    before = [drawn.put(), drawn.round(), drawn.round()]
    after = [drawn.put(), drawn.round(), drawn.round(), drawn.round()]
    draft.add(*before, waiting, *after)


def _tick(draft: Draft) -> None:
    """Add ops: rounds of one service, with time between them."""
    turn, ticks = draft.drawn.round(), draft.chance.pick(TICKS_MS)
    draft.add(draft.drawn.put())
    for _ in range(draft.chance.integer(*TICKS)):
        draft.add(AdvanceClock(ticks), turn)


def age(draft: Draft) -> None:
    """Add ops: messages are dispatched and grow old, and cleaners run.

    The last files are flushed or not, and young messages may follow.
    """
    grow_old(draft)
    for _ in range(draft.chance.integer(0, YOUNG_MAX)):
        draft.add(draft.drawn.put())
    draft.add(DeleteManually())


def grow_old(draft: Draft) -> None:
    """Add ops: fill a log file, flush and dispatch it, and let time pass."""
    flushes = draft.chance.pick(AGED_FLUSHES)
    roll(draft)
    flush_and_dispatch(draft, flushes)
    pass_expiry(draft)


def pass_expiry(draft: Draft) -> None:
    """Add an op that lets so much time pass that messages may have expired."""
    draft.add(AdvanceClock(draft.chance.number(draft.space.expiry_steps_ms)))


def flush_and_dispatch(draft: Draft, flushes: int) -> None:
    """Add ``flushes`` rounds of the flush, and one of dispatch."""
    if draft.setup.transient_store_pool:
        draft.add(RunService("commit", flushes))
    draft.add(RunService("flush_commit_log", flushes), RunService("reput"))


def roll(draft: Draft) -> None:
    """Add puts until one begins another log file, but not more than ``ROLLED_BY``."""
    file = draft.drawn.whereabouts.file
    for _ in range(ROLLED_BY):
        draft.add(draft.drawn.put())
        if draft.drawn.whereabouts.file > file:
            break


def fill(draft: Draft) -> None:
    """Add ops: fill the disk or free it, then let the cleaner or a put notice."""
    percents, chance = draft.space.fill_percents, draft.chance
    if chance.one_in(FULL_OF_OLD):
        grow_old(draft)
    if chance.coin():
        draft.add(FillDisk(max(percents)), RunService("clean_commit_log"))
    draft.add(FillDisk(chance.pick(percents)))
    if chance.coin():
        draft.add(RunService("clean_commit_log"), draft.drawn.put())


def serve(draft: Draft) -> None:
    """Add rounds of a service; or a round, ops that give it work, and a round."""
    if not draft.chance.one_in(AGAIN):
        draft.add(draft.drawn.service())
        return
    drawn, chance = draft.drawn, draft.chance
    one = drawn.round()
    lately = [one for one in draft.space.services if one in LEAVES_FOR_LATER]
    if lately and chance.coin():
        one = RunService(chance.pick(tuple(dict.fromkeys(lately))))
    service = one.service
    draft.add(one)
    if chance.coin():
        draft.add(*[drawn.put()] * chance.integer(1, PUTS_MAX))
    else:
        draft.add(drawn.put())
    if service not in WRITES_THE_LOG:
        if chance.coin():
            draft.add(RunService("flush_commit_log"))
        draft.add(RunService("reput"))
    soon = chance.pick(SOON_MS)
    if min(draft.space.clock_steps_ms.special) < 0 and chance.coin():
        soon = -chance.pick(BACK_MS)
    if soon:
        draft.add(AdvanceClock(soon))
    draft.add(one)
