"""fsck: the laws of the files on any store directory, read only.

A directory with an ``abort`` file was found after a crash: it must keep only what no
crash may break, and what else a store at rest must keep is noted. One without must
keep every law; bytes past the ends that an earlier cut may have left, as RocketMQ
leaves them, are a note. Either way the report says what the next start would do, and
its first line is the answer that an operator asked for.

A store of ours that RocketMQ has written on since is judged as RocketMQ's: its mark
says where ours ended, and no more.

Nothing is created, locked or written (``store_files`` reads). The laws know
the formats, this module only modes and words.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from crashmq.harness.fsck.advice import advice_on
from crashmq.harness.fsck.as_found import (
    Tell,
    judged_as_found,
    read_image,
    tell_nobody,
)
from crashmq.harness.fsck.causes import Cause, causes_of
from crashmq.harness.fsck.config_notes import (
    ConfigSummary,
    config_next_start,
    config_summary,
)
from crashmq.harness.fsck.counts import Counts, counts_of
from crashmq.harness.fsck.findings import (
    Finding,
    findings,
    misplaced,
    of_a_defect,
    other_sizes,
    unread,
)
from crashmq.harness.fsck.next_start import next_start, some_of
from crashmq.harness.fsck.notes import notes_on
from crashmq.harness.fsck.places import Places
from crashmq.harness.fsck.releases import Release
from crashmq.harness.fsck.store_files import Found, NotAStore, find_files, without_index
from crashmq.harness.fsck.survey import Manner, survey
from crashmq.models.files.inferred_deletions import InferredDeletions, infer_deletions
from crashmq.models.files.left_out import NOTHING, LeftOut
from crashmq.models.files.store_image import Bytes, StoreImage

__all__ = [
    "fsck",
    "report_on",
    "FsckReport",
    "Finding",
    "NotAStore",
]

JSON_FORMAT = 2
USUAL = Manner()


@dataclass(frozen=True, slots=True)
class QueueSummary:
    """One queue: the range a reader would see, in queue_offset."""

    queue: str
    min_offset: int
    max_offset: int
    files: int


@dataclass(frozen=True, slots=True)
class Summary:
    """What there is, in numbers; offsets and sizes in bytes."""

    log_files: int
    log_file_size: int
    min_phy_offset: int
    max_phy_offset: int
    log_ends_at: str
    records: int
    queue_files: int
    units: int
    durable_offset: int | None
    queues: tuple[QueueSummary, ...]
    config: tuple[ConfigSummary, ...] = ()


@dataclass(frozen=True, slots=True)
class FsckReport:
    """What fsck found.

    Attributes:
        root: the directory, as it was given.
        mode: ``crashed`` if the abort file is there, else ``clean``.
        summary: ranges and counts.
        violations: breaches of laws, in the order of the laws.
        notes: what is worth knowing and breaks no law.
        next_start: what the next start would cut, drop or rebuild, a sentence each.
        counts: messages by topic and queue, and what a start loses of them.
        causes: the violations by what an operator would call their cause.
        advice: what to do now, a sentence each.
    """

    root: str
    mode: str
    summary: Summary
    violations: tuple[Finding, ...]
    notes: tuple[str, ...]
    next_start: tuple[str, ...]
    counts: Counts
    causes: tuple[Cause, ...] = ()
    advice: tuple[str, ...] = ()

    @property
    def is_clean(self) -> bool:
        """Whether every law holds."""
        return not self.violations

    @property
    def verdict(self) -> str:
        """The report's first line."""
        counts = self.counts
        if self.violations:
            return (
                f"DAMAGED: {counts.damaged:,} messages unreadable, {counts.whole:,} "
                f"whole"
            )
        if counts.lost:
            return f"CLEAN, BUT A START LOSES {counts.lost:,} MESSAGES"
        return "CLEAN"

    def to_json(self) -> dict[str, Any]:
        """The report as a JSON object; offsets are numbers.

        ``format`` is 1 as long as no field changes its meaning or goes.
        """
        counts = self.counts
        totals = {
            "whole": counts.whole,
            "damaged": counts.damaged,
            "behind_damage": counts.behind_damage,
            "lost_by_rocketmq": counts.lost_by_rocketmq,
            "lost_by_crashmq": counts.lost_by_crashmq,
        }
        said = {"format": JSON_FORMAT, "verdict": self.verdict, "messages": totals}
        return {**said, "is_clean": self.is_clean, **asdict(self)}


def fsck(
    root: Path,
    tell: Tell = tell_nobody,
    *,
    places: Places | None = None,
    release: Release | None = None,
    manner: Manner = USUAL,
) -> FsckReport:
    """Judge the files of a store directory without changing them.

    Args:
        root: the directory.
        tell: told how far it is, as (what, done, total).
        places: where its files lie, and its sizes, where somebody says so.
        release: of the RocketMQ that will start there; None: as its files show.
        manner: how it is read.

    Raises:
        NotAStore: the directory is absent, unreadable, in use or not a store's.
    """
    known = places or Places(root)
    found = find_files(known)
    if not manner.with_index:
        found = without_index(found)
    left_out = survey(found, tell, manner)
    report = _report(str(root), found, known, release, tell, left_out)
    if not manner.with_index:
        report = replace(report, notes=("index: not judged.", *report.notes))
    return report


def report_on(
    root: str,
    files: Mapping[str, Bytes],
    folders: Collection[str],
    tell: Tell = tell_nobody,
) -> FsckReport:
    """Judge the files of a store.

    Args:
        root: what to call it.
        files: contents by path from the root on; those no law reads may be empty.
        folders: names in ``consumequeue``, also of those without a file.
        tell: told how far it is, as (what, done, total).
    """
    found = Found(dict(files), tuple(folders))
    return _report(root, found, Places(Path(root)), None, tell)


def _report(
    root: str,
    found: Found,
    places: Places,
    release: Release | None,
    tell: Tell,
    left_out: LeftOut = NOTHING,
) -> FsckReport:
    image, is_ours, written_on = read_image(
        found.files, tell, places.delay_ms, left_out
    )
    taken = InferredDeletions(image, ())
    if not is_ours:
        taken = infer_deletions(image, found.folders)
    judged = judged_as_found(taken.image, places.index_slots)
    image = judged.image
    laid_out = (*unread(found), *misplaced(found, image), *other_sizes(image, places))
    violations = (*laid_out, *findings(judged, tell))
    failed: list[Finding] = []
    notes = _tried("notes", failed, lambda: notes_on(judged))
    starts = _tried("next start", failed, lambda: next_start(image, release))
    rows = _tried("next start", failed, lambda: config_next_start(image))
    if written_on:
        text = "RocketMQ has written on since crashmq's durable mark: it is not asked."
        notes = (text, *notes)
    odd = tuple([f"{path} {what}." for path, what in found.oddities])
    counts = counts_of(judged, is_ours=is_ours, release=release)
    violations = (*violations, *failed)
    causes = causes_of(image, violations)
    return FsckReport(
        root=root,
        mode="crashed" if image.abort else "clean",
        summary=_summary(image),
        violations=violations,
        notes=(*odd, *taken.notes, *notes),
        next_start=(*starts, *some_of(rows, "such rows")),
        counts=counts,
        causes=causes,
        advice=tuple(advice_on(places.words, image, counts, causes)),
    )


def _tried(
    what: str, failed: list[Finding], work: Callable[[], Iterator[str]]
) -> tuple[str, ...]:
    """The sentences of one part of the report; a defect of ours ends it alone."""
    said: list[str] = []
    try:
        said.extend(work())
    except Exception as error:  # whatever it is, the rest is still said
        failed.append(of_a_defect(what, "this part of the report", error))
    return tuple(said)


def _summary(image: StoreImage) -> Summary:
    log, mark = image.commit_log, image.checkpoint.mark
    return Summary(
        log_files=len(log.files),
        log_file_size=log.file_size,
        min_phy_offset=log.min_phy_offset,
        max_phy_offset=log.max_phy_offset,
        log_ends_at=f"{log.stop.where}: {log.stop.seen}",
        records=log.count_of_chain,
        queue_files=sum(len(queue.files) for queue in image.consume_queues),
        units=sum(queue.count(queue.units) for queue in image.consume_queues),
        durable_offset=None if mark is None else mark.durable_offset,
        queues=tuple(
            QueueSummary(
                queue.name,
                live[0].queue_offset if live else queue.end,
                queue.end,
                len(queue.files),
            )
            for queue, live in image.live_units
        ),
        config=config_summary(image),
    )
