"""The laws that files must keep even before a start has mended them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from operator import attrgetter

from harness.interpreter import Report
from models.image.checkpoint import CheckpointImage
from models.invariants.checkpoint import (
    dispatched_offset_is_in_the_queues,
    dispatched_time_is_in_the_queues,
    durable_mark_is_in_the_log,
    flushed_time_is_in_the_log,
    marked_bytes_are_unchanged,
    marks_never_move_backwards,
)
from models.invariants.commit_log import every_record_is_whole
from models.invariants.file_laws import DISPATCH_LAWS, FILE_LAWS
from models.invariants.index import ended_files_are_whole
from models.invariants.judged import Judged
from models.invariants.registry import Invariant
from models.invariants.topic_deletion import record_of_deletions_is_whole
from models.observations import Crashed

CLAIMS: tuple[Invariant[[Judged]], ...] = (
    every_record_is_whole,
    durable_mark_is_in_the_log,
    flushed_time_is_in_the_log,
    dispatched_time_is_in_the_queues,
    dispatched_offset_is_in_the_queues,
    ended_files_are_whole,
    marked_bytes_are_unchanged,
    record_of_deletions_is_whole,
)
"""What no crash may break."""

_beside_the_image = attrgetter(
    *[field.name for field in fields(Judged) if field.name != "image"]
)
_TIMES = (flushed_time_is_in_the_log, dispatched_time_is_in_the_queues)
_CLAIMS_BUT_TIMES = tuple(law for law in CLAIMS if law not in _TIMES)


def hold_all(
    checks: dict[str, int],
    name: str,
    laws: Sequence[Invariant[[Judged]]],
    judged: Judged,
) -> None:
    """Hold files against a group of laws of that name; once for each image.

    Raises:
        InvariantViolated: the law that was broken first.
        InvariantUnknown: a law failed itself.
    """
    kept = judged.image.kept_laws
    key = (name, _beside_the_image(judged))
    if key in kept:
        for law in laws:
            checks[law.id] = checks.get(law.id, 0) + 1
        return
    for law in laws:
        law.hold(checks, judged)
    kept.add(key)


def judge_files(checks: dict[str, int], judged: Judged, *, dispatched: bool) -> None:
    """Judge the files of a store at rest or running, as far as its disk let it.

    ``dispatched``: a round of dispatch has come to its end, so that what it writes is
    right, be it that the disk failed before.
    """
    hold_all(checks, "files", FILE_LAWS, judged)
    if dispatched and not judged.clean:
        hold_all(checks, "dispatch", DISPATCH_LAWS, replace(judged, clean=True))


def judge_claims(
    checks: dict[str, int],
    judged: Judged,
    before: CheckpointImage | None,
    *,
    torn: bool,
    forgot: bool = False,
) -> None:
    """Judge what no crash may break.

    A store cut amid one of the checkpoint's times leaves a time nobody wrote. None of
    them has a CRC, and no start believes them.

    Args:
        checks: how often each law was asked.
        judged: the files.
        before: the checkpoint known before.
        torn: a crash came amid a write of the checkpoint.
        forgot: memory has lost what a failed sync had left; of an index file, which
            nobody writes again before it is synced anew, that is told as durable.

    Raises:
        InvariantViolated: the law that was broken first.
        InvariantUnknown: a law failed itself.
    """
    laws = _CLAIMS_BUT_TIMES if torn else CLAIMS
    if forgot:
        laws = tuple([law for law in laws if law is not ended_files_are_whole])
    hold_all(checks, f"claims, torn {torn}, forgot {forgot}", laws, judged)
    if before is not None and judged.image.has_checkpoint:
        marks_never_move_backwards.hold(checks, before, judged.image.checkpoint)


def tears_the_checkpoint(report: Report) -> bool:
    """Whether the crash came amid a write of the checkpoint."""
    seen, crash = report.observation, report.crash
    is_cut = crash is not None and crash.cut > 0
    return is_cut and isinstance(seen, Crashed) and seen.action == "write:checkpoint"
