"""The walk for an opaque store, whose files and positions do not show its content.

Only its answers do. An acknowledged message is in its queue, in order, until something
happens that makes this uncertain. From then on the queue, or every queue, is in doubt,
and laws about its content are not asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from crashmq.models.files.store_image import StoreImage
from crashmq.models.history import Life, Step
from crashmq.models.knowledge.facts import shows_content
from crashmq.models.knowledge.knowledge import EVERY_QUEUE, End, Knowledge
from crashmq.models.knowledge.moments import (
    At,
    FilesFound,
    Moment,
    OpOver,
    PositionsSeen,
    PullOver,
    PutOver,
    PutsOrdered,
    PutsOver,
    StartOver,
    StepOver,
    StopOver,
)
from crashmq.models.knowledge.walk import walk
from crashmq.models.knowledge.walk_beside import (
    forget_seen,
    seen_again,
    seen_before,
)
from crashmq.models.messages import MessageToPut
from crashmq.models.observations import Pulled, Put, Refused, Started
from crashmq.models.ops import Capability, PullMessage

Walk: TypeAlias = Callable[[At], Iterator[Moment]]


def walk_for(capabilities: frozenset[Capability]) -> Walk:
    """The walk for a subject with these capabilities.

    ``walk`` if files and positions show its content, else ``walk_opaque``.
    """
    return walk if shows_content(capabilities) else walk_opaque


def walk_opaque(at: At) -> Iterator[Moment]:
    """Update what is known by each event of a step, as ``walk`` does."""
    step, known = at.step, at.known
    if step.raised or step.starts:
        yield OpOver(*at)
    known.expiry.begin_step(step)
    _doubt_what_was_disturbed(at)
    yield from _walk_life(at, step.ended)
    if step.crash is None:
        yield from _walk_starts(at)
        if step.starts and not step.is_alone:
            known.saw_faults(
                step, at.look.unsynced_from
            )  # it may have met that start too
        if step.begun is not None:
            yield from _walk_life(at, step.begun)
        yield from _walk_running(at)
    else:
        _crash(known, step)
    known.expiry.end_step(step)
    if known.tampering.foreign:
        yield StepOver(*at)


def _doubt_what_was_disturbed(at: At) -> None:
    """Doubt every queue after damage of files or a disk fault."""
    step, known = at.step, at.known
    known.saw_failures(step)
    if not step.is_alone:
        known.saw_faults(step, at.look.unsynced_from)
    if step.damaged or step.planted:
        known.tampering.saw(
            step,
            at.look.all_files(),
            has_index=known.setup.has_index,
            ended_in_order=known.end is End.ORDERLY,
        )
    tells = Capability.TELLS_POSITIONS in known.capabilities
    expires = known.setup.cleans and "clean_commit_log" in step.services and not tells
    if step.met or step.damaged or step.planted or step.deletions or expires:
        known.in_doubt |= {EVERY_QUEUE}


def _walk_life(at: At, life: Life) -> Iterator[Moment]:
    """Walk the puts and stops of one run."""
    step, known = at.step, at.known
    if life.puts:
        yield PutsOver(*at)
    answered: list[tuple[MessageToPut, Put]] = []
    for message, answer in life.puts:
        if answer is None or answer.status == "UNKNOWN_ERROR":
            known.in_doubt |= {(message.topic, message.queue_id)}
            known.model.in_flight.append(message)
        else:
            answered.append((message, answer))
    answered.sort(key=lambda pair: pair[1].phy_offset)
    for message, answer in answered:
        yield _put_over(at, message, answer)
        if answer.phy_offset >= 0:
            known.model.put(message, answer, known.expiry.now_ms)
    if step.is_together and life.puts:
        spans = zip([answer for _, answer in life.puts], life.spans, strict=True)
        ended = [(answer, span) for answer, span in spans if answer is not None]
        yield PutsOrdered(*at, ended)
    for stop in life.stops:
        yield StopOver(*at, stop)
        known.model.stopped(known.model.end, clean=stop.clean)
        known.end = End.ORDERLY if stop.clean else End.ABORT_STAYS
        if not stop.clean and (known.disk_failed or step.fails_calls):
            known.end = End.UNKNOWN
        known.positions = None


def _put_over(at: At, message: MessageToPut, answer: Put) -> PutOver:
    """The moment of a put's answer; any place in the log is right."""
    step, known = at.step, at.known
    model = known.model
    key = (message.topic, message.queue_id)
    is_rocketmq = Capability.STORES_AS_ROCKETMQ in known.capabilities
    return PutOver(
        *at,
        message,
        answer,
        place=-1,
        next_queue_offset=model.next_queue_offset(key) if message.has_place else 0,
        unseen=0,
        size=model.record_size(message) if is_rocketmq else answer.size,
        may_refuse=known.may_refuse_puts(step) or known.expiry.is_tight(step.world),
    )


def _crash(known: Knowledge, step: Step) -> None:
    """Note a crash: acknowledged messages survive a kill, but not power loss."""
    known.crashed(step, [])
    crash = step.crash
    assert crash is not None, step
    forget_seen(step, known)
    if crash.kind == "power_loss" or known.model.buffers_appends:
        known.in_doubt |= {EVERY_QUEUE}


def _walk_starts(at: At) -> Iterator[Moment]:
    """Walk the starts of a step: what they found, and whether they may refuse."""
    step, known = at.step, at.known
    for start in step.starts:
        found, seen = at.look.image_of(start.found), start.seen
        yield FilesFound(*at, found)
        if not isinstance(seen, Started | Refused):
            known.end = End.UNKNOWN  # it failed somewhere on its way
            continue
        is_touched = bool(known.tampering.damaged) or step.fails_reads
        if not (is_touched or start.unreadable or known.disk_failed):
            yield _start_over(at, seen, found)
        if isinstance(seen, Started):
            known.tampering.mended()
            known.promises.renewed()
            known.failed_parts = step.failed_since_its_start
            known.model.begin_life()
            known.end = End.ABORT_STAYS


def _start_over(at: At, seen: Started | Refused, found: StoreImage) -> StartOver:
    """The moment of a start on undamaged files."""
    return StartOver(
        *at,
        found,
        seen,
        at_full_size=found,
        log_is_damaged=False,
        misfit="",
        lost="",
        is_foreign=False,
        lost_its_mark=False,
        is_short=False,
        is_windowed=False,
        unreadable=(),
    )


def _walk_running(at: At) -> Iterator[Moment]:
    """Walk the positions of a running store, and the reads of it."""
    step, known, now = at.step, at.known, at.now
    if now.max_phy_offset >= 0:
        yield PositionsSeen(*at)
        known.model.saw_positions(now)
        known.positions = now
    else:
        known.model.reput_from_offset = known.model.end
    for read, answer in step.reads:
        if isinstance(read, PullMessage) and isinstance(answer, Pulled):
            queue = known.model.queues.get((read.topic, read.queue_id), [])
            yield PullOver(*at, read, answer, queue)
    lives = [step.ended] if step.begun is None else [step.ended, step.begun]
    yield from seen_before(at, [span for life in lives for span in life.reads])
    forget_seen(step, known)
    for read, answer in step.reads if step.is_alone else ():
        if isinstance(read, PullMessage) and isinstance(answer, Pulled):
            yield from seen_again(at, read, answer)
