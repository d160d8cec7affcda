"""What fsck finds: each breach of a law, and files where they must not be.

A law that fails itself is a finding too; the report goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from crashmq.harness.fsck.as_found import Tell
from crashmq.harness.fsck.places import Places
from crashmq.harness.fsck.store_files import Found
from crashmq.models.files.config_files import CONFIG_PATHS
from crashmq.models.files.deleted import DELETED_PATH
from crashmq.models.files.store_image import StoreImage
from crashmq.models.laws.checkpoint import (
    checkpoint_is_up_to_date,
    rest_of_the_checkpoint_is_zero,
)
from crashmq.models.laws.file_laws import CONFIG_LAWS, FILE_LAWS
from crashmq.models.laws.judged import Judged
from crashmq.models.laws.registry import Law, LawUnknown
from crashmq.models.printable import printable
from crashmq.models.verdict import Place, Violation

_LAWS_OF_MISSING_UNITS = ("CQ-4", "CP-3", "CP-7")
_FOLDERS = frozenset({"commitlog", "consumequeue", "index", "config"})
_JUDGED_DIRS = ("commitlog", "consumequeue", "index")
_JUDGED_FILES = frozenset(
    {"abort", "checkpoint", "config", "lock", DELETED_PATH, *CONFIG_PATHS}
)


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


def findings(judged: Judged, tell: Tell) -> Iterator[Finding]:
    """Every breach of the laws of files and config files, in the order of the laws."""
    lacking: set[tuple[str, str]] = set()
    for number, law in enumerate(FILE_LAWS):
        tell("asking laws", number, len(FILE_LAWS))
        found = [*_asked(law, judged)]
        if law.id in _LAWS_OF_MISSING_UNITS:
            # They ask for the same units, each for a reason of its own.
            found = [f for f in found if (f.where, f.seen) not in lacking]
            lacking.update((f.where, f.seen) for f in found)
        yield from found
    if judged.image.has_checkpoint:
        rest = rest_of_the_checkpoint_is_zero
        yield from _asked(rest, judged.image)
    for law_of_config in CONFIG_LAWS:
        yield from _asked(law_of_config, judged)
    is_ours_at_rest = judged.clean and judged.image.checkpoint.mark is not None
    if is_ours_at_rest and judged.monotonic_clock:
        law_at_rest = checkpoint_is_up_to_date
        yield from _asked(law_at_rest, judged.image)


def _asked(law: Law[Any], what: Judged | StoreImage) -> Iterator[Finding]:
    """The breaches of a law; of one that fails itself, that."""
    try:
        yield from _told(law, law.violations(what))
    except LawUnknown as error:
        yield of_a_defect(law.id, law.sentence, error)


def _told(law: Law[Any], breaches: list[Violation]) -> Iterator[Finding]:
    for breach in breaches:
        where, seen, expected = breach.where, breach.seen, breach.expected
        place = _place_of(where)
        yield Finding(
            law.id, law.catalogue, law.sentence, where, *place, seen, expected
        )


def _place_of(where: str) -> tuple[str, int | None]:
    return (where.path, where.byte) if isinstance(where, Place) else (where, None)


def unread(found: Found) -> Iterator[Finding]:
    """Files of the store that are not read, such as links, pipes and devices."""
    sentence = "every file of a store can be read"
    for path, what in found.oddities:
        if path == "lock" and what.startswith("is a link out"):
            continue  # nothing is kept there: it may lie where its owner likes
        if path in _JUDGED_FILES or path.startswith(_JUDGED_DIRS):
            expected = "a file of the store"
            yield Finding("DIR-1", "", sentence, path, path, None, what, expected)


def misplaced(found: Found, image: StoreImage) -> Iterator[Finding]:
    """Files where folders have to be, and folders of queues beside no log at all."""
    sentence = "log, queues, index and config are folders"
    queues = image.commit_log.indexed_records
    places = {*_FOLDERS, *[f"consumequeue/{topic}/{n}" for topic, n in queues]}
    for path in found.files:
        if path in places:
            yield Finding("DIR-1", "", sentence, path, path, None, "a file", "a folder")
    if not image.commit_log.files and found.folders:
        sentence = "queues lie beside the log that they list"
        seen = f"folders of {len(found.folders)} topics, and no log file"
        what = "commitlog", "commitlog", None, seen, "the log's files"
        yield Finding("DIR-3", "", sentence, *what)


def other_sizes(image: StoreImage, places: Places) -> Iterator[Finding]:
    """Files of another size than the broker's configuration says: it refuses them."""
    for kind, said, seen in (
        ("mappedFileSizeCommitLog", places.log_file_size, image.commit_log.file_size),
        ("mappedFileSizeConsumeQueue", places.queue_file_size, image.queue_file_size),
    ):
        if said and seen and said != seen:
            path = "commitlog" if kind.endswith("Log") else "consumequeue"
            sentence = "files have the size that the broker's configuration says"
            text, expected = f"files of {seen:,} bytes", f"{said:,}, as {kind} says"
            yield Finding("DIR-2", "", sentence, path, path, None, text, expected)


def of_a_defect(law: str, sentence: str, error: BaseException) -> Finding:
    """That a law, or a part of the report, failed itself."""
    cause = error.__cause__ if isinstance(error, LawUnknown) else error
    seen = f"this law failed itself: {type(cause).__name__}: {printable(str(cause))}"
    expected = "an answer; this is a defect of crashmq, please report it"
    return Finding(law, "", sentence, "", "", None, seen[:300], expected)
