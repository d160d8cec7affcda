"""Names of messages: which of a queue's messages a consumer had.

A queue_offset is given again after the log has lost its tail, so a message has its
unique key for a name. What was given back has the key of before, and several consumers
may have given it: it is named by its tries and its place as well.
"""

from __future__ import annotations

from crashmq.models.appended import Appended


def named(unique_key: str, reconsume_times: int, queue_offset: int) -> str:
    """The name of a message of a queue; "": it has none."""
    if not unique_key or not reconsume_times:
        return unique_key
    return f"{unique_key}~{reconsume_times}@{queue_offset}"


def name_of(appended: Appended) -> str:
    """The name of a message that was put."""
    message = appended.message
    return named(message.unique_key, message.reconsume_times, appended.queue_offset)
