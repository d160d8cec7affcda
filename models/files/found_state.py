"""The kind of state that a start found: what it has to decide on, in a few words.

Two directories are of one kind if they agree in all that a start looks at: none, one or
many of it, or below, at or past something else. Sizes, texts and times do not count, so
two thousand starts of all scenarios find some seven hundred kinds.
"""

from __future__ import annotations

from collections.abc import Iterator

from crashmq.models.files.config_files import config_pairs
from crashmq.models.files.index import is_index_file
from crashmq.models.files.store_image import StoreImage

_MANY = 3


def kind_of_state(image: StoreImage) -> str:
    """The kind of a directory that a start found, as a text.

    For example ``log 2 ends zeros, queues 1 short, mark below, unclean``.
    """
    return ", ".join(_parts(image))


def _parts(image: StoreImage) -> Iterator[str]:
    log = image.commit_log
    begins = " expired" if log.min_phy_offset > 0 else ""
    yield f"log {_count(len(log.files))}{begins} ends {log.stop.kind}"
    yield from _of_queues(image)
    yield from _of_checkpoint(image)
    index = sum(map(is_index_file, image.files))
    if index:
        yield f"index {_count(index)}"
    if image.has_queue_extension:
        yield "ext"
    if log.deleted.places or log.deleted.flaw:
        yield "deletions torn" if log.deleted.flaw else "deletions"
    yield from _of_tables(image)
    if image.foreign:
        yield "foreign"
    yield "unclean" if image.abort else "clean"


def _of_queues(image: StoreImage) -> Iterator[str]:
    queues = f"queues {_count(len(image.consume_queues))}"
    if image.unlisted_records:
        queues += " short"
    end = image.commit_log.max_phy_offset
    lasts = [units[-1] for _, units in image.live_units if units]
    if any(unit.phy_offset >= end for unit in lasts):
        queues += " past"
    elif image.suspect_queues:
        queues += " wrong"
    yield queues


def _of_checkpoint(image: StoreImage) -> Iterator[str]:
    checkpoint, end = image.checkpoint, image.commit_log.max_phy_offset
    mark = checkpoint.mark
    if not image.has_checkpoint:
        yield "no checkpoint"
    elif mark is None:
        yield "no mark"
    else:
        durable = _beside(mark.durable_offset, end)
        lags = mark.dispatched_offset < mark.durable_offset
        others = " others" if mark.others_until else ""
        yield f"mark {durable}{' lags' if lags else ''}{others}"
    if checkpoint.torn_slots:
        yield "mark torn"


def _of_tables(image: StoreImage) -> Iterator[str]:
    """Names of config files, with the state of those that are not whole."""
    for path, pair in config_pairs(image.files).items():
        name = path.rpartition("/")[2].partition(".")[0]
        state = "" if pair.file.state == "whole" else f" {pair.file.state}"
        yield f"{name}{state}{' lost' if pair.loaded is None else ''}"


def _count(number: int) -> str:
    return str(number) if number < _MANY else f"{_MANY}+"


def _beside(offset: int, end: int) -> str:
    if offset == end:
        return "at"
    return "below" if offset < end else "past"
