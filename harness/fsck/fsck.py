"""fsck: the laws of the files on any store directory, read only.

A directory with an ``abort`` file was found after a crash: it must keep only what no
crash may break, and what else a store at rest must keep is noted. One without must
keep every law; bytes past the ends that an earlier cut may have left, as RocketMQ
leaves them, are a note. Either way the report says what the next start would do.

Nothing is created, locked or written (``store_files`` reads). The laws know
the formats, this module only modes and words.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

from crashmq.harness.fsck.config_notes import (
    ConfigSummary,
    config_next_start,
    config_summary,
)
from crashmq.harness.fsck.next_start import next_start, some_of
from crashmq.harness.fsck.notes import notes_on
from crashmq.harness.fsck.store_files import NotAStore, queue_folders, read_files
from crashmq.models.files.checkpoint import read_checkpoint
from crashmq.models.files.presumed import Presumption, presumed
from crashmq.models.files.store_image import Bytes, StoreImage, read_store
from crashmq.models.laws.checkpoint import (
    checkpoint_is_up_to_date,
    rest_of_the_checkpoint_is_zero,
)
from crashmq.models.laws.commit_log import clock_steps
from crashmq.models.laws.file_laws import CONFIG_LAWS, FILE_LAWS
from crashmq.models.laws.judged import Judged
from crashmq.models.laws.registry import Law
from crashmq.models.verdict import Place, Violation

__all__ = ["fsck", "report_on", "judged_as_found", "FsckReport", "Finding", "NotAStore"]

_LAWS_OF_MISSING_UNITS = ("CQ-4", "CP-3", "CP-7")
JSON_FORMAT = 2
Tell: TypeAlias = Callable[[str, int, int], None]


def _tell_nobody(what: str, done: int, total: int) -> None:
    """Who asks from a program waits without a word."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One breach: which law, where, what was seen and what was expected.

    ``where`` is for people; ``path`` and ``byte`` are the same place for programs, the
    byte None where a whole file or folder is meant.
    """

    law: str
    catalogue: str
    sentence: str
    where: str
    path: str
    byte: int | None
    seen: str
    expected: str

    def __str__(self) -> str:
        wanted = f"; expected {self.expected}" if self.expected else ""
        return f"{self.law} {self.where}: {self.seen}{wanted}"


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
    """

    root: str
    mode: str
    summary: Summary
    violations: tuple[Finding, ...]
    notes: tuple[str, ...]
    next_start: tuple[str, ...]

    @property
    def is_clean(self) -> bool:
        """Whether every law holds."""
        return not self.violations

    def to_json(self) -> dict[str, Any]:
        """The report as a JSON object; offsets are numbers.

        ``format`` is 1 as long as no field changes its meaning or goes.
        """
        return {"format": JSON_FORMAT, "is_clean": self.is_clean, **asdict(self)}


def fsck(root: Path, tell: Tell = _tell_nobody) -> FsckReport:
    """Judge the files of a store directory without changing them.

    Raises:
        NotAStore: the directory is absent, unreadable or not a store's.
    """
    return report_on(str(root), read_files(root), queue_folders(root), tell)


def report_on(
    root: str,
    files: Mapping[str, Bytes],
    folders: Collection[str],
    tell: Tell = _tell_nobody,
) -> FsckReport:
    """Judge the files of a store.

    Args:
        root: what to call it.
        files: contents by path from the root on; those no law reads may be empty.
        folders: names in ``consumequeue``, also of those without a file.
        tell: told how far it is, as (what, done, total).
    """
    logs = [path for path in sorted(files) if path.startswith("commitlog/")]
    tell("reading log files", 0, len(logs))
    decoded: list[str] = []

    def watch(path: str) -> None:
        decoded.append(path)
        tell("reading log files", len(decoded), len(logs))

    is_ours = read_checkpoint(files.get("checkpoint", b"")).mark is not None
    image = read_store(files, watch=watch, by_rocketmq=not is_ours)
    taken = Presumption(image, ())
    if not is_ours:
        taken = presumed(image, folders)
    judged = judged_as_found(taken.image)
    image = judged.image
    return FsckReport(
        root=root,
        mode="crashed" if image.abort else "clean",
        summary=_summary(image),
        violations=tuple(_findings(judged, tell)),
        notes=(*taken.notes, *notes_on(judged)),
        next_start=(
            *next_start(image),
            *some_of(config_next_start(image), "such rows"),
        ),
    )


def judged_as_found(image: StoreImage) -> Judged:
    """How to judge a directory of which nothing but its files is known."""
    monotonic = not clock_steps(image)
    if image.abort:
        return Judged(
            image,
            clean=False,
            monotonic_clock=monotonic,
            # Ours takes back what a crash left above its mark; RocketMQ looks on.
            whole_sectors=image.checkpoint.mark is None,
        )
    # A store takes its abort file away only once dispatch has reached the log's end.
    return Judged(
        image,
        reput_from_offset=image.commit_log.max_phy_offset,
        monotonic_clock=monotonic,
        # RocketMQ leaves what it cuts, this store erases it: a mark tells them apart.
        stale_allowed=image.checkpoint.mark is None,
    )


def _findings(judged: Judged, tell: Tell) -> Iterator[Finding]:
    lacking: set[tuple[str, str]] = set()
    for number, law in enumerate(FILE_LAWS):
        tell("asking laws", number, len(FILE_LAWS))
        found = [*_told(law, law.violations(judged))]
        if law.id in _LAWS_OF_MISSING_UNITS:
            # They ask for the same units, each for a reason of its own.
            found = [f for f in found if (f.where, f.seen) not in lacking]
            lacking.update((f.where, f.seen) for f in found)
        yield from found
    if judged.image.has_checkpoint:
        rest = rest_of_the_checkpoint_is_zero
        yield from _told(rest, rest.violations(judged.image))
    for law_of_config in CONFIG_LAWS:
        yield from _told(law_of_config, law_of_config.violations(judged))
    is_ours_at_rest = judged.clean and judged.image.checkpoint.mark is not None
    if is_ours_at_rest and judged.monotonic_clock:
        law_at_rest = checkpoint_is_up_to_date
        yield from _told(law_at_rest, law_at_rest.violations(judged.image))


def _told(law: Law[Any], breaches: list[Violation]) -> Iterator[Finding]:
    for breach in breaches:
        where, seen, expected = breach.where, breach.seen, breach.expected
        place = _place_of(where)
        yield Finding(
            law.id, law.catalogue, law.sentence, where, *place, seen, expected
        )


def _place_of(where: str) -> tuple[str, int | None]:
    return (where.path, where.byte) if isinstance(where, Place) else (where, None)


def _summary(image: StoreImage) -> Summary:
    log, mark = image.commit_log, image.checkpoint.mark
    return Summary(
        log_files=len(log.files),
        log_file_size=log.file_size,
        min_phy_offset=log.min_phy_offset,
        max_phy_offset=log.max_phy_offset,
        log_ends_at=f"{log.stop.where}: {log.stop.seen}",
        records=len(log.records),
        queue_files=sum(len(queue.files) for queue in image.consume_queues),
        units=sum(len(queue.units) for queue in image.consume_queues),
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
