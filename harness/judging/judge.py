"""The judge: holds every step against the reference model and the laws.

Laws of the trace watch each step, laws of the files each start, each stop and the
end. The first breach is raised as its law's own exception; a law that fails itself is
raised as unknown, never passed over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from harness.disk.profiles import PROFILES
from harness.interpreter import Report
from harness.judging import damage
from harness.judging.around import adopts_around, note_damage
from harness.judging.claims import judge_claims, judge_files, tears_the_checkpoint
from harness.judging.deletion import (
    DeletionState,
    adopt_after_deletion,
    judge_cut_short,
    judge_deletion,
)
from harness.judging.ends import (
    judge_next_start,
    judge_raised,
    judge_round,
    judge_start,
    judge_stop,
    takes_abort,
)
from harness.judging.foreign import Foreign
from harness.judging.lifetime import Lifetime
from harness.judging.lookups import Seen, is_half_dispatched, seen_before
from harness.judging.marks import judge_marks
from harness.judging.medium import judge_medium
from harness.judging.promises import SPOILT, Promises, forgets
from harness.judging.pulls import judge_proofs
from harness.judging.puts import (
    Puts,
    Putting,
    judge_batches,
    judge_puts,
    puts_around_the_start,
)
from harness.judging.queries import indexed_up_to
from harness.judging.reading import Reading, judge_reads
from harness.judging.terms import End, LookedAt, Reader, judged_of
from harness.judging.topics import (
    Deletions,
    deletions_around_the_start,
    judge_deletions,
    judge_left_overs,
)
from models.image.checkpoint import CheckpointImage
from models.invariants import recovery, statistics
from models.invariants.around import Spoilt
from models.invariants.checkpoint import checkpoint_is_up_to_date
from models.invariants.judged import Judged
from models.messages import MessageToPut
from models.observations import (
    Damaged,
    Deleted,
    Observation,
    Positions,
    Ran,
    Refused,
    Started,
    Statistics,
    Stopped,
)
from models.ops import CrashKind, Event, RunService
from models.plain_state import forked
from models.program import Setup
from models.reference import ReferenceModel
from models.store_image import StoreImage, read_store

# Of a judge's state, what forks share and what decides nothing; an image is a cache.
_SHARED = frozenset(
    {"checks", "_image", "_left_by_start", "_read", "_setup", "_subject"}
)


class Judge:
    """What is known of one store's history, and the laws it is held against.

    It can be forked at any step, so what it keeps is plain state: containers of values
    that nobody changes, or objects with a ``fork`` of their own.

    Attributes:
        model: what was appended and must survive.
        checks: how often each law was judged.
        disk_failed: a fault was set off in this life of the store.
        spoilt: what was damaged of the log, and is served around.
        is_unsure: the log holds rot that nothing could show, so nothing can be judged
            any more.
    """

    def __init__(self, setup: Setup, subject: LookedAt) -> None:
        self.model = ReferenceModel(
            setup.flush_mode,
            buffers_appends=setup.transient_store_pool,
            multi_dispatch=setup.multi_dispatch,
            prop_crc=setup.prop_crc,
        )
        self.checks: dict[str, int] = {}
        self._subject = subject
        self._setup = setup
        self._read: Reader = read_store
        self._image: StoreImage | None = None
        self._checkpoint: CheckpointImage | None = None
        self._damaged: list[Damaged] = []
        self.disk_failed = False
        self.is_unsure = False
        self._left_by_start: Mapping[str, bytes] | None = None
        self._promises = Promises(PROFILES[setup.disk_profile])
        self._end = End.UNKNOWN
        self._abort_taken = False  # by others, from a life that had not ended in order
        self._is_torn = self._ext_may_be_rotten = False
        self._positions: Positions | None = None
        self._deletion = DeletionState(setup)
        self.spoilt = Spoilt(setup.log_file_size)
        self._foreign = Foreign()
        self._lifetime = Lifetime(setup)

    def fork(self, subject: LookedAt, read: Reader | None = None) -> Judge:
        """A judge of another subject with this history; ``read`` decodes for it."""
        other = Judge.__new__(Judge)
        for name, value in vars(self).items():
            setattr(other, name, value if name in _SHARED else forked(value))
        other._subject = subject
        if read is not None:
            other._read = read
        return other

    def state(self) -> list[object]:
        """What decides what it says of the same files from here on, in one order."""
        return [of for name, of in vars(self).items() if name not in _SHARED]

    def image(self) -> StoreImage:
        """The files as they are now, decoded; unchanged ones are not read again."""
        self._image = self._read(self._files(), self._image)
        return self._image

    def _files(self) -> Mapping[str, bytes]:
        return self._foreign.without(self._subject.files())

    def judge(self, op: Event, report: Report, positions: Positions) -> None:
        """Judge one step.

        Args:
            op: what was done.
            report: what came of it.
            positions: what the store reports after the step.

        Raises:
            InvariantViolated: the law that was broken first, as its own class.
            InvariantUnknown: a law failed itself.
        """
        judge_raised(self.checks, self._setup, report, self._promises)
        judge_proofs(self.checks, self._setup, report)
        if report.interrupted:
            self._see_fault(op, report)
        if self.is_unsure:
            return
        self._deletion.begin_step(op)
        self._judge_step(op, report, positions)
        self._deletion.end_step(op, report)
        disk = None if self.disk_failed else (self._promises, self._subject)
        self._lifetime.judge(self.checks, op, report, positions, disk, self.image)
        self._foreign.judge(self.checks, report, self._subject.files)

    def _judge_step(self, op: Event, report: Report, positions: Positions) -> None:
        end = self.model.end
        before = {} if self.disk_failed else seen_before(report, self.model)
        may_refuse = self._may_refuse(report) or self._deletion.is_tight(report.world)
        judge_batches(self.checks, self._setup, report, may_refuse=may_refuse)
        earlier, later = puts_around_the_start(report)
        deleted, deleted_later = deletions_around_the_start(report)
        in_flight = self._judge_puts(earlier, report, positions, deleted)
        if report.stops:
            is_new_life = report.crash is None and report.started_end >= 0
            count = report.stops_before_start if is_new_life else len(report.stops)
            self._judge_stops(report.stops[:count], report, end)
        if report.damages or report.planted:
            self._see_damage(report)
        self.disk_failed = self.disk_failed or report.fault_armed
        found = [self._judge_found(files) for files in report.found]
        judge_cut_short(op, report, self._deletion, self.model)
        if report.crash is not None:
            has_stopped = not report.is_stopping or self._end is End.ORDERLY
            if report.found or not has_stopped:
                self._end = End.UNKNOWN
            self.model.crashed(report.crash.kind, in_flight)
            self._positions = None
            self._lose_promises(report, report.crash.kind)
            return
        for number, (start, image) in enumerate(zip(report.starts, found, strict=True)):
            ended = self._end is End.ORDERLY and not (self._damaged or self.disk_failed)
            self._judge_start(start, image, report, number, positions, deleted_later)
            if isinstance(start, Started):
                self._judge_next(image, alone=not report.interrupted, ended=ended)
        if report.starts and report.interrupted:
            self._see_fault(op, report)  # it may have met that start too
            self.disk_failed = self.disk_failed or self._promises.errors_come_late
        self._judge_puts(later, report, positions, deleted_later)
        if report.started_end >= 0 and len(report.stops) > report.stops_before_start:
            stops = report.stops[report.stops_before_start :]
            self._judge_stops(stops, report, self.model.end)
        around = (None if self.disk_failed else self._positions, positions)
        seen = None if self._promises.reverts else self.image
        judge_round(self.checks, self._setup, op, report, around, seen)
        if not self._abort_taken:  # else it believes what it found, synced or not
            asked = (self.checks, op, report, self._promises, around, self._subject)
            self._checkpoint = judge_medium(*asked, self.image, self._checkpoint)
        if positions.max_phy_offset >= 0:
            self._judge_running(op, report, positions)
        self._judge_reads(report, before)

    def _judge_running(self, op: Event, report: Report, positions: Positions) -> None:
        dispatched = isinstance(op, RunService) and op.service == "reput"
        if isinstance(report.observation, (Ran if dispatched else Deleted)):
            reput = positions.reput_from_offset
            settled = dispatched and not self.model.may_be_deleted
            self._judge_files(self.image(), reput, dispatched=settled)
        judge_left_overs(self.checks, op, report, self._files)
        image, state = None if self.disk_failed else self.image, self._deletion
        judge_deletion(self.checks, op, report, state, self.model, positions, image)
        was = None if report.starts else self._positions
        judge_marks(self.checks, self._setup, self.model, positions, was, self._files)
        self._positions = positions

    def _judge_reads(self, report: Report, before: Seen) -> None:
        model = self.model
        known = Reading(
            self.image,
            before,
            self._positions,
            partial(is_half_dispatched, self._setup, model, failed=self.disk_failed),
            self._subject.epoch_ms,
            self.spoilt,
            reverts=self._promises.reverts,
            dispatch_failed=self.disk_failed,
        )
        judge_reads(self.checks, self._setup, model, report, known)

    def _see_fault(self, op: Event, report: Report) -> None:
        self._damaged += (shown := self._promises.saw_fault(op, report.spoilt))
        # A start may have read what memory held before it was forgotten.
        is_lost = shown or (self._promises.reverts and forgets(op))
        self.is_unsure |= bool(is_lost and report.starts)
        if self._promises.reverts:
            self.model.lose_what_was_not_synced()
            self.disk_failed = True

    def _see_damage(self, report: Report) -> None:
        asked = (report, self._damaged, self._subject.files())
        self._damaged = self._foreign.take_note(*asked, has_index=self._setup.has_index)
        self._abort_taken |= takes_abort(report, self._end)

    def _lose_promises(self, report: Report, crash: CrashKind) -> None:
        """After some crashes even synced bytes may be gone, as if damaged."""
        self._is_torn |= tears_the_checkpoint(report)
        if self._promises.is_broken_by(crash):
            self._damaged.append(SPOILT)
            self._ext_may_be_rotten = True
            self._end = End.UNKNOWN
        if crash == "power_loss":
            self._damaged += self._promises.lost_power()

    def judge_caught_up(self, positions: Positions, busy: Sequence[str]) -> None:
        """Judge that every service has done what there was to do, and rests."""
        recovery.services_have_caught_up.hold(self.checks, positions, busy)
        self._judge_rest(self.image())

    def judge_statistics(self, seen: Statistics) -> None:
        """Judge what the store counts against what it was given."""
        model = self.model
        if not model.in_flight:  # a put without an answer may count
            statistics.statistics_count_what_was_put.hold(
                self.checks, seen, model.put_by_topic, model.puts, model.put_times_ms
            )

    def _judge_rest(self, image: StoreImage) -> None:
        if not (self.disk_failed or self.spoilt.is_on):
            checkpoint_is_up_to_date.hold(self.checks, image)

    def _may_refuse(self, report: Report) -> bool:
        failed = self.disk_failed or report.fault_armed
        return failed or self._deletion.may_be_full

    def _judge_puts(
        self, puts: Puts, report: Report, positions: Positions, deletions: Deletions
    ) -> list[MessageToPut]:
        checks, model, before = self.checks, self.model, self._positions
        return judge_puts(
            checks,
            self._setup,
            model,
            Putting(
                puts,
                report,
                before,
                positions,
                self._may_refuse(report),
                self._deletion.is_tight(report.world),
                self._deletion.must_be_full,
                self._deletion.used,
                self._deletion.now_ms,
                deletions=judge_deletions(
                    checks, report, model, deletions, before, positions
                ),
            ),
        )

    def _judge_found(self, files: Mapping[str, bytes]) -> StoreImage:
        """Judge what a start found: what no crash may break.

        Only what outside hands damaged is excused, until a start has mended it. What
        an orderly stop left keeps every law, even if power is lost afterwards.
        """
        found = self._image = self._read(self._foreign.without(files), self._image)
        if self.spoilt.is_on:
            return found
        if self._end is End.ORDERLY and not self._damaged:
            # An orderly end says that everything was dispatched.
            self._judge_files(found, found.commit_log.max_phy_offset)
            self._judge_rest(found)
        if not self._damaged and self._end is not End.UNKNOWN:
            recovery.abort_tells_how_it_ended.hold(
                self.checks, found, ended=self._end is End.ORDERLY
            )
        if not self._damaged:
            judged = self._judged(found, None, clean=False)
            torn, forgot = self._is_torn, self._promises.reverts
            judge_claims(
                self.checks, judged, self._checkpoint, torn=torn, forgot=forgot
            )
        return found

    def _judge_stops(self, stops: list[Stopped], report: Report, end: int) -> None:
        for stop in stops:
            if not self._abort_taken:
                behind = None if self.disk_failed else self._positions
                judge_stop(
                    self.checks, self._setup, stop, report, self._promises, behind
                )
            self.model.stopped(end, clean=stop.clean)
            failed = self.disk_failed or report.fault_armed
            ended = End.UNKNOWN if self._abort_taken else End.ORDERLY
            self._end = ended if stop.clean else End.ABORT_STAYS
            if failed and not stop.clean:
                self._end = End.UNKNOWN
                self.disk_failed = True  # a write it failed may be there in part
        if not report.found and report.crash is None:
            self._judge_files(self.image(), self.model.reput_from_offset)
        self._positions = None

    def _judge_start(
        self,
        start: Observation,
        found: StoreImage,
        report: Report,
        number: int,
        positions: Positions,
        deleted_later: Deletions,
    ) -> None:
        if not isinstance(start, Started | Refused):
            self._end = End.UNKNOWN  # it failed somewhere on its way
            return
        self._ext_may_be_rotten |= damage.rots_beside_queues(self._damaged)
        self._left_by_start = None if self._damaged else self._left_by_start
        is_damaged = any(d.path.startswith("commitlog") for d in self._damaged)
        at_full_size = self._judge_refusal(start, found, report, number)
        end = report.started_end
        if isinstance(start, Started) and (start.damaged or self.spoilt.is_on):
            self._adopt_around(start, found, report)
            return
        if is_damaged and isinstance(start, Started):
            self.model.log_damaged(at_full_size.commit_log.max_phy_offset)
        if isinstance(start, Started):
            self._abort_taken &= start.last_exit_ok or self._setup.has_index
            if not (self._damaged or report.reads_failed or self._promises.reverts):
                now = self.image().checkpoint
                judge_start(self.checks, self._setup, start, self._end, found, now)
            log = self.image().commit_log
            rot, tears = self._damaged, self._promises.profile.tears
            if damage.takes_rot(self.checks, log, self.model, rot, tears=tears):
                self.is_unsure = True
                return
            self._adopt(end, positions, deleted_later)

    def _judge_refusal(
        self, start: Started | Refused, found: StoreImage, report: Report, number: int
    ) -> StoreImage:
        unread, may_be_any = report.unreadable[number], report.reads_failed
        asked = (self.checks, self._setup, found, start, self._files, self._damaged)
        of_disk = damage.Unread(unread, may_be_any=may_be_any)
        return damage.judge_refusal(*asked, of_disk, is_around=self.spoilt.is_on)

    def judge_found_again(
        self, files: Mapping[str, bytes], report: Report, after: Mapping[str, bytes]
    ) -> int | None:
        """Judge of a start what depends on the files it found, and nothing else.

        Args:
            files: that it found.
            report: of one that did and left the same, but for what that one found.
            after: the files that both left.

        Returns:
            What alone of these files the rest depends on; None if more matters.
        """
        start = report.starts[0]
        if report.interrupted or self.spoilt.is_on:
            return None
        if not isinstance(start, Started) or start.damaged:
            return None
        found = self._judge_found(files)
        at_full_size = self._judge_refusal(start, found, report, 0)
        if self._damaged:
            return at_full_size.commit_log.max_phy_offset
        now = self._read(self._foreign.without(after), None)
        end, left = self._end, self._left_by_start
        judge_start(self.checks, self._setup, start, end, found, now.checkpoint)
        ended = end is End.ORDERLY and not self.disk_failed
        judge_next_start(self.checks, self._setup, left, found, now.files, ended=ended)
        return -1

    def _adopt_around(self, start: Started, found: StoreImage, report: Report) -> None:
        """Adopt what a start serves around damage."""
        note_damage(self.spoilt, self._damaged)
        self.is_unsure = not adopts_around(
            self.checks, self.model, self.spoilt, found, self.image(), start, report
        )
        self._started(self.image())
        self._checkpoint = None

    def _judge_next(self, found: StoreImage, *, alone: bool, ended: bool) -> None:
        left, self._left_by_start = self._left_by_start, None
        if alone:  # else what others wrote is there too
            now = self._files()
            judge_next_start(self.checks, self._setup, left, found, now, ended=ended)
            self._left_by_start = None if self._abort_taken else now

    def _adopt(self, end: int, positions: Positions, deleted_later: Deletions) -> None:
        """Adopt what a start recovered; past ``end`` is what was put since."""
        model = self.model
        image = self.image()
        log_min = image.commit_log.min_phy_offset
        records = image.commit_log.records
        if records and records[-1].phy_offset >= end:
            records = tuple(r for r in records if r.phy_offset < end)
        expected = model.live_messages(log_min)
        floor = model.floor if model.floor is not None else model.floor_kill
        recovery.recovered_log_is_a_prefix.hold(
            self.checks, records, expected, model.in_flight
        )
        recovery.recovered_log_reaches_the_floor.hold(
            self.checks, records, expected, floor
        )
        adopt_after_deletion(
            self.checks,
            model,
            image,
            records,
            bool(self._damaged),
            self.disk_failed,
            end,
            deleted_later,
        )
        self._started(image)
        self._judge_files(image, positions.reput_from_offset)

    def _started(self, image: StoreImage) -> None:
        self.model.indexed = indexed_up_to(image.index(self._setup.index_slots))
        self._damaged = []
        self.disk_failed = self._is_torn = False
        self._promises.renewed()
        self._end = End.ABORT_STAYS
        # A start has synced it, unless it believed that nobody had taken abort.
        is_lost = self._abort_taken or not image.has_checkpoint
        self._checkpoint = None if is_lost else image.checkpoint

    def _judge_files(
        self, image: StoreImage, reput_from_offset: int, *, dispatched: bool = False
    ) -> None:
        """Judge a store at rest or running well, as far as the disk let it."""
        if self._promises.reverts or self.spoilt.is_on:
            return  # what only memory held is gone, until a start has mended it
        judged = self._judged(image, reput_from_offset, clean=not self.disk_failed)
        judge_files(self.checks, judged, dispatched=dispatched)

    def _judged(
        self, image: StoreImage, reput_from_offset: int | None, *, clean: bool
    ) -> Judged:
        knows = not self._ext_may_be_rotten
        return judged_of(
            self._setup, image, reput_from_offset, clean=clean, knows_bit_maps=knows
        )
