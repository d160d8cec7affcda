"""StartUp: what a start reads before it changes anything, and how it then repairs.

``read`` may refuse, and has then changed nothing; ``mend`` makes the files agree with
what was read. A start reads the log from the lower of the mark's durable_offset and
dispatched_offset on, and at least its last ``start_window`` bytes. Of older files it
reads only the first record: the names, the lengths and the mark prove the rest. If
queues lack units that they had according to the mark, they were damaged, and the whole
log is read to build them again.

Source: DefaultMessageStore#load, #recover, RocketMQ 5.3. Differs: the checkpoint's
times decide nothing, since nothing proves them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from crashmq.engine.host.disk import Disk
from crashmq.engine.host.probe import probe
from crashmq.engine.store.abort_file import AbortFile
from crashmq.engine.store.adoption import (
    deletions_of_others,
    has_confirmed,
    ours,
    served_as_found,
    unknown_layout,
    wrote_since,
)
from crashmq.engine.store.clean.deleted_topics import ALL_QUEUES
from crashmq.engine.store.commit_log import CommitLog
from crashmq.engine.store.config import OnDamage, StoreConfig
from crashmq.engine.store.damage import Damage, Stop
from crashmq.engine.store.dispatch import DispatchRequest
from crashmq.engine.store.errors import Place, StoreCorrupted, StoreForeign
from crashmq.engine.store.foreign import (
    Losses,
    UnitsToCome,
    count_log,
    goes_on,
    place_in,
)
from crashmq.engine.store.index.index_audit import IndexAudit
from crashmq.engine.store.index.index_service import IndexService
from crashmq.engine.store.log_scan import OFFSET_MAX, LogScan
from crashmq.engine.store.log_sums import LogSums
from crashmq.engine.store.queue.consume_queue_store import ConsumeQueueStore
from crashmq.engine.store.queue.queue_audit import QueueAudit, QueueKey
from crashmq.engine.store.scan_around import files_with
from crashmq.engine.store.store_checkpoint import DurableMark, StoreCheckpoint
from crashmq.engine.store.unreadable import is_unreadable

WINDOWED = probe("start_up.read.window", "a start left old log files unread")
READ_AGAIN = probe(
    "start_up.read.again", "damaged queues made a start read the whole log"
)
CHANGED = probe("start_up.refused.changed", "bytes that no CRC covers had changed")
MISTAKEN = probe("start_up.read.not_deleted", "what looked like a deletion was none")
MISNUMBERED = probe(
    "start_up.refused.misnumbered", "a record's queue offset is impossible"
)
FOREIGN = probe("start_up.refused.foreign", "without a mark, a start would lose data")
REFUSED_UNREAD = probe("start_up.refused.unreadable", "the log cannot be read")
EXPIRED = probe(
    "start_up.read.expired", "another program expired the log's first files"
)
AS_FOUND = probe("start_up.read.as_found", "another program's damage was not touched")
TAKEN_OVER = probe(
    "start_up.take_over", "a directory with another's records was marked"
)
LACKING = probe("message_store.start.lacking", "dispatch resumes behind the log's end")
COMPLETE = probe("message_store.start.complete", "a start found every queue complete")
LOWERED = probe("message_store.start.lowered", "a start lowered the checkpoint's times")
MARK_LOWERED = probe("start_up.mend.mark_lowered", "a start lowered the durable mark")

_FILES = ("abort", "checkpoint")
_FOLDERS = ("commitlog", "consumequeue", "index")


class StartUp:
    """One start of one store: ``read`` first, ``take_over`` and ``mend`` once.

    Attributes:
        losses: what ``mend`` would remove of a directory that another program wrote to;
            unless it may ``adopt``, a start refuses if that is anything.
    """

    def __init__(
        self,
        config: StoreConfig,
        disk: Disk,
        abort: AbortFile,
        checkpoint: StoreCheckpoint,
        commit_log: CommitLog,
        consume_queues: ConsumeQueueStore,
        index: IndexService,
        sums: LogSums,
    ) -> None:
        self._config = config
        self._disk = disk
        self._abort = abort
        self._checkpoint = checkpoint
        self._commit_log = commit_log
        self._consume_queues = consume_queues
        self._index = index
        self._sums = sums
        self._found: tuple[LogScan, QueueAudit, IndexAudit] | None = None
        self._to_come: UnitsToCome | None = None
        self._was_marked = self._front_expired = self._trusts_bit_maps = False
        self.losses = Losses()
        self.last_exit_ok = False

    @property
    def has_read(self) -> bool:
        """Whether ``read`` has succeeded."""
        return self._found is not None

    def read(self) -> None:
        """Read the files without changing the disk.

        Raises:
            StoreCorrupted: data below the mark is missing or damaged, or the files are
                not of the configured sizes, or cannot be read.
            StoreForeign: there is no mark, and ``mend`` would remove data.
            OSError: the disk failed otherwise.
        """
        try:
            self._read()
        except FileNotFoundError as error:
            raise StoreCorrupted(
                "a link that leads to nothing, or a file that somebody has just taken "
                "away. Put it back. Nothing was changed.",
                Place(error.filename),
            ) from error
        except OSError as error:
            if not is_unreadable(error):
                raise
            REFUSED_UNREAD.hit()
            raise StoreCorrupted(
                f"{error.strerror}. Put the file back from a copy, or start again if "
                f"the disk is well. Nothing was changed.",
                Place(error.filename),
            ) from error

    def _read(self) -> None:
        self._refuse_folders()
        self._checkpoint.load()
        self._was_marked = self._checkpoint.mark is not None
        self._refuse_other_sizes()
        self._refuse_unknown_layout()
        self._commit_log.ours = ours(self._checkpoint.mark)
        self._commit_log.load()
        start = self._replay_point()
        self._consume_queues.load(start)
        self._refuse_short_queue_files()
        self._refuse_misnamed()
        self._index.load()
        # An orderly end has synced bit maps, whoever came to it.
        is_ended = not (self._was_marked or self._abort.exists())
        self._trusts_bit_maps = is_ended and self._config.enable_consume_queue_ext
        found = self._scan(start)
        until = self._around_until(found[0])
        if until:
            found = self._scan(start, around=until)
        if start > max(0, self._commit_log.min_offset) and self._lacks_old(*found[:2]):
            READ_AGAIN.hit()
            self._consume_queues.recover_all()
            found = self._scan(max(0, self._commit_log.min_offset))
        found = self._without_deleted(found, until)
        if self._trusts_bit_maps and found[1].first_wrong:
            # All of them are taken for durable, or none.
            self._trusts_bit_maps = False
            found = self._scan(start, around=until)
        for topic, queue_id in sorted(found[1].first_wrong):
            folder = f"consumequeue/{topic}"
            self._refuse_files((folder, f"{folder}/{queue_id}"))
        self._refuse_damage(*found[:2])
        self._refuse_foreign(found[0])
        self._note_others(found[0])
        mark = self._checkpoint.mark
        is_whole = mark is None or mark.durable_offset == found[0].end
        self.last_exit_ok = is_whole and not self._abort.exists()
        self._found = found

    @property
    def _serves_around(self) -> bool:
        return self._config.on_damage is OnDamage.SERVE

    def _replay_point(self) -> int:
        """The first byte of the log file from which on the log must be read.

        The byte before the point that the mark gives: so the scan meets a record or a
        BLANK before that point.
        """
        log, mark = self._commit_log, self._checkpoint.mark
        first = max(0, log.min_offset)
        if (
            mark is None
            or not log.mapped_files.files
            or self._config.message_index_enable
            or self._serves_around
            or mark.damaged_until > first
        ):
            return first
        end = log.mapped_files.files[-1].end_offset
        durable = min(mark.durable_offset, mark.dispatched_offset)
        point = min(durable, end - self._config.start_window) - 1
        if point <= first:
            return first
        WINDOWED.hit()
        return point - point % self._config.mapped_file_size_commit_log

    def _around_until(self, scan: LogScan) -> int:
        """The phy_offset up to which to read past damage; 0 if nothing is damaged."""
        mark = self._checkpoint.mark
        self._front_expired = wrote_since(self._checkpoint, self._abort, scan.end)
        until = served_as_found(mark, self._abort, self._commit_log.mapped_files)
        if mark is not None and self._serves_around:
            lacks_first = scan.start > mark.log_min_offset and not mark.is_empty
            is_lost = lacks_first and not self._front_expired
            if is_lost or scan.end < mark.durable_offset:
                return max(mark.durable_offset, until)
        elif scan.stopped_by is Stop.UNREADABLE:
            return 0
        if scan.end >= until:
            return 0
        AS_FOUND.hit()
        return until

    def _without_deleted(
        self, found: tuple[LogScan, QueueAudit, IndexAudit], around: int
    ) -> tuple[LogScan, QueueAudit, IndexAudit]:
        """Read again if RocketMQ deleted topics, without the deleted records."""
        if self._was_marked:
            return found
        queues, crashed = self._consume_queues, self._abort.exists()
        gone = deletions_of_others(self._disk, queues, found[1], crashed=crashed)
        if not gone:
            return found
        queues.deleted.presume(gone)
        again = self._scan(found[0].start, around=around)
        wrong = {key for key in gone if not _was_made_anew(key, again[1])}
        if wrong:
            MISTAKEN.hit()
            queues.deleted.presume({k: at for k, at in gone.items() if k not in wrong})
            again = self._scan(found[0].start, around=around)
        return again

    def _scan(
        self, start: int, *, around: int = 0
    ) -> tuple[LogScan, QueueAudit, IndexAudit]:
        """Read the log, and compare queues and index with it."""
        while True:
            try:
                return self._scan_once(start, around=around)
            except OSError as error:
                is_met = is_unreadable(error)
                if not (is_met and self._index.leave_out(error.filename)):
                    raise

    def _scan_once(
        self, start: int, *, around: int
    ) -> tuple[LogScan, QueueAudit, IndexAudit]:
        mark, log = self._checkpoint.mark, self._commit_log
        dispatched = mark.dispatched_offset if mark else 0
        damage = Damage(log_min_offset=max(0, log.min_offset))
        audit = self._consume_queues.audit(
            dispatched, damage, trusts_bit_maps=self._trusts_bit_maps
        )
        index = self._index.audit(max(0, log.min_offset))
        visit: Callable[[DispatchRequest], None] = audit.visit
        may_be_of_others = mark is None or has_confirmed(self._checkpoint)
        if may_be_of_others or not self._abort.exists():
            self._to_come = UnitsToCome(audit)
            visit = _both(visit, self._to_come.visit)
        if self._config.message_index_enable:
            visit = _both(visit, index.visit)
        if around:
            # Of a log without any file at least one is missing.
            first = around - self._config.mapped_file_size_commit_log
            if log.mapped_files.files:
                first = log.min_offset
            if mark is not None and not self._front_expired:
                first = min(first, mark.log_min_offset)
            scan = log.scan_around(visit, damage, (max(0, first), around))
        else:
            scan = log.scan(visit, start)
        if scan.start and not scan.records:
            # The message stored last has expired; the next must not look older.
            newest = self._checkpoint.physic_msg_timestamp
            scan = replace(scan, newest_timestamp=newest)
        return scan, audit, index

    def _lacks_old(self, scan: LogScan, audit: QueueAudit) -> bool:
        """Whether queues lack units that the mark says were durable."""
        mark = self._checkpoint.mark
        assert mark is not None, "without a mark the whole log is read"
        lacks = audit.first_wrong_phy_offset
        if audit.lacks_unread or 0 <= lacks < mark.dispatched_offset:
            return True
        return not all(audit.has_unit(request) for request in scan.old_firsts)

    def _refuse_folders(self) -> None:
        """Refuse a directory where a file has to be, and a file for a directory.

        Raises:
            StoreForeign: there is one; what the start could not write would be missed
                later.
        """
        for path in _FILES:
            if self._disk.is_dir(path):
                FOREIGN.hit()
                raise StoreForeign(
                    "a folder stands where a file of the store has to be. Move it "
                    "away. Nothing was changed.",
                    Place(path),
                )
        self._refuse_files(_FOLDERS)

    def _refuse_files(self, folders: Iterable[str]) -> None:
        for path in folders:
            if self._disk.exists(path) and not self._disk.is_dir(path):
                FOREIGN.hit()
                raise StoreForeign(
                    "a file stands where a folder of the store has to be. Move it "
                    "away. Nothing was changed.",
                    Place(path),
                )

    def _refuse_other_sizes(self) -> None:
        mark, config = self._checkpoint.mark, self._config
        sizes = (config.mapped_file_size_commit_log, config.queue_file_size)
        if mark is not None and sizes != (mark.log_file_size, mark.queue_file_size):
            raise StoreCorrupted(
                f"the store was written with log files of {mark.log_file_size} bytes "
                f"and queue files of {mark.queue_file_size}, and is to be opened with "
                f"{sizes[0]} and {sizes[1]}. Open it with its own sizes. Nothing was "
                f"changed."
            )

    def _refuse_unknown_layout(self) -> None:
        """Refuse a layout of another kind of store; puts of this one would harm it.

        Raises:
            StoreForeign: the directory has a layout that this store cannot read.
        """
        if self._was_marked or self._config.adopt:
            return
        found = unknown_layout(self._disk)
        if found is not None:
            FOREIGN.hit()
            where, what = found
            raise StoreForeign(
                f"{what}, which this store does not read, and a put would be in its "
                f"way. Open it with its own broker. Nothing was changed.",
                where,
            )

    def _refuse_short_queue_files(self) -> None:
        """Refuse queue files that are shorter than the configured size.

        They may belong to a store with another size, and would be extended. Allowed
        beside full ones after a crash, which can leave a short file.

        Raises:
            StoreForeign: there is such a file, and no mark.
        """
        if self._was_marked:
            return
        size = self._config.queue_file_size
        files = self._consume_queues.files()
        short = [file for file in files if 0 < file.on_disk_size < size]
        has_full = any(file.on_disk_size == size for file in files)
        may_extend = self._abort.exists() or self._config.adopt
        if short and not (has_full and may_extend):
            FOREIGN.hit()
            raise StoreForeign(
                f"{short[0].on_disk_size} bytes, but queue files are to have {size}. "
                f"Start it with the size it was written with, or put the file back "
                f"from a copy. Nothing was changed.",
                Place(short[0].path),
            )

    def _refuse_misnamed(self) -> None:
        """Refuse files that RocketMQ would load and this store would skip.

        Raises:
            StoreForeign: a name is a number, but not written as a store writes it.
        """
        if self._was_marked or self._config.adopt:
            return
        of_log = self._commit_log.mapped_files.misnamed()
        misnamed = [*of_log, *self._consume_queues.misnamed()]
        if misnamed:
            FOREIGN.hit()
            raise StoreForeign(
                "the name is a number, but has not its 20 digits. Rename the file, "
                "with zeros in front, or move it away. Nothing was changed.",
                Place(misnamed[0]),
            )

    def _refuse_damage(self, scan: LogScan, audit: QueueAudit) -> None:
        """Refuse a log whose durable part is damaged, since cutting would lose data.

        Raises:
            StoreCorrupted: part of it is not there.
        """
        if scan.stopped_by is Stop.UNREADABLE:
            REFUSED_UNREAD.hit()
            raise StoreCorrupted(
                f"{scan.stopped_by}, so it is unknown whether the log goes on there. "
                "Put the file back from a copy, or start again if the disk is well. "
                "Nothing was changed.",
                self._where(scan.end),
            )
        mark = self._checkpoint.mark
        if mark is None:
            self._refuse_short_files(scan)
            self._sums.begin(None, scan.read_from)
        elif scan.damaged:
            self._refuse_missing(scan)
            if not self._serves_around:
                self._refuse_lost(scan, mark)
            self._refuse_changed_bytes(scan, mark)
        else:
            self._refuse_lost(scan, mark)
            self._refuse_changed_bytes(scan, mark)
        self._refuse_misnumbered(audit)

    def _refuse_missing(self, scan: LogScan) -> None:
        """Refuse if a log file, or its end, is gone since the take-over."""
        gone = (Stop.MISSING_FILE, Stop.CUT_SHORT, Stop.UNREADABLE)
        lost = [one for one in scan.damaged if one.why in gone]
        if lost and not self._serves_around:
            raise StoreCorrupted(
                f"{lost[0].why}, which was there when the directory was taken over. "
                f"Put it back from a copy. Nothing was changed.",
                self._where(lost[0].start),
            )

    def _refuse_lost(self, scan: LogScan, mark: DurableMark) -> None:
        if scan.start > mark.log_min_offset and not mark.is_empty:
            if not (self._front_expired or self._config.adopt):
                raise StoreCorrupted(
                    f"the log begins at {scan.start}, but began at "
                    f"{mark.log_min_offset} when it was last made durable: a file was "
                    f"removed. Put it back from a copy, or start with adopt=True if "
                    f"another program expired it. Nothing was changed.",
                    Place("commitlog"),
                )
            EXPIRED.hit()
        if scan.end < mark.durable_offset:
            raise StoreCorrupted(
                f"{scan.stopped_by}, but the log was durable up to "
                f"{mark.durable_offset}. Run `crashmq fsck` on the directory, put the "
                f"file back from a copy, or remove `checkpoint` and start with "
                f"adopt=True to have the log cut here. Nothing was changed.",
                self._where(scan.end),
            )

    def _refuse_changed_bytes(self, scan: LogScan, mark: DurableMark) -> None:
        size = self._config.mapped_file_size_commit_log
        damaged = files_with(Damage(scan.damaged), size)
        changed = self._sums.first_changed(mark, scan.read_from, damaged)
        if changed is not None:
            CHANGED.hit()
            raise StoreCorrupted(
                f"its records are whole, but bytes that no record's CRC covers have "
                f"changed since they were made durable, up to offset "
                f"{mark.durable_offset}. Put the file back from a copy, or remove "
                f"`checkpoint` to take it as it is. Nothing was changed.",
                Place(self._path_of(changed)),
            )

    def _refuse_foreign(self, scan: LogScan) -> None:
        """Refuse to remove data that may be another program's.

        After a crash, bytes behind the last intact record may be cut unless records are
        among them. After an orderly shutdown, bytes behind the mark are another
        program's, also where the log breaks off at the mark.
        """
        to_come, self._to_come = self._to_come, None
        mark = self._checkpoint.mark
        is_served = self._serves_around and bool(scan.damaged)
        is_known = mark is not None and (is_served or scan.end <= mark.durable_offset)
        log = self._commit_log
        if to_come is None or (is_known and not goes_on(log.mapped_files, scan.end)):
            return
        losses, crashed = self.losses, self._abort.exists()
        # At the mark a bit of never written space may have changed: records must show.
        count_log(losses, log.mapped_files, scan, log.ours, crashed=crashed or is_known)
        if is_known and losses.where is None:
            return
        if not log.mapped_files.files and self._consume_queues.has_units:
            why = "there are queues but no log: storePathCommitLog may say where"
            losses.note(Place("commitlog"), why)
        to_come.note_unknown(losses, log.mapped_files)
        self._consume_queues.count_losses(losses, to_come, scan, crashed=crashed)
        self._index.count_losses(losses, scan, crashed=crashed)
        if losses.where is not None and not self._config.adopt:
            FOREIGN.hit()
            proof = "no durable mark in `checkpoint` says that this is the store's own"
            if mark is not None:
                proof = "another program wrote here since `checkpoint` was marked"
            raise StoreForeign(
                f"{losses.why}, and {proof}. A start would lose {losses}. Run "
                f"`crashmq fsck` on the directory; to have that cut and removed, start "
                f"a copy with adopt=True. Nothing was changed.",
                losses.where,
            )

    def _refuse_misnumbered(self, audit: QueueAudit) -> None:
        """Refuse an impossible queue_offset: dispatch would fill the queue up to it."""
        if audit.first_misnumbered >= 0:
            MISNUMBERED.hit()
            raise StoreCorrupted(
                "the record skips more queue offsets than the log before it has room "
                "for. Run `crashmq fsck` on the directory, put the file back from a "
                "copy, or cut the log here. Nothing was changed.",
                self._where(audit.first_misnumbered),
            )

    def _refuse_short_files(self, scan: LogScan) -> None:
        for file in self._commit_log.mapped_files.files:
            is_short = 0 < file.on_disk_size < file.file_size
            # A start that was cutting the log's end may have been ended by a crash.
            was_cut = file.file_from_offset + file.on_disk_size == scan.end
            if is_short and not (was_cut and self._abort.exists()):
                raise StoreCorrupted(
                    f"{file.on_disk_size} bytes, but files of this log have "
                    f"{file.file_size}. Start it with the size it was written with, or "
                    f"put the file back from a copy. Nothing was changed.",
                    Place(file.path),
                )

    def _note_others(self, scan: LogScan) -> None:
        """Set ``others_until`` and ``damaged_until`` for the marks of this life."""
        mark, checkpoint = self._checkpoint.mark, self._checkpoint
        others, damaged = scan.end, 0
        if mark is None:
            damaged = max([one.end for one in scan.damaged], default=0)
        else:
            damaged = mark.damaged_until
            # RocketMQ's checkpoint proves that it ran, but not when: count it once.
            if not wrote_since(checkpoint, self._abort, scan.end):
                others = min(max(mark.others_until, scan.nul_until), scan.end)
        checkpoint.others_until = others
        checkpoint.damaged_until = damaged if damaged > scan.start else 0

    def take_over(self) -> None:
        """Write a mark that the log so far is another program's, after its orderly end.

        Must come before anything is changed. Otherwise a crash during this start would
        look like a crash of that program, after which less is known of its log.

        Raises:
            OSError: the disk failed; another start tries again.
        """
        assert self._found is not None, "read() before take_over()"
        scan, checkpoint = self._found[0], self._checkpoint
        mark, others = checkpoint.mark, checkpoint.others_until
        known = mark.others_until if mark is not None else 0
        if self._abort.exists() or others <= known:
            return
        TAKEN_OVER.hit()
        if not self._was_marked and self._consume_queues.deleted:
            deleted = self._consume_queues.deleted
            deleted.settle(scan.start, scan.end, is_certain=False)
        checkpoint.open()
        if mark is None:
            sizes = (
                self._config.mapped_file_size_commit_log,
                self._config.queue_file_size,
            )
            mark = DurableMark(scan.start, scan.start, *sizes)
        damaged = checkpoint.damaged_until
        checkpoint.mark = replace(
            mark,
            log_min_offset=max(mark.log_min_offset, scan.start),
            others_until=others,
            damaged_until=damaged,
        )
        checkpoint.flush()

    def _path_of(self, offset: int) -> str:
        file = self._commit_log.mapped_files.find_mapped_file_by_offset(offset)
        assert file is not None, f"no log file begins at {offset}"
        return file.path

    def _where(self, offset: int) -> Place:
        return place_in(self._commit_log.mapped_files, offset)

    def mend(self) -> int:
        """Make the files agree with what was read; return where dispatch resumes.

        Raises:
            OSError: the disk failed; another start tries again.

        Source: DefaultMessageStore#recover.
        """
        assert self._found is not None, "read() before mend()"
        scan, audit, index = self._found
        self._found = None
        self._commit_log.ours = range(self._checkpoint.others_until, OFFSET_MAX)
        mark = self._checkpoint.mark
        # Only a mark proves that an orderly end made everything durable: without one
        # the store is new, or the files are another program's, or an operator took the
        # checkpoint away.
        clean = self.last_exit_ok and (self._was_marked or scan.end == 0)
        clean = clean and not scan.damaged
        if clean:
            # The mark of a log that is wholly another's may be that of a killed
            # ``take_over``, which no sync has made durable.
            if mark is None or not 0 < scan.end <= mark.others_until:
                self._checkpoint.trust_loaded()
            self._commit_log.recover_normally(scan)
        else:
            durable_offset = mark.durable_offset if mark else scan.start
            self._commit_log.recover_abnormally(scan, durable_offset)
        if self._set_checkpoint(scan, audit, mark):
            # Before the units go that the times and the mark on the disk vouch for.
            self._checkpoint.open()
            self._lower_mark()
            self._checkpoint.flush()
        self._consume_queues.recover(audit, scan)
        if not clean:
            self._consume_queues.sync_found()
        if self._trusts_bit_maps:
            self._consume_queues.flush(0)
            self._consume_queues.durable_dispatched_offset = scan.end
        # After the log's end is durable, and before anything is put after it.
        self._consume_queues.deleted.settle(scan.start, scan.end, is_certain=clean)
        self._index.recover(index, scan.end, clean=clean)
        lacks = _first(audit.first_wrong_phy_offset, index.first_wrong_phy_offset)
        (LACKING if lacks >= 0 else COMPLETE).hit()
        return lacks if lacks >= 0 else scan.end

    def _set_checkpoint(
        self, scan: LogScan, audit: QueueAudit, mark: DurableMark | None
    ) -> bool:
        """Lower the checkpoint to what was found; return whether it was higher."""
        checkpoint = self._checkpoint
        # Records stored before the first that may lack a durable unit have theirs.
        logics = scan.newest_timestamp
        if audit.first_unsure_timestamp >= 0:
            logics = min(logics, audit.first_unsure_timestamp)
        is_lower = logics < checkpoint.logics_msg_timestamp
        if is_lower:
            LOWERED.hit()
        checkpoint.logics_msg_timestamp = logics
        # The log is durable to its end by now, or the start has failed.
        checkpoint.physic_msg_timestamp = scan.newest_timestamp
        if checkpoint.index_msg_timestamp > scan.newest_timestamp:
            checkpoint.index_msg_timestamp = 0  # it is that of no record
        checkpoint.confirm_phy_offset = _within(checkpoint.confirm_phy_offset, scan.end)
        checkpoint.master_flushed_offset = _within(
            checkpoint.master_flushed_offset, scan.end
        )
        dispatched = min(mark.dispatched_offset, scan.end) if mark else 0
        if audit.first_wrong_phy_offset >= 0:
            dispatched = min(dispatched, audit.first_wrong_phy_offset)
        self._consume_queues.durable_dispatched_offset = dispatched
        return is_lower or (mark is not None and dispatched < mark.dispatched_offset)

    def _lower_mark(self) -> None:
        """Lower the mark's dispatched_offset to what was found.

        The present mark is durable before that: see ``StoreCheckpoint.open``.
        """
        mark = self._checkpoint.mark
        dispatched = self._consume_queues.durable_dispatched_offset
        if mark is not None and dispatched < mark.dispatched_offset:
            MARK_LOWERED.hit()
            self._checkpoint.mark = replace(mark, dispatched_offset=dispatched)


def _both(
    first: Callable[[DispatchRequest], None], second: Callable[[DispatchRequest], None]
) -> Callable[[DispatchRequest], None]:
    def visit(request: DispatchRequest) -> None:
        first(request)
        second(request)

    return visit


def _was_made_anew(key: QueueKey, audit: QueueAudit) -> bool:
    """Whether a queue agrees with its live records; True for a whole topic."""
    is_whole = key in audit.next_offsets and key not in audit.first_wrong
    return key[1] == ALL_QUEUES or is_whole


def _within(offset: int, end: int) -> int:
    """A RocketMQ offset limited to the log's end; -1 ("none yet") stays."""
    return min(offset, end) if offset >= -1 else 0


def _first(*phy_offsets: int) -> int:
    """The lowest non-negative offset; -1 if there is none."""
    return min((offset for offset in phy_offsets if offset >= 0), default=-1)
