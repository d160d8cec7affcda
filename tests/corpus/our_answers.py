"""What our engine makes of a directory that others wrote."""

from __future__ import annotations

import shutil
import struct
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple

from corpus_store import Real, place_row
from our_stores import started
from rocketmq import Row, contents

from crashmq.engine.store.config import StoreConfig
from crashmq.engine.store.errors import StoreError
from crashmq.engine.store.message_store import MessageStore
from crashmq.models.files.record import (
    BadRecord,
    Record,
    decode_record,
    parse_record,
)

PULLED_MAX = 32
QUERIED_MAX = 64
NEVER = 1 << 62
LATER_MS = 60_000
OURS = frozenset({"store/lock", "store/abort", "store/checkpoint"})
"""Files that a start of our engine may make and change wherever it starts."""

_COUNT = struct.Struct(">i")

Outcome = Literal["serves", "refuses", "loses"]


class Answer(NamedTuple):
    """How a start of our engine went, and what is wrong with it if it loses."""

    outcome: Outcome
    why: str = ""


def copied(real: Real, target: Path) -> Real:
    """A copy that may be changed."""
    home = Path(shutil.copytree(real.home, target / f"copy-of-{real.name}"))
    return replace(real, home=home)


def answer_of(real: Real, config: StoreConfig) -> Answer:
    """Start our engine in the directory itself, ask for all, and stop it in order.

    It loses something if it serves other messages than RocketMQ does, or more; if it
    changes a byte of the log; or if it changes or takes away any other file that
    RocketMQ's own start leaves as it is.
    """
    before, log = contents(real.root, real.settings), real.log_files()
    may_go = _index_files_that_may_go(real)
    unreadable = _unreadable(log, real)
    try:
        store = started(real.root, config, newest_ms(real) + LATER_MS)
    except StoreError as refused:
        changed = _changed(before, contents(real.root, real.settings)) - OURS
        if changed:
            return Answer("loses", f"refused, but changed {sorted(changed)}")
        return Answer("refuses", f"{type(refused).__name__}: {refused}")
    difference = difference_of(store, real, unreadable)
    assert store.shutdown()
    difference = difference or _log_difference(log, real)
    if difference:
        return Answer("loses", difference)
    also = {name for names in real.manifest["changes"].values() for name in names}
    changed = _changed(before, contents(real.root, real.settings)) - OURS - also
    changed = {name for name in changed if "commitlog" not in name} - may_go
    return (
        Answer("loses", f"changed {sorted(changed)}") if changed else Answer("serves")
    )


def _unreadable(log: dict[int, bytes], real: Real) -> frozenset[int]:
    """phy_offsets of the damaged messages that RocketMQ serves without a look."""
    if not real.feature.is_damaged:
        return frozenset()
    found = set()
    for _, _, one in real.of_the_log:
        base = max(base for base in log if base <= one["phy_offset"])
        data, at = log[base], one["phy_offset"] - base
        try:
            parse_record(data, at, len(data), one["phy_offset"], takes_nul=True)
        except BadRecord:
            found.add(one["phy_offset"])
    assert len(found) <= 1, "each feature damages one message"
    return frozenset(found)


def _index_files_that_may_go(real: Real) -> set[str]:
    """Those without an entry, and all beside a damaged log, as ``sharp-edges`` says.

    No key is found by the first; the second are made again without damaged messages.
    """
    paths = sorted(real.root.glob("index/" + "[0-9]" * 17))
    files = {f"store/index/{path.name}": path.read_bytes() for path in paths}
    if real.feature.is_damaged:
        return set(files)
    # Entry 0 is never used, so the header counts from 1.
    whole = {name: data.ljust(40, b"\0") for name, data in files.items()}
    return {name for name, data in whole.items() if _COUNT.unpack_from(data, 36)[0] < 2}


def newest_ms(real: Real) -> int:
    return max((one["store_timestamp"] for _, _, one in real.served), default=0)


def _changed(before: dict[str, str], after: dict[str, str]) -> set[str]:
    return {path for path in before if before[path] != after.get(path)}


def _log_difference(before: dict[int, bytes], real: Real) -> str:
    """Where the log differs below the end that RocketMQ told; "" if nowhere."""
    end, after = real.manifest["log"]["max"], real.log_files()
    for base, data in before.items():
        kept = data[: max(0, end - base)]
        if kept != after.get(base, b"")[: len(kept)]:
            return f"changed or took away the log file at {base}"
    return ""


def difference_of(
    store: MessageStore, real: Real, unreadable: frozenset[int] = frozenset()
) -> str:
    """The first queue whose ends or messages differ from the manifest's; "" if none.

    Our store never serves a damaged message: the phy_offsets of those are left out.
    """
    for queue in real.manifest["queues"]:
        topic, queue_id = queue["topic"], queue["queue_id"]
        every = queue["messages"]
        messages = [one for one in every if one["phy_offset"] not in unreadable]
        wanted = [place_row(topic, queue_id, one) for one in messages]
        told = list(all_of(store, topic, queue_id))
        if told != wanted:
            return (
                f"{topic}/{queue_id}: serves {len(told)} messages, RocketMQ "
                f"{len(wanted)}; only RocketMQ: {_first(wanted, told)}, only ours: "
                f"{_first(told, wanted)}"
            )
        for one in messages:
            if missing := _unfound(store, one):
                return f"{topic}/{queue_id} at {one['queue_offset']}: {missing}"
    told_queues = {(q["topic"], q["queue_id"]) for q in real.manifest["queues"]}
    named = {(row["topic"], row["queue_id"]) for row in real.manifest["acknowledged"]}
    for topic, queue_id in sorted(named - told_queues):
        count = len(list(all_of(store, topic, queue_id)))
        if count:
            return f"{topic}/{queue_id}: serves {count} messages, RocketMQ none"
    return ""


def _unfound(store: MessageStore, message: Row) -> str:
    """What of a message our engine does not find, and RocketMQ does; "" if nothing."""
    at = message["phy_offset"]
    if message["looked_up"] and store.look_message_by_offset(at) is None:
        return f"no record is found at phy_offset {at}"
    keys = message["keys"].split() if message.get("found_by_key") else ()
    for key in keys:
        found = store.query_message(message["record_topic"], key, QUERIED_MAX, 0, NEVER)
        if at not in {_decoded(one).phy_offset for one in found.messages}:
            return f"the record at phy_offset {at} is not found by its key {key!r}"
    return ""


def _decoded(message: bytes) -> Record:
    """A record as RocketMQ takes it: its properties may hold a NUL."""
    return decode_record(message, takes_nul=True)


def _first(some: list[Row], others: list[Row]) -> Row | None:
    return next((row for row in some if row not in others), None)


def all_of(store: MessageStore, topic: str, queue_id: int) -> Iterator[Row]:
    """Every message of one queue, decoded by a reader that is not the store's."""
    first = store.get_message(topic, queue_id, 0, 1)
    at, end = first.min_offset, first.max_offset
    while at < end:
        result = store.get_message(topic, queue_id, at, PULLED_MAX)
        for number, message in enumerate(result.messages):
            record = _decoded(message)
            body_crc = zlib.crc32(record.body) & 0x7FFFFFFF
            # A pull goes on behind what is damaged; a light queue has its own offsets.
            own = record.queue_offset if record.topic == topic else at + number
            row = {"queue_offset": own, "phy_offset": record.phy_offset}
            row |= {"size": record.size, "body_crc": body_crc}
            yield place_row(topic, queue_id, row)
        assert result.next_begin_offset > at, result
        at, end = result.next_begin_offset, result.max_offset
