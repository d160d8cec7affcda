"""The services."""

from __future__ import annotations

from crashmq.models.ops import SERVICE_NAMES

_SERVICES = {
    "reput": "hands what the log gained to the consume queues",
    "flush_commit_log": "makes the log durable",
    "flush_consume_queue": "makes the consume queues durable",
    "checkpoint": "writes what recovery may rely on",
    "flush_index": "makes full index files durable",
    "commit": "takes what lies in write buffers to the log's files",
    "allocate": "makes the log's next file before a put needs it",
    "clean_commit_log": "removes log files that have expired",
    "clean_consume_queue": "removes queue files whose records are gone",
    "persist_consumer_offset": "writes how far groups of consumers have come",
    "client_housekeeping": "drops clients of which nothing was heard for too long",
    "pull_request_hold": "looks at the pulls that the broker holds",
    "persist_consumer_filter": "writes by what groups of consumers filter",
    "deliver_delayed": "puts delayed messages that are due into their queues",
    "persist_delay_offset": "writes how far each delay level is delivered",
}


def rows() -> dict[str, str]:
    """What each service does, by its name."""
    return {name: _SERVICES[name] for name in SERVICE_NAMES}
