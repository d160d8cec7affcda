"""Which records match a query by key, and which of them the index must return."""

from __future__ import annotations

from collections.abc import Sequence

from crashmq.models.files.index import index_hash, keys_of
from crashmq.models.files.log import LogImage
from crashmq.models.files.store_image import Record
from crashmq.models.knowledge.reference import ReferenceModel
from crashmq.models.ops import QueryMessage


def fitting_records(
    log: LogImage,
    records: Sequence[Record],
    query: QueryMessage,
    times: tuple[int, int],
) -> list[Record]:
    """Those of ``records`` that match a query, dispatched or not."""
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
    """Whether the index must return a record for one of its keys.

    Of a record that was only partly indexed the index has the first entries; an entry
    of another key with the same hash counts too.
    """
    newest, entries = model.indexed
    if record.end <= reput or record.phy_offset < newest:
        return True
    listed = keys_of(record.properties_raw)[:entries]
    asked = index_hash(f"{record.topic}#{key}")
    return record.phy_offset == newest and any(
        index_hash(f"{record.topic}#{other}") == asked for other in listed
    )
