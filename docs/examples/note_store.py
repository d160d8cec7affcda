"""NoteStore: a small log store on files, with a bug; docs/bring-your-own.md breaks it.

One file, ``notes.log``: of each message its length, its queue and its body. A start
reads it and lists the messages by queue. Its author wanted to spare a sync a message
and keeps the last few in a buffer, which a stop writes.
"""

from __future__ import annotations

import json

from crashmq.testing import MessageToPut, Observation, Pulled, Put, Skipped, Started
from crashmq.testing import Stopped as StoppedNow

BUFFER = 3  # messages that wait to be written together
MOST = 32  # messages that a pull returns
DOWN = Skipped("the store is down")


class NoteStore:
    """Messages of several queues in one log file."""

    name = "notes"

    def __init__(self) -> None:
        self.disk = b""  # what the file holds: it outlives the process
        self.waiting: list[bytes] = []
        self.queues: dict[tuple[str, int], list[tuple[int, str, bytes]]] = {}
        self.is_up = False

    def start(self) -> Observation:
        """Read the log, and list what it holds."""
        if self.is_up:
            return Skipped("the store is up")
        self.is_up = True
        for at, line in enumerate(self.disk.splitlines()):
            topic, queue_id, tags, body = json.loads(line)
            queue = self.queues.setdefault((topic, queue_id), [])
            queue.append((at, tags, bytes.fromhex(body)))
        return Started(last_exit_ok=True)

    def shutdown(self) -> Observation:
        """Write what waits, and stop."""
        if not self.is_up:
            return DOWN
        self.write_waiting()
        self.kill()
        return StoppedNow(clean=True)

    def kill(self) -> None:
        """Lose what memory has."""
        self.queues, self.waiting, self.is_up = {}, [], False

    def write_waiting(self) -> None:
        """Append to the file what waits."""
        self.disk += b"".join(self.waiting)
        self.waiting = []

    def put(self, message: MessageToPut) -> Observation:
        """Take a message; it is written with the next ones."""
        if not self.is_up:
            return DOWN
        topic, queue_id = message.topic, message.queue_id
        line = json.dumps([topic, queue_id, message.tags, message.body.hex()])
        at = len(self.disk.splitlines()) + len(self.waiting)
        self.waiting.append(line.encode() + b"\n")
        if len(self.waiting) == BUFFER:
            self.write_waiting()
        queue = self.queues.setdefault((topic, queue_id), [])
        queue.append((at, message.tags, message.body))
        return Put("PUT_OK", at, 1, len(queue) - 1)

    def pull(
        self, topic: str, queue_id: int, queue_offset: int, max_msg_nums: int, tags: str
    ) -> Observation:
        """Read on in a queue, up to so many messages with one of the tags; "": any."""
        if not self.is_up:
            return DOWN
        held = self.queues.get((topic, queue_id), [])
        if not held:
            return Pulled("NO_MATCHED_LOGIC_QUEUE", 0, 0, 0)
        end = len(held)
        if queue_offset < 0:
            return Pulled("OFFSET_TOO_SMALL", 0, 0, end)
        if queue_offset >= end:
            word = "ONE" if queue_offset == end else "BADLY"
            return Pulled(f"OFFSET_OVERFLOW_{word}", end, 0, end)
        wanted = {one.strip() for one in tags.split("||")}
        bodies, go_on = [], queue_offset
        for _, has, body in held[queue_offset:]:
            if len(bodies) == min(max_msg_nums, MOST):
                break
            go_on += 1
            if tags in ("", "*") or has in wanted:
                bodies.append(body)
        word = "FOUND" if bodies else "NO_MATCHED_MESSAGE"
        return Pulled(word, go_on, 0, end, tuple(bodies))

    def files(self) -> dict[str, bytes]:
        """The log, as a file."""
        return {"notes.log": self.disk}

    def close(self) -> None:
        """Nothing is held."""


class MendedStore(NoteStore):
    """The same, with a write before each answer."""

    def put(self, message: MessageToPut) -> Observation:
        """Take a message and write it."""
        seen = super().put(message)
        self.write_waiting()
        return seen
