"""The services."""

from __future__ import annotations

from crashmq.models.ops import SERVICE_NAMES

_SERVICES = {
    "reput": "dispatches new log records to ConsumeQueues and index",
    "flush_commit_log": "syncs the CommitLog",
    "flush_consume_queue": "syncs the ConsumeQueues",
    "checkpoint": "writes the checkpoint that recovery relies on",
    "flush_index": "syncs full index files",
    "commit": "copies write buffers into the log's files",
    "allocate": "creates the log's next file before a put needs it",
    "clean_commit_log": "deletes expired CommitLog files",
    "clean_consume_queue": "deletes queue and index files whose records are gone",
    "persist_consumer_offset": "writes the offsets of consumer groups",
    "client_housekeeping": "drops clients without a recent heartbeat",
    "pull_request_hold": "checks the pulls that the broker holds",
    "persist_consumer_filter": "writes the filters of consumer groups",
    "deliver_delayed": "delivers delayed messages that are due",
    "persist_delay_offset": "writes the offsets of the delay levels",
}


def rows() -> dict[str, str]:
    """What each service does, by its name."""
    return {name: _SERVICES[name] for name in SERVICE_NAMES}
