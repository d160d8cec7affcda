"""What fsck says of a broker's config files: a summary, notes, and the next start.

What breaks a law is said by ``models/laws/config_files.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from crashmq.harness.fsck.filter_notes import (
    BROKERS_OWN_GROUPS,
    filters_next_start,
    notes_on_filters,
)
from crashmq.models.files.config_files import (
    BACKUP,
    GROUPS_PATH,
    TOPICS_PATH,
    ConfigPair,
    State,
    committed,
    config_pair,
    config_pairs,
)
from crashmq.models.files.delays import DELAYS_PATH
from crashmq.models.files.offsets import OFFSETS_PATH
from crashmq.models.files.store_image import StoreImage
from crashmq.models.laws.config_files import queue_ends

SCHEDULE_TOPIC: Final = "SCHEDULE_TOPIC_XXXX"
LIGHT_PREFIX: Final = "%LMQ%"


@dataclass(frozen=True, slots=True)
class ConfigSummary:
    """One config file; ``rows`` are those of the copy that a careful start takes."""

    path: str
    state: State
    backup: State
    rows: int


def config_summary(image: StoreImage) -> tuple[ConfigSummary, ...]:
    """Each config file that is there, or has a backup."""
    return tuple(
        ConfigSummary(path, pair.file.state, pair.backup.state, len(pair.rows))
        for path, pair in config_pairs(image.files).items()
    )


def config_notes(image: StoreImage) -> Iterator[str]:
    """What is worth knowing of them and breaks no law."""
    for path, pair in config_pairs(image.files).items():
        yield from _of_copies(path, pair)
    yield from _of_offsets(image)
    yield from _of_delays(image)
    yield from _of_groups(image)
    yield from _of_topics(image)
    yield from notes_on_filters(image)


def _of_copies(path: str, pair: ConfigPair) -> Iterator[str]:
    file, backup = pair.file, pair.backup
    if file.state != "whole" and backup.state == "whole":
        yield f"{path} is {file.state}; its backup is whole, with {_rows(pair)}."
    elif file.state == "whole" and backup.state in ("torn", "empty"):
        yield f"{backup.path} is {backup.state}; the file itself is whole."
    elif pair.loaded is None:
        yield f"{path} is {file.state}, and its backup {backup.state}."
    elif not file.rows and backup.rows:
        yield (
            f"{path} has no row, and its backup {len(backup.rows)}: a start that "
            f"failed may have written it so. Compare the two before anything starts."
        )


def _rows(pair: ConfigPair) -> str:
    count = len(pair.rows)
    return f"{count} row{'' if count == 1 else 's'}"


def _of_offsets(image: StoreImage) -> Iterator[str]:
    ends = queue_ends(image)
    begins = {
        queue.key: live[0].queue_offset for queue, live in image.live_units if live
    }
    topics = config_pair(image.files, TOPICS_PATH).rows
    for group, topic, queue_id, offset in committed(image.files):
        key = topic, queue_id
        what = f"{OFFSETS_PATH}: offset {offset} of {group} on {topic}/{queue_id}"
        if key not in ends:
            if topic not in topics and not any(topic == known for known, _ in ends):
                yield f"{what} is of a topic that there is not."
            elif offset:
                yield f"{what} is of a queue without a message."
        elif offset > ends[key]:
            yield f"{what} is past the queue's end, {ends[key]}."
        elif offset < begins.get(key, ends[key]):
            first = begins.get(key, ends[key])
            yield f"{what} is below the queue's first message, {first}."


def _of_delays(image: StoreImage) -> Iterator[str]:
    ends = queue_ends(image)
    for level, offset in config_pair(image.files, DELAYS_PATH).rows.items():
        end = ends.get((SCHEDULE_TOPIC, int(level) - 1), 0)
        if offset > end:
            what = f"{DELAYS_PATH}: offset {offset} of delay level {level}"
            yield f"{what} is past its queue's end, {end}."


def _of_groups(image: StoreImage) -> Iterator[str]:
    groups = config_pair(image.files, GROUPS_PATH).rows
    consumes = {group for group, *_ in committed(image.files)}
    if not consumes:
        return  # that table is lost, or nobody consumes yet
    for group in sorted(set(groups) - consumes - BROKERS_OWN_GROUPS):
        yield f"{GROUPS_PATH}: group {group} has consumed of no topic."


def _of_topics(image: StoreImage) -> Iterator[str]:
    pair = config_pair(image.files, TOPICS_PATH)
    if pair.loaded is None:
        return
    stored = {topic for topic, _ in queue_ends(image)}
    for topic in sorted(stored - set(pair.rows)):
        if not topic.startswith(LIGHT_PREFIX):
            yield f"{TOPICS_PATH}: topic {topic} has messages, and is not there."


def config_next_start(image: StoreImage) -> Iterator[str]:
    """What a start makes of them."""
    is_ours = image.checkpoint.mark is not None
    is_refused = False
    for path, pair in config_pairs(image.files).items():
        if pair.loaded is None:
            yield _of_none_whole(path, pair, is_ours=is_ours)
            is_refused = True
        elif pair.loaded is pair.backup:
            yield f"takes {path}{BACKUP}, since {path} is {pair.file.state}."
    if is_refused:
        return
    yield from filters_next_start(image)
    ends = queue_ends(image)
    for group, topic, queue_id, offset in committed(image.files):
        end = ends.get((topic, queue_id), 0)
        if offset > end:
            what = f"{group} on {topic}/{queue_id}"
            if is_ours:
                yield f"lowers {what} from {offset} to {end}, the queue's end."
            else:
                yield f"keeps {what} at {offset}, past the queue's end {end}."


def _of_none_whole(path: str, pair: ConfigPair, *, is_ours: bool) -> str:
    if is_ours:
        return f"refuses: neither {path} nor its backup is whole."
    if pair.backup.state in ("missing", "empty"):
        return f"begins without any row of {path}, and says nothing."
    return (
        f"refuses: neither {path} nor its backup is whole; its end then writes tables "
        f"without a row over both."
    )
