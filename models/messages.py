"""The message a put stands for: derived from where it stands, never random.

A body repeats the life, the step and the place in the step, so that no record ever
equals a ghost of an earlier one, a torn body shows, and a hex dump can be read.
"""

from __future__ import annotations

from dataclasses import dataclass

from models.ops import PutMessage

RECORD_OVERHEAD = 91
FILLER_SIZE_MIN = 8
PROPERTIES_SIZE_MAX = 32767


@dataclass(frozen=True, slots=True)
class MessageToPut:
    """A message as a producer hands it over."""

    topic: str
    queue_id: int
    body: bytes
    tags: str
    keys: str
    unique_key: str
    wait_store_ok: bool

    @property
    def properties(self) -> dict[str, str]:
        """What the store is given beside the body, under RocketMQ's names."""
        properties = {"UNIQ_KEY": self.unique_key}
        if self.tags:
            properties["TAGS"] = self.tags
        if self.keys:
            properties["KEYS"] = self.keys
        if not self.wait_store_ok:
            properties["WAIT"] = "false"
        return properties

    @property
    def record_size(self) -> int:
        """Bytes of its record in the log, both hosts IPv4, a topic of <= 127 bytes."""
        properties = self.properties
        text = "".join([self.topic, *properties, *properties.values()])
        separators = 2 * len(properties)
        return RECORD_OVERHEAD + len(text.encode()) + separators + len(self.body)


def message_for(op: PutMessage, life: int, step: int, place: int) -> MessageToPut:
    """The message of one put.

    Args:
        op: what the program says of it.
        life: how often the store was started before.
        step: number of the op in its program.
        place: how many puts of this step came before.
    """
    word = f"{life}.{step}.{place};".encode()
    body = (word * (op.body_size // len(word) + 1))[: op.body_size]
    return MessageToPut(
        op.topic,
        op.queue_id,
        body,
        op.tags,
        op.keys,
        f"{life:04X}{step:06X}{place:02X}",
        op.wait_store_ok,
    )
