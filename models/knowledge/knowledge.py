"""Knowledge: all that is known of one store from its history, as one value.

Only ``models.knowledge.walk`` changes it, once for each step of the history. It can be
forked at any step, so it consists of immutable values in containers, and of objects
with a ``fork`` method.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from crashmq.models.files.checkpoint import CheckpointImage
from crashmq.models.files.store_image import StoreImage
from crashmq.models.history import Step
from crashmq.models.knowledge.consumption import Consumption
from crashmq.models.knowledge.debts import Debts
from crashmq.models.knowledge.delays import Delays
from crashmq.models.knowledge.expiry import Expiry
from crashmq.models.knowledge.failures import may_stop_puts
from crashmq.models.knowledge.progress import Progress
from crashmq.models.knowledge.promises import SPOILT, DiskKind, Promises, forgets
from crashmq.models.knowledge.reference import QueueKey, ReferenceModel
from crashmq.models.knowledge.rounds import Rounds
from crashmq.models.knowledge.tampering import Origin, Tampering
from crashmq.models.laws.around import Spoilt
from crashmq.models.laws.judged import Judged
from crashmq.models.messages import MessageToPut, bit_map_at
from crashmq.models.observations import Crashed, Positions
from crashmq.models.ops import EVERYTHING, Capability, ChangeConfig
from crashmq.models.plain_state import fork_of_fields
from crashmq.models.program import HOUR_MS, Setup

EVERYWHERE = frozenset({""})
LOG = ("commitlog",)
QUEUES = ("consumequeue", "consumequeue_ext")
INDEX = ("index",)
CHECKPOINT = ("checkpoint",)
CONFIG = ("config",)
"""The folder of a broker's tables."""
DISPATCHED = (*LOG, *QUEUES, *INDEX)
"""What dispatch reads and writes."""
EVERY_QUEUE: QueueKey = ("", -1)
_NO_QUEUE: frozenset[QueueKey] = frozenset()


class End(Enum):
    """How the newest run of the store ended, to judge the abort file by."""

    NEW = "there was none yet"
    ORDERLY = "everything is durable, and the abort file is gone"
    ABORT_STAYS = "the abort file is there: it runs, or was not shut down cleanly"
    UNKNOWN = "something stepped in while the abort file was made or removed"


@dataclass(slots=True)
class Knowledge:
    """What is known after a step of a history.

    Attributes:
        setup: the store's setup.
        model: what was appended, must survive, and may be read.
        promises: which durability promises the disk still keeps.
        expiry: clock, room on disk and cleaners.
        debts: what waits for a sync in this run, and which flushes failed.
        rounds: what rounds of services have done in this run.
        progress: the offsets of consumer groups.
        consumption: what the consumers have consumed.
        delays: how far each delay level is delivered.
        tampering: what was done to the files from outside.
        failed_parts: the parts of the store where calls to the disk failed in this run,
            as names in its directory; "" stands for all.
        end: how the newest run ended.
        positions: what the store reported after the step; None if it is down, or if
            that is unknown.
        checkpoint: the one that no crash may take back; None if unknown.
        checkpoint_is_torn: a crash came during a write of the checkpoint, or a power
            loss before any was known to be synced, or a write of it failed.
        left_by_start: the files that the newest start left, if nothing came since.
        capabilities: what the subject can do beyond the core.
        in_doubt: the queues whose content is unknown; with ``EVERY_QUEUE``, all. Empty
            for a store whose files show its content.
    """

    setup: Setup = field(compare=False)
    model: ReferenceModel
    promises: Promises
    expiry: Expiry
    debts: Debts
    tampering: Tampering
    progress: Progress = field(default_factory=Progress)
    consumption: Consumption = field(default_factory=Consumption)
    delays: Delays = field(default_factory=Delays)
    rounds: Rounds = field(default_factory=Rounds)
    failed_parts: frozenset[str] = frozenset()
    end: End = End.NEW
    positions: Positions | None = None
    checkpoint: CheckpointImage | None = None
    checkpoint_is_torn: bool = False
    # It decides nothing but what one law says of the next start.
    left_by_start: Mapping[str, bytes] | None = field(default=None, compare=False)
    capabilities: frozenset[Capability] = field(default=EVERYTHING, compare=False)
    in_doubt: frozenset[QueueKey] = _NO_QUEUE

    @classmethod
    def of_new_store(
        cls,
        setup: Setup,
        disk: DiskKind,
        capabilities: frozenset[Capability] = EVERYTHING,
    ) -> Knowledge:
        """What is known of a store of this setup that was never started."""
        is_rocketmq = Capability.STORES_AS_ROCKETMQ in capabilities
        model = ReferenceModel(
            setup.flush_mode,
            buffers_appends=is_rocketmq and setup.transient_store_pool,
            multi_dispatch=is_rocketmq and setup.multi_dispatch,
            prop_crc=is_rocketmq and setup.prop_crc,
        )
        known = cls(
            setup,
            model,
            Promises(disk),
            Expiry(setup),
            Debts(setup),
            Tampering(Spoilt(setup.log_file_size)),
            capabilities=capabilities,
        )
        known.progress.groups.retry_queues = setup.retry_queues
        return known

    def fork(self) -> Knowledge:
        """A copy of what is known, for a history that continues on its own."""
        left, self.left_by_start = self.left_by_start, None
        other = fork_of_fields(self)
        self.left_by_start = other.left_by_start = left
        return other

    def doubts(self, key: QueueKey) -> bool:
        """Whether the content of a queue is unknown."""
        return key in self.in_doubt or EVERY_QUEUE in self.in_doubt

    @property
    def disk_failed(self) -> bool:
        """Whether a call to the disk failed in this run of the store."""
        return bool(self.failed_parts)

    def works(self, parts: Iterable[str], amid: Step | None = None) -> bool:
        """Whether no call on these parts of the store has failed in this run.

        ``amid``: a step of the run that counts too, though it is not over.
        """
        failed = self.failed_parts
        if amid is not None:
            failed |= amid.failed_parts
        return not failed or not (failed >= EVERYWHERE or failed.intersection(parts))

    @property
    def is_degraded(self) -> bool:
        """Whether the store skips damaged records and serves the rest."""
        return self.tampering.degraded.is_on

    def may_refuse_puts(self, step: Step) -> bool:
        """Whether puts may be refused: the disk failed, or the cleaner stopped them."""
        failed = self.failed_parts | step.failed_parts
        amid = bool(step.deletions) or self.debts.may_be_amid or bool(self.debts.failed)
        stopped = may_stop_puts(failed, amid_deletion=amid)
        return stopped or self.expiry.may_be_full

    def judged(
        self, image: StoreImage, reput_from_offset: int | None, *, clean: bool
    ) -> Judged:
        """The argument of the laws about files: the image, and what is known."""
        setup = self.setup
        # What a filter says of a message, a pull shows.
        is_sound = not self.tampering.bit_maps_may_rot
        return Judged(
            image,
            reput_from_offset,
            clean,
            index_slots=setup.index_slots,
            keeps_index=setup.has_index,
            ext_size=setup.queue_ext_size if setup.has_queue_ext else 0,
            bit_map_of=bit_map_at if is_sound and not setup.filters else None,
            filters=self.progress.filters.ever if is_sound and setup.filters else None,
            takes_odd_properties=self.tampering.origin is not Origin.OURS,
            entry_may_wait=bool(setup.disk_capacity) or not self.works(QUEUES),
            level_max=setup.delay_levels.level_max,
        )

    def saw_failures(self, step: Step) -> None:
        """Note on which parts of the store calls failed in a step."""
        self.failed_parts |= step.failed_parts
        # A write that failed may have come half-way.
        written = {one.path for one in step.met if one.call == "write"}
        self.checkpoint_is_torn |= not written.isdisjoint(CHECKPOINT)

    def saw_faults(self, step: Step, unsynced: Callable[[], Container[str]]) -> None:
        """Note what a disk fault of the step may have damaged.

        ``unsynced``: the files that a power loss could change after it.
        """
        shown = self.promises.saw_fault(step.op, step.spoilt, unsynced)
        self.tampering.add(shown)
        self.tampering.saw_spoilt([one.path for one in step.spoilt])
        # A start may have read what memory held before it was forgotten.
        is_lost = shown or (self.promises.reverts and forgets(step.op))
        self.tampering.log_has_hidden_rot |= bool(is_lost and step.starts)
        if self.promises.reverts:
            self.model.lose_what_was_not_synced()
            self.failed_parts |= EVERYWHERE

    def expirable_in(self, step: Step) -> int:
        """The phy_offset up to which a cleaner may have deleted amid a step.

        A round may have begun a little later than the op, by a clock that was set back
        since, and after a dispatch in the same step.
        """
        later_ms = HOUR_MS + step.set_back_ms
        old_ms = self.expiry.may_go_until(step.op, step.world, later_ms)
        size = self.setup.log_file_size
        return self.model.expirable_until(size, old_ms, dispatches=step.may_dispatch)

    def saw_changes(self, changes: Iterable[tuple[int, ChangeConfig]]) -> None:
        """Note the options of the store that have another value from now on."""
        for _, change in changes:
            self._configured(change)

    def _configured(self, change: ChangeConfig) -> None:
        setup = self.setup = self.setup.changed(change)
        self.expiry.setup = self.debts.setup = setup
        is_rocketmq = Capability.STORES_AS_ROCKETMQ in self.capabilities
        self.model.flush_mode = setup.flush_mode
        self.model.buffers_appends = is_rocketmq and setup.transient_store_pool
        self.model.multi_dispatch = is_rocketmq and setup.multi_dispatch

    def crashed(self, step: Step, in_flight: list[MessageToPut]) -> None:
        """Note the crash that ended a step and the store's run."""
        assert step.crash is not None, step
        has_stopped = not step.is_stopping or self.end is End.ORDERLY
        if step.starts or not has_stopped:
            self.end = End.UNKNOWN
        self.model.crashed(step.crash.kind, in_flight)
        self.positions = None
        # After some crashes even synced bytes may be gone, as if damaged.
        is_new = self.checkpoint is None
        self.checkpoint_is_torn |= _tears_the_checkpoint(step, is_new=is_new)
        if self.promises.is_broken_by(step.crash.kind):
            self.tampering.add([SPOILT])
            self.tampering.bit_maps_may_rot = True
            self.end = End.UNKNOWN
        if step.crash.kind == "power_loss":
            self.tampering.add(self.promises.lost_power())

    def started(self, image: StoreImage, failed_since: frozenset[str]) -> None:
        """Note a start that has recovered: the files it found are on the medium.

        ``failed_since``: the parts on which calls failed in its step after it.
        """
        self.model.indexed = image.index(self.setup.index_slots).reach
        self.tampering.mended()
        self.failed_parts = failed_since
        self.promises.renewed()
        self.end = End.ABORT_STAYS
        # A start has synced it, unless it believed that nobody had taken abort.
        is_lost = self.tampering.abort_taken or not image.has_checkpoint
        self.checkpoint_is_torn = not self.works(CHECKPOINT)
        self.checkpoint = None if is_lost else image.checkpoint

    def state(self) -> list[object]:
        """All that can change a later verdict on equal files, in a fixed order."""
        return [
            self.model,
            self.promises,
            self.expiry,
            self.debts,
            self.rounds,
            self.tampering,
            self.progress,
            self.consumption,
            self.delays,
            self.failed_parts,
            self.end,
            self.positions,
            self.checkpoint,
            self.checkpoint_is_torn,
            self.setup,
            self.in_doubt,
        ]


def _tears_the_checkpoint(step: Step, *, is_new: bool) -> bool:
    """Whether the crash came during a write of the checkpoint.

    A power loss may tear one that ``is_new``: no start has ended with it, so it may
    never have been synced.
    """
    seen, crash = step.seen, step.crash
    if is_new and crash is not None and crash.kind == "power_loss":
        return True
    is_cut = crash is not None and crash.cut > 0
    return is_cut and isinstance(seen, Crashed) and seen.action == "write:checkpoint"
