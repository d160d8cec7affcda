"""How a message is identified, to know which messages of a queue a consumer had.

A queue_offset is assigned again after the log has lost its tail, so a message goes by
its unique key. A message sent back keeps its unique key, and several consumers may have
sent it back, so its name also has the reconsume times and the queue_offset.
"""

from __future__ import annotations

from crashmq.models.appended import Appended
from crashmq.models.files.store_image import BadRecord, decode_record


def named(unique_key: str, reconsume_times: int, queue_offset: int) -> str:
    """The name of a message of a queue; "" without a unique key."""
    if not unique_key or not reconsume_times:
        return unique_key
    return f"{unique_key}~{reconsume_times}@{queue_offset}"


def name_of(appended: Appended) -> str:
    """The name of a message that was appended."""
    message = appended.message
    return named(message.unique_key, message.reconsume_times, appended.queue_offset)


def key_in(record: bytes) -> str:
    """The name of a message; "" if its record cannot be read, or has none."""
    try:
        found = decode_record(record)
    except BadRecord:
        return ""
    unique_key = found.properties.get("UNIQ_KEY", "")
    return named(unique_key, found.reconsume_times, found.queue_offset)
