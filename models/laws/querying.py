"""Laws of queries by key: they find what a scan of the log finds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from crashmq.models.files.index import keys_of
from crashmq.models.files.store_image import BadRecord, Record, decode_answer
from crashmq.models.laws.registry import law
from crashmq.models.observations import Queried
from crashmq.models.verdict import Violation

QUERY_MAX = 64


@law(
    "IX-1",
    "a query by key returns only messages of that topic, key and time range, each "
    "once, in CommitLog order",
    catalogue="I11 I15",
)
def queried_messages_are_right(
    queried: Queried,
    topic: str,
    key: str,
    times: tuple[int, int],
    record_at: Mapping[int, Record],
) -> Iterator[Violation]:
    """Decodes each answer and compares it with the record at its phy_offset.

    ``times`` bounds when they were stored; ``record_at`` is the log as it is now.

    Source: DefaultMessageStore#queryMessage, IndexFile#selectPhyOffset.
    """
    found: list[Record] = []
    for number, data in enumerate(queried.messages):
        where = f"message {number} of the answer"
        try:
            record = decode_answer(data)
        except BadRecord as flaw:
            yield Violation(where, str(flaw), "a whole record")
            continue
        found.append(record)
        if record.topic != topic or key not in keys_of(record.properties_raw):
            seen = f"{record.topic}, keys {' '.join(keys_of(record.properties_raw))}"
            yield Violation(where, seen, f"{topic} with key {key}")
        if not times[0] <= record.store_timestamp <= times[1]:
            seen = f"stored at {record.store_timestamp}"
            yield Violation(where, seen, f"in [{times[0]}, {times[1]}]")
        there = record_at.get(record.phy_offset, record)
        # No record holds its tags code, which for a delayed message needs the levels.
        if there != record._replace(tags_code=there.tags_code):
            yield Violation(where, f"not the record at {record.phy_offset}")
    for before, after in pairwise(found):
        if after.phy_offset <= before.phy_offset:
            seen = f"phy_offset {after.phy_offset} after {before.phy_offset}"
            yield Violation("the answer's order", seen, "the log's order, each once")


@law(
    "IX-2",
    "a query by key returns the newest max_num (at most 64) matches that a scan of "
    "the CommitLog finds",
    catalogue="I11",
)
def query_finds_what_a_walk_finds(
    queried: Queried, max_num: int, sure: Sequence[int], possible: Sequence[int]
) -> Iterator[Violation]:
    """Compares the phy_offsets of the answer with those of a scan.

    ``sure`` are the phy_offsets of what is dispatched and matches; ``possible`` adds
    those that a failed dispatch may have listed.

    Source: IndexService#queryOffset, MessageStoreConfig#maxMsgsNumBatch.
    """
    most = max(0, min(max_num, QUERY_MAX))
    seen = [decode_answer(data).phy_offset for data in queried.messages]
    answers = [list(which[-most:] if most else ()) for which in (sure, possible)]
    if seen not in answers:
        text = f"phy_offsets {seen[:8]}, {len(seen)} in all"
        yield Violation("the answer", text, f"{answers[0][:8]}, {len(answers[0])}")
