"""Judging queries by key: what a walk over the log's records finds.

The log itself is judged by laws of its own, so the records in its image are the truth
here, as far as they were dispatched.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.interpreter import Report
from models.image.index import IndexImage, index_hash, keys_of
from models.image.log import LogImage
from models.invariants.querying import (
    queried_messages_are_right,
    query_finds_what_a_walk_finds,
)
from models.ops import QueryMessage
from models.reference import ReferenceModel
from models.store_image import Record, StoreImage


def judge_queries(
    checks: dict[str, int],
    report: Report,
    image: StoreImage,
    model: ReferenceModel,
    *,
    epoch_ms: int,
    dispatch_failed: bool,
) -> None:
    """Judge every answered query of one step.

    Args:
        checks: how often each law was judged.
        report: what came of the step.
        image: the files after it.
        model: what the store must hold.
        epoch_ms: where the subject's clock began.
        dispatch_failed: a record may be half dispatched, since the disk failed.

    Raises:
        InvariantViolated: a query was answered wrongly.
        InvariantUnknown: a law failed itself.
    """
    log = image.commit_log
    for query, queried in report.queries:
        times = (epoch_ms + query.begin_ms, epoch_ms + query.end_ms)
        queried_messages_are_right.hold(
            checks, queried, query.topic, query.key, times, log.record_at
        )
        is_unsettled = any(key[0] == query.topic for key in model.may_be_deleted)
        if not (report.interrupted or is_unsettled):
            fitting = fitting_records(log, log.records, query, times)
            reput = model.reput_from_offset
            sure = [r for r in fitting if is_indexed(r, query.key, model, reput)]
            possible = sure
            if dispatch_failed:
                possible = [r for r in fitting if r in sure or r.phy_offset == reput]
            query_finds_what_a_walk_finds.hold(
                checks,
                queried,
                query.max_num,
                [record.phy_offset for record in sure],
                [record.phy_offset for record in possible],
            )


def indexed_up_to(index: IndexImage) -> tuple[int, int]:
    """The phy_offset of the newest entry, and how many entries that record has.

    (-1, 0) without an entry.
    """
    if not index.entries:
        return -1, 0
    last = index.entries[-1][3].phy_offset
    return last, sum(entry.phy_offset == last for _, _, _, entry in index.entries)


def fitting_records(
    log: LogImage,
    records: Sequence[Record],
    query: QueryMessage,
    times: tuple[int, int],
) -> list[Record]:
    """Those of ``records`` that a query asks for, dispatched or not."""
    return [
        record
        for record in records
        if record.topic == query.topic
        and record.transaction_type != "rollback"
        and times[0] <= record.store_timestamp <= times[1]
        and query.key in keys_of(record.properties_raw)
        and record.phy_offset >= log.deleted.dead_below(query.topic, record.queue_id)
    ]


def is_indexed(record: Record, key: str, model: ReferenceModel, reput: int) -> bool:
    """Whether the index must find a record by one of its keys.

    Of one half indexed it has the first entries, and any of the key's hash will do.
    """
    newest, entries = model.indexed
    if record.end <= reput or record.phy_offset < newest:
        return True
    listed = keys_of(record.properties_raw)[:entries]
    asked = index_hash(f"{record.topic}#{key}")
    return record.phy_offset == newest and any(
        index_hash(f"{record.topic}#{other}") == asked for other in listed
    )
