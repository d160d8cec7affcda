"""What fsck says of a broker's table of consumer filters: notes, and the next start.

A group may subscribe a topic before there is one, and is registered before it consumes;
so only what breaks a law of ``models/laws/config_files.py`` is a violation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from crashmq.engine.broker.filter.consumer_filter_data import condition_of
from crashmq.models.files.config_files import (
    BACKUP,
    GROUPS_PATH,
    TOPICS_PATH,
    committed,
    config_pair,
    filters_in,
)
from crashmq.models.files.filters import FILTERS_PATH, FilterEntry
from crashmq.models.files.store_image import StoreImage
from crashmq.models.laws.config_files import queue_ends

BROKERS_OWN_GROUPS: Final = frozenset(
    {
        *("TOOLS_CONSUMER", "FILTERSRV_CONSUMER", "SELF_TEST_C_GROUP"),
        *("CID_ONS-HTTP-PROXY", "CID_ONSAPI_PULL", "CID_ONSAPI_PERMISSION"),
        *("CID_ONSAPI_OWNER", "CID_RMQ_SYS_TRANS", "CID_SYS_RMQ_TRANS"),
    }
)
BITS_BY_DEFAULT: Final = (3, 112)
"""How many bits a filter has, of how many: an error rate of 20 percent, 32 groups."""


def notes_on_filters(image: StoreImage) -> Iterator[str]:
    """What is worth knowing of the copy that a careful start takes."""
    loaded = _loaded(image)
    topics = set(config_pair(image.files, TOPICS_PATH).rows)
    topics.update([topic for topic, _ in queue_ends(image)])
    groups = config_pair(image.files, GROUPS_PATH)
    known = {*groups.rows, *BROKERS_OWN_GROUPS}
    known.update([group for group, *_ in committed(image.files)])
    for one in loaded:
        what = f"{FILTERS_PATH}: the filter of {one.group} on {one.topic}"
        if one.topic not in topics:
            yield f"{what} is of a topic that there is not."
        if groups.loaded is not None and one.group not in known:
            yield f"{what} is of a group that there is not."
        if not _is_readable(one):
            yield f"{what} has an expression that cannot be read: {one.expression}"
    yield from _of_versions(image)


def _of_versions(image: StoreImage) -> Iterator[str]:
    """Filters that a backup has newer, though it was written before its file."""
    newest: dict[tuple[str, str], int] = {}
    for path, one in filters_in(image.files):
        key = one.group, one.topic
        if not path.endswith(BACKUP):
            newest[key] = one.version
        elif newest.get(key, one.version) < one.version:
            yield (
                f"{path}: the filter of {one.group} on {one.topic} has version "
                f"{one.version}, newer than {newest[key]} of the file itself."
            )


def filters_next_start(image: StoreImage) -> Iterator[str]:
    """What a start makes of the filters that it finds."""
    loaded = _loaded(image)
    shapes = {(len(one.bit_pos), one.bit_num) for one in loaded}
    if shapes - {BITS_BY_DEFAULT}:
        count, of = min(shapes - {BITS_BY_DEFAULT})
        yield (
            f"passes over all of {FILTERS_PATH}, unless each filter of this broker is "
            f"to have {count} bits of {of}: groups have to subscribe again."
        )
        return
    for one in loaded:
        if not _is_readable(one):
            what = f"{one.group} on {one.topic}"
            yield f"filters nothing for {what}, until the group subscribes again."


def _loaded(image: StoreImage) -> list[FilterEntry]:
    text = config_pair(image.files, FILTERS_PATH).loaded
    if text is None:
        return []
    return [one for path, one in filters_in(image.files) if path == text.path]


def _is_readable(one: FilterEntry) -> bool:
    """Whether a broker can filter by the expression, by RocketMQ's grammar."""
    return condition_of(one.expression) is not None
