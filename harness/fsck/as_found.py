"""The image of a directory of which only the files are known, and how to judge it.

A store of ours that RocketMQ has written to since is read as RocketMQ's: its mark only
says where ours ended.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeAlias

from crashmq.models.files.checkpoint import Mark, read_checkpoint
from crashmq.models.files.delay_levels import with_delay_levels
from crashmq.models.files.left_out import NOTHING, LeftOut
from crashmq.models.files.store_image import Bytes, StoreImage, read_store
from crashmq.models.laws.commit_log import clock_steps
from crashmq.models.laws.judged import Judged

_LOCKED = b"lock"
Tell: TypeAlias = Callable[[str, int, int], None]


def tell_nobody(what: str, done: int, total: int) -> None:
    """The progress callback of programs: it prints nothing."""


def read_image(
    files: Mapping[str, Bytes],
    tell: Tell = tell_nobody,
    delay_ms: tuple[int, ...] = (),
    left_out: LeftOut = NOTHING,
) -> tuple[StoreImage, bool, bool]:
    """The decoded store, whether it is ours, and whether another program wrote it.

    Returns:
        (image, is_ours, was_written_on): ``is_ours`` if a durable mark says so and
            no other program has written since; ``was_written_on`` if one has.
    """
    logs = [path for path in sorted(files) if path.startswith("commitlog/")]
    tell("reading log files", 0, len(logs))
    decoded: list[str] = []

    def watch(path: str) -> None:
        decoded.append(path)
        tell("reading log files", len(decoded), len(logs))

    mark = read_checkpoint(files.get("checkpoint", b"")).mark
    image = read_store(files, watch=watch, by_rocketmq=True, left_out=left_out)
    written_on = mark is not None and _was_written_on(image, mark)
    if written_on:
        checkpoint = image.checkpoint._replace(mark=None)
        image = replace(image, checkpoint=checkpoint)
    image = with_delay_levels(image, delay_ms)
    return image, mark is not None and not written_on, written_on


def _was_written_on(image: StoreImage, mark: Mark) -> bool:
    """Whether RocketMQ has used a store of ours since its mark was written.

    An orderly end of ours brings the mark to the log's end, and nobody expires files
    below it but with it. RocketMQ leaves the mark as it was, and a word in the lock.
    """
    log = image.commit_log
    if image.checkpoint.torn_slots or bytes(image.files.get("lock", b"")) != _LOCKED:
        return False
    went_on = not image.abort and log.max_phy_offset > mark.durable_offset
    has_expired = log.min_phy_offset > mark.log_min_offset
    return (went_on or has_expired) and not log.breaks


def judged_as_found(image: StoreImage, index_slots: int = 0) -> Judged:
    """How to judge a directory of which only the files are known.

    ``index_slots`` is the number of slots of each index file; 0: derive it.
    """
    monotonic = not clock_steps(image)
    if image.abort:
        return Judged(
            image,
            clean=False,
            monotonic_clock=monotonic,
            index_slots=index_slots,
            takes_odd_properties=True,
            # Ours takes back what a crash left above its mark; RocketMQ looks on.
            whole_sectors=image.checkpoint.mark is None,
        )
    # A store takes its abort file away only once dispatch has reached the log's end.
    return Judged(
        image,
        reput_from_offset=image.commit_log.max_phy_offset,
        monotonic_clock=monotonic,
        index_slots=index_slots,
        takes_odd_properties=True,
        # RocketMQ leaves what it cuts, this store erases it: a mark tells them apart.
        stale_allowed=image.checkpoint.mark is None,
    )
