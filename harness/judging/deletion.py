"""What the judge knows of deletion and of the disk's room, and holds against laws.

Plain state beside the reference model: the clock at the last step's end, whether
somebody has asked for a deletion, whether puts may have been stopped. Nothing here is
asked of a store that neither cleans nor has a disk with an end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from harness.interpreter import Report
from harness.judging.topics import Deletions, judge_memory
from models.invariants import deletion
from models.observations import Done, Observation, Positions, Ran, World
from models.ops import DeleteManually, Event, FillDisk, RunService, parts
from models.plain_state import fork_of_fields
from models.program import HOUR_MS, Setup
from models.reference import ReferenceModel
from models.store_image import Record, StoreImage

ROUNDS_OF_A_REQUEST = 20
DELETE_FROM_PERCENT, FORCE_FROM_PERCENT, STOP_FROM_PERCENT = 75, 85, 90


def runs(op: Event, service: str) -> bool:
    """Whether an op, or one that is part of it, turns a service."""
    if isinstance(op, RunService):
        return op.service == service
    return any(runs(part, service) for part in parts(op))


def _fills(op: Event) -> bool:
    return isinstance(op, FillDisk) or any(map(_fills, parts(op)))


def _has_refused(report: Report) -> bool:
    return any(answer is None or answer.status != "PUT_OK" for _, answer in report.puts)


def _asks(op: Event) -> bool:
    return isinstance(op, DeleteManually) or any(map(_asks, parts(op)))


@dataclass(slots=True)
class DeletionState:
    """Between two steps of one store.

    Attributes:
        now_ms: the wall clock at the end of the last step.
        used: bytes of the disk in use then.
        percent: how full it was.
        asked_least: rounds for which a deletion is asked for, at least.
        asked_most: the same, at most: a request holds for so many rounds.
        may_be_full: puts may have been stopped by now.
        must_be_full: a round of the cleaner has stopped them.
        fills_amid: others fill the disk amid the step's own op.
    """

    setup: Setup = field(compare=False)
    now_ms: int = 0
    used: int = 0
    percent: int = 0
    asked_least: int = 0
    asked_most: int = 0
    may_be_full: bool = False
    must_be_full: bool = False
    fills_amid: bool = False

    def fork(self) -> DeletionState:
        """One that goes on by itself."""
        return fork_of_fields(self)

    def begin_step(self, op: Event) -> None:
        """Take note of what a step does to the disk, before it is judged."""
        self.fills_amid = _fills(op) and not isinstance(op, FillDisk)
        self.may_be_full = self.may_be_full or self.fills_amid

    def end_step(self, op: Event, report: Report) -> None:
        """Take note of how a step has left clock and disk."""
        if not (self.setup.cleans or self.setup.disk_capacity):
            return
        world, lacks_room = report.world, self.is_tight(report.world)
        self.now_ms, self.used = world.now_ms, world.used
        if report.starts or report.crash is not None:
            self.asked_least = self.asked_most = 0
            self.may_be_full = self.must_be_full = False
        before, self.percent = self.percent, world.percent
        if runs(op, "clean_commit_log") and not isinstance(report.observation, Ran):
            # Nobody knows what the disk was like when it looked: it may have stopped
            # puts before it made room.
            was_tight = max(before, self.percent) > FORCE_FROM_PERCENT
            lives = report.crash is None and was_tight
            self.may_be_full = self.may_be_full or self.must_be_full or lives
            self.must_be_full = False
            self.asked_least = 0
        elif runs(op, "clean_commit_log"):
            least = STOP_FROM_PERCENT
            if self.must_be_full:  # puts begin again only once there is more room
                least = FORCE_FROM_PERCENT
            self.must_be_full = min(before, self.percent) > least
            if max(before, self.percent) <= FORCE_FROM_PERCENT:
                self.may_be_full = False
        self._count_requests(op, report.observation)
        if report.starts:
            self.must_be_full = False
        has_looked = runs(op, "clean_commit_log") or _has_refused(report)
        if self.fills_amid or (has_looked and lacks_room):
            self.may_be_full = True

    def _count_requests(self, op: Event, seen: Observation) -> None:
        """Take note of a request, and of rounds that it has held for.

        A round without work is the last one of its op.
        """
        if isinstance(op, RunService) and isinstance(seen, Ran):
            if op.service == "clean_commit_log":
                rounds = op.times if seen.work else 1
                self.asked_least = max(0, self.asked_least - rounds)
                self.asked_most = max(0, self.asked_most - 1)
        elif _asks(op):
            self.asked_most = ROUNDS_OF_A_REQUEST
            if isinstance(op, DeleteManually) and isinstance(seen, Done):
                self.asked_least = ROUNDS_OF_A_REQUEST

    def is_tight(self, world: World) -> bool:
        """Whether a log file more would fill the disk, before the step or after it."""
        with_file = (max(self.used, world.used) + self.setup.log_file_size) * 100
        return with_file > world.total * STOP_FROM_PERCENT if world.total else False

    def old_ms(self, world: World) -> int:
        """What was stored until then has expired."""
        return world.now_ms - self.setup.reserved_hours * HOUR_MS

    def may_go_until(self, op: Event, world: World, later_ms: int = 0) -> int | None:
        """What was stored until then may go, in a round so much later; None: all."""
        return None if self._may_force(op, world) else self.old_ms(world) + later_ms

    def _may_force(self, op: Event, world: World) -> bool:
        """Whether files may go that have not expired."""
        fullest = max(self.percent, world.percent)
        # What others write beside a cleaner fills the disk too, until it has made room.
        is_amid = self.fills_amid or (world.total and not isinstance(op, RunService))
        may_be_full = fullest > FORCE_FROM_PERCENT or is_amid
        return self.setup.cleans_forcibly and bool(may_be_full)

    def is_due(self, world: World) -> bool:
        """Whether a round that has just ended was to delete what had expired."""
        is_full = self.percent > DELETE_FROM_PERCENT
        return self._is_hour(world.now_ms) or is_full or self.asked_least > 0

    def may_be_due(self, op: Event, world: World) -> bool:
        """Whether a round of the step that ends now may delete what has expired."""
        if not isinstance(op, RunService):
            return True  # somebody else has moved the clock, or asked
        is_hour = self._is_hour(self.now_ms) or self._is_hour(world.now_ms)
        is_full = max(self.percent, world.percent) > DELETE_FROM_PERCENT
        return is_hour or is_full or self.asked_most > 0

    def _is_hour(self, now_ms: int) -> bool:
        hours = [int(text) for text in self.setup.delete_hours.split(";")]
        return now_ms // HOUR_MS % 24 in hours


def judge_cut_short(
    op: Event,
    report: Report,
    state: DeletionState,
    model: ReferenceModel,
) -> None:
    """Take note of a cleaner that a crash or an error may have ended amid its work.

    Or whose store stopped beside it, so that nobody says any more how far it came.
    """
    is_whole = report.crash is None and not report.starts and not report.failures
    is_whole = is_whole and not report.is_stopping
    if not is_whole and runs(op, "clean_commit_log") and state.setup.cleans:
        # A round may have begun a little later than the op.
        old_ms = state.may_go_until(op, report.world, later_ms=HOUR_MS)
        until = model.expirable_until(state.setup.log_file_size, old_ms)
        model.may_expire = max(model.may_expire, until)


def adopt_after_deletion(
    checks: dict[str, int],
    model: ReferenceModel,
    image: StoreImage,
    records: Sequence[Record],
    is_damaged: bool,
    disk_failed: bool,
    log_end: int,
    later: Deletions = (),
) -> None:
    """Let the model adopt what a start found, once its beginning was judged.

    The log ended at ``log_end`` then; deletions ``later`` in the step came after.

    Where files were changed from outside nothing is judged; where the disk failed in
    the life before, a deletion may have been lost.
    """
    log_min = image.commit_log.min_phy_offset
    built = {queue.key: queue.end for queue in image.consume_queues}
    is_gone = is_damaged and not image.commit_log.files
    if is_gone:
        # Then no unit of theirs has a record, nor did one expire.
        built = {queue.key: queue.first_number for queue in image.consume_queues}
    if not is_damaged:
        deletion.log_begins_where_it_was_left.hold(
            checks, log_min, model.min_certain, model.may_expire
        )
    found = image.commit_log.deleted
    deleted = judge_memory(checks, model, found, later, built, log_min, log_end)
    model.adopt(records, built, log_min, deleted)
    if not disk_failed:
        model.min_certain = log_min
    model.min_certain = min(model.min_certain, log_min)
    if not is_damaged:
        ends = model.ends_of_empty_queues()
        known = {key: max(end, model.numbered.get(key, 0)) for key, end in ends.items()}
        deletion.empty_queues_keep_their_end.hold(checks, built, known)
    model.forget_lost_numbers()
    if is_gone:
        model.number_empty_queues(built)
    elif is_damaged and log_min:
        queues = image.consume_queues
        model.number_empty_queues(
            {queue.key: queue.end_of_last_file for queue in queues}
        )


def judge_deletion(
    checks: dict[str, int],
    op: Event,
    report: Report,
    state: DeletionState,
    model: ReferenceModel,
    positions: Positions,
    image: Callable[[], StoreImage] | None,
) -> None:
    """Judge where the log begins now, before the model takes note of it.

    ``image`` reads the files; None: the disk failed, so they say nothing.
    """
    if not report.starts and positions.min_phy_offset > model.log_min:
        deletion.only_what_has_expired_goes.hold(
            checks,
            positions,
            model.stored_between(model.log_min, positions.min_phy_offset),
            state.may_go_until(op, report.world),
            is_cleaning=runs(op, "clean_commit_log"),
            is_due=state.may_be_due(op, report.world),
        )
    if state.setup.cleans and not report.interrupted and image is not None:
        model.min_certain = max(0, positions.min_phy_offset)
        _judge_round(checks, op, report, state, image, positions)


def _judge_round(
    checks: dict[str, int],
    op: Event,
    report: Report,
    state: DeletionState,
    image: Callable[[], StoreImage],
    positions: Positions,
) -> None:
    """Judge what a whole round of a cleaner has left, with nobody stepping in."""
    if not (isinstance(op, RunService) and isinstance(report.observation, Ran)):
        return
    if op.service == "clean_commit_log" and not report.observation.work:
        log = image().commit_log
        if log.files and state.is_due(report.world):
            deletion.what_has_expired_goes.hold(
                checks,
                log,
                positions,
                report.first_mtime_ms,
                state.old_ms(report.world),
            )
    if op.service == "clean_consume_queue":
        deletion.expired_queue_files_go.hold(checks, image())
        slots = state.setup.index_slots
        deletion.expired_side_files_go.hold(checks, image(), slots)
