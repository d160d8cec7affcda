"""What is known of the clock, the room on disk, and the cleaner of expired files.

Kept between steps beside the reference model. It matters only for a store that cleans,
or whose disk has a capacity.

Source: DefaultMessageStore.CleanCommitLogService, RocketMQ 5.3.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from crashmq.models.history import Step
from crashmq.models.limits import (
    DELETE_FROM_PERCENT,
    FORCE_FROM_PERCENT,
    ROUNDS_OF_A_REQUEST,
    STOP_FROM_PERCENT,
)
from crashmq.models.observations import Done, Ran, World
from crashmq.models.ops import DeleteManually, Event, FillDisk, RunService
from crashmq.models.plain_state import Forked
from crashmq.models.program import HOUR_MS, Setup

_ANY_ROOM = 1 << 62
TABLES_SIZE_MAX = 16 * 1024
"""The tables of a broker are smaller than so many bytes, in any program."""
CLEANERS = frozenset({"clean_commit_log", "clean_consume_queue"})


def _has_refused(step: Step) -> bool:
    return any(answer is None or answer.status != "PUT_OK" for _, answer in step.puts)


@dataclass(slots=True)
class Expiry(Forked):
    """Clock and disk usage after the last step, and requests for manual deletion.

    Attributes:
        now_ms: the wall clock.
        used: bytes of the disk in use.
        percent: how full the disk is, in percent.
        asked_least: for at least so many rounds a manual deletion is still in effect.
        asked_most: the same, at most; one request holds for several rounds.
        may_be_full: the store may refuse puts because the disk is full.
        must_be_full: a cleaner round has certainly stopped puts.
        full_calls: how many calls have met a full disk so far.
        full_before: how many had when the store started.
        fills_amid: something else writes to the disk during the step's op.
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
    full_calls: int = 0
    full_before: int = 0

    def had_room(self, world: World) -> bool:
        """Whether no call has met a full disk since the store started."""
        return world.full_calls <= self.full_before

    def begin_step(self, step: Step) -> None:
        """Note whether a step fills the disk, before the step is judged."""
        self.fills_amid = any(isinstance(each, FillDisk) for each in step.acts[1:])
        self.may_be_full = self.may_be_full or self.fills_amid

    def end_step(self, step: Step) -> None:
        """Note the clock and the disk's room after a step."""
        if not (self.setup.cleans or self.setup.disk_capacity):
            return
        world, lacks_room = step.world, self.is_tight(step.world)
        if step.starts:
            self.full_before = self.full_calls
        self.full_calls = world.full_calls
        self.now_ms, self.used = world.now_ms, world.used
        if step.starts or step.crash is not None:
            self.asked_least = self.asked_most = 0
            self.may_be_full = self.must_be_full = False
        before, self.percent = self.percent, world.percent
        cleans = "clean_commit_log" in step.services
        if cleans:
            self._see_cleaner(step, before)
        self._count_requests(step)
        if step.starts:
            self.must_be_full = False
        has_looked = cleans or _has_refused(step)
        if self.fills_amid or (has_looked and lacks_room):
            self.may_be_full = True

    def _see_cleaner(self, step: Step, percent_before: int) -> None:
        """Note whether a cleaner round has stopped puts, or allowed them again."""
        if not isinstance(step.seen, Ran):
            # The disk may have been fuller when it looked than it is known to be: it
            # may have stopped puts before it made room.
            was_tight = max(percent_before, self.percent) > FORCE_FROM_PERCENT
            lives = step.crash is None and was_tight
            self.may_be_full = self.may_be_full or self.must_be_full or lives
            self.must_be_full = False
            self.asked_least = 0
            return
        least = STOP_FROM_PERCENT
        if self.must_be_full:  # puts begin again only once there is more room
            least = FORCE_FROM_PERCENT
        self.must_be_full = min(percent_before, self.percent) > least
        if max(percent_before, self.percent) <= FORCE_FROM_PERCENT:
            self.may_be_full = False

    def _count_requests(self, step: Step) -> None:
        """Note a request for manual deletion, and the rounds that use it up.

        A round without work ends the rounds of its op.
        """
        op, seen = step.op, step.seen
        if isinstance(op, RunService) and isinstance(seen, Ran):
            if op.service == "clean_commit_log":
                rounds = op.times if seen.work else 1
                self.asked_least = max(0, self.asked_least - rounds)
                self.asked_most = max(0, self.asked_most - 1)
        elif any(isinstance(each, DeleteManually) for each in step.acts):
            self.asked_most = ROUNDS_OF_A_REQUEST
            if isinstance(op, DeleteManually) and isinstance(seen, Done):
                self.asked_least = ROUNDS_OF_A_REQUEST

    def is_tight(self, world: World) -> bool:
        """Whether another log file would fill the disk, before or after the step."""
        with_file = (max(self.used, world.used) + self.setup.log_file_size) * 100
        return with_file > world.total * STOP_FROM_PERCENT if world.total else False

    def has_room_for_tables(self, world: World) -> bool:
        """Whether a step's disk had room for config files; False may be wrong."""
        used = max(self.used, world.used)
        return not world.total or world.total - used >= TABLES_SIZE_MAX

    @property
    def has_room(self) -> bool:
        """Whether the disk had room for one more log file after the last step."""
        with_file = (self.used + self.setup.log_file_size) * 100
        return with_file <= (self.setup.disk_capacity or _ANY_ROOM) * STOP_FROM_PERCENT

    def old_ms(self, world: World) -> int:
        """Messages stored at or before this wall-clock time in ms have expired."""
        return world.now_ms - self.setup.reserved_hours * HOUR_MS

    def may_go_until(self, op: Event, world: World, later_ms: int = 0) -> int | None:
        """The store time up to which messages may be deleted; None: any may be.

        As ``old_ms``, for a cleaner round that runs ``later_ms`` later.
        """
        return None if self._may_force(op, world) else self.old_ms(world) + later_ms

    def _may_force(self, op: Event, world: World) -> bool:
        """Whether files may be deleted that have not expired."""
        fullest = max(self.percent, world.percent)
        # What others write beside a cleaner fills the disk too, until it has made room.
        is_amid = self.fills_amid or (world.total and not isinstance(op, RunService))
        may_be_full = fullest > FORCE_FROM_PERCENT or is_amid
        return self.setup.cleans_forcibly and bool(may_be_full)

    def is_due(self, world: World, rounds: int = 1) -> bool:
        """Whether each of the last ``rounds`` rounds had to delete expired files.

        The last of them may have found nothing more to delete.
        """
        percent = self.percent if rounds == 1 else min(self.percent, world.percent)
        is_full = percent > DELETE_FROM_PERCENT
        # A round may pause between two files, until an hour has come.
        is_hour = self._is_hour(self.now_ms) and self._is_hour(world.now_ms)
        return is_hour or is_full or self.asked_least >= rounds

    def must_force(self, world: World) -> bool:
        """Whether the disk was so full that each round had to delete young files."""
        percent = min(self.percent, world.percent)
        return self.setup.cleans_forcibly and percent > FORCE_FROM_PERCENT

    def may_be_due(self, op: Event, world: World) -> bool:
        """Whether a round of the step that ends now may delete expired files."""
        if not isinstance(op, RunService):
            return True  # somebody else has moved the clock, or asked
        is_hour = self._is_hour(self.now_ms) or self._is_hour(world.now_ms)
        is_full = max(self.percent, world.percent) > DELETE_FROM_PERCENT
        return is_hour or is_full or self.asked_most > 0

    def _is_hour(self, now_ms: int) -> bool:
        hours = [int(text) for text in self.setup.delete_hours.split(";")]
        return now_ms // HOUR_MS % 24 in hours
