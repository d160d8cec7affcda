"""TinyStore: a whole store in a few lines, with nothing but the core of a subject.

One log of records, as bytes, outlives a kill; a start lists them by queue again.
"""

from __future__ import annotations

import struct

from crashmq.models import observations as seen
from crashmq.models.messages import MessageToPut

_HEAD = struct.Struct(">HiHI")  # sizes of topic, tags and body; the queue between
_DOWN = seen.Skipped("the store is down")


class TinyStore:
    """An append-only log of messages, listed by queue."""

    name = "tiny"

    def __init__(self) -> None:
        self.log = bytearray()
        self.queues: dict[tuple[str, int], list[int]] = {}
        self.is_up = False

    def start(self) -> seen.Observation:
        """Read the log, and list what it holds."""
        if self.is_up:
            return seen.Skipped("the store is up")
        self.is_up, at = True, 0
        while at < len(self.log):
            topic, queue_id, _, _, end = self.record(at)
            self.queues.setdefault((topic, queue_id), []).append(at)
            at = end
        return seen.Started(last_exit_ok=True)

    def record(self, at: int) -> tuple[str, int, str, bytes, int]:
        """Topic, queue, tags and body of the record at a place, and where it ends."""
        topic_size, queue_id, tags_size, body_size = _HEAD.unpack_from(self.log, at)
        tags_at = at + _HEAD.size + topic_size
        body_at, end = tags_at + tags_size, tags_at + tags_size + body_size
        topic = self.log[at + _HEAD.size : tags_at].decode()
        tags = self.log[tags_at:body_at].decode()
        return topic, queue_id, tags, bytes(self.log[body_at:end]), end

    def shutdown(self) -> seen.Observation:
        """Stop; all is in the log anyway."""
        was_up = self.is_up
        self.kill()
        return seen.Stopped(clean=True) if was_up else _DOWN

    def kill(self) -> None:
        """Lose what memory has."""
        self.queues, self.is_up = {}, False

    def put(self, message: MessageToPut) -> seen.Observation:
        """Append a record."""
        if not self.is_up:
            return _DOWN
        at, queue_id, body = len(self.log), message.queue_id, message.body
        topic, tags = message.topic.encode(), message.tags.encode()
        head = _HEAD.pack(len(topic), queue_id, len(tags), len(body))
        self.log += head + topic + tags + body
        queue = self.queues.setdefault((message.topic, queue_id), [])
        queue.append(at)
        return seen.Put("PUT_OK", at, len(self.log) - at, len(queue) - 1)

    def pull(
        self, topic: str, queue_id: int, queue_offset: int, max_msg_nums: int, tags: str
    ) -> seen.Observation:
        """Read on in a queue, up to so many messages with one of the tags."""
        if not self.is_up:
            return _DOWN
        places = self.queues.get((topic, queue_id), [])
        end, wanted = len(places), {one.strip() for one in tags.split("||")}
        if not end:
            return seen.Pulled("NO_MATCHED_LOGIC_QUEUE", 0, 0, 0)
        if queue_offset < 0:
            return seen.Pulled("OFFSET_TOO_SMALL", 0, 0, end)
        if queue_offset > end:
            return seen.Pulled("OFFSET_OVERFLOW_BADLY", end, 0, end)
        if queue_offset == end:
            return seen.Pulled("OFFSET_OVERFLOW_ONE", end, 0, end)
        found: list[tuple[int, bytes]] = []
        for at in range(queue_offset, end):
            *_, has, body, _ = self.record(places[at])
            if ("*" in wanted or has in wanted) and len(found) < max_msg_nums:
                found.append((at, body))
        go_on = found[-1][0] + 1 if found else end
        word = seen.PULL_STATUSES["FOUND" if found else "NO_MATCHED_MESSAGE"]
        return seen.Pulled(word, go_on, 0, end, tuple([body for _, body in found]))

    def files(self) -> dict[str, bytes]:
        """The log, as a file."""
        return {"log": bytes(self.log)}

    def close(self) -> None:
        """Nothing is held."""
