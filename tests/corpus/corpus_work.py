"""A store directory in the making: lives of RocketMQ, and what it acknowledged."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from rocketmq import Broker, Brokers, Row, Settings

PREPARED, COMMIT, ROLLBACK = 0x4, 0x8, 0xC
SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"
TIMER_TOPIC = "rmq_sys_wheel_timer"
TAGS = ("", "created", "payment", "支付", "已付款💰")

_INNER = struct.Struct(">iiiii")
_LEADER_TRIES_MAX = 300

End = Literal["clean", "kill"]
Properties = Mapping[str, str]


class NotAcknowledged(Exception):
    """RocketMQ did not take a message that it had to take."""


class Work:
    """The directory that one feature writes with one version.

    Attributes:
        home: holds the store's root, ``store``, and what belongs to it beside.
        acknowledged: a row for each message that RocketMQ answered PUT_OK, in order.
    """

    def __init__(
        self, version: str, home: Path, settings: Settings, brokers: Brokers
    ) -> None:
        self.version, self.home, self.settings = version, home, settings
        self.root = home / "store"
        self._brokers = brokers
        self.acknowledged: list[Row] = []
        self._broker: Broker | None = None

    @property
    def broker(self) -> Broker:
        assert self._broker is not None, "the store is closed"
        return self._broker

    @property
    def is_four(self) -> bool:
        return self.version.startswith("4.")

    @contextmanager
    def life(self, end: End = "clean", version: str | None = None) -> Iterator[Broker]:
        """From a start to an orderly end, or to a SIGKILL."""
        version = version or self.version
        self._broker = broker = self._brokers.of(version)
        try:
            broker.take(self.root, self.settings)
            broker.open()
            yield broker
            if end == "clean":
                broker.ask("close")
        except BaseException:
            self._brokers.drop(version)
            raise
        if end == "kill":
            self._brokers.drop(version)
        self._broker = None

    def put(
        self,
        topic: str,
        queue_id: int,
        body: bytes,
        properties: Properties | None = None,
        **order: Any,
    ) -> Row:
        """Put one message; ``order`` has what else ``Puts.java`` reads.

        Raises:
            NotAcknowledged: the answer is not PUT_OK.
        """
        properties = properties or {}
        told = self.broker.ask(
            "put",
            topic=topic,
            queue=queue_id,
            body=body.hex(),
            props=properties_text(properties),
            **order,
        )
        return self._note(told, topic, queue_id, properties.get("KEYS"))

    def _note(self, told: Row, topic: str, queue_id: int, keys: str | None) -> Row:
        if told["status"] != "PUT_OK" or told.get("append") != "PUT_OK":
            raise NotAcknowledged(f"{topic}/{queue_id}: {told}")
        row = {"topic": topic, "queue_id": queue_id, "keys": keys} | told
        self.acknowledged.append(row)
        return row

    def put_batch(self, topic: str, queue_id: int, inner: Sequence[bytes]) -> Row:
        """Put several messages at once, each as ``inner_message`` encodes it."""
        body = b"".join(inner).hex()
        told = self.broker.ask("batch", topic=topic, queue=queue_id, body=body)
        return self._note(told | {"count": len(inner)}, topic, queue_id, None)

    def put_inner_batch(self, topic: str, queue_id: int, inner: Sequence[bytes]) -> Row:
        """Put several messages as one record of a BatchCQ topic."""
        body = b"".join(inner).hex()
        order = {"topic": topic, "queue": queue_id, "body": body, "count": len(inner)}
        told = self.broker.ask("inner", **order)
        return self._note(told | {"count": len(inner)}, topic, queue_id, None)

    def delay(self, topic: str, queue_id: int, body: bytes, level: int) -> Row:
        """Put a delayed message; since 5.0 the broker, not the store, sets it aside."""
        if self.is_four:
            return self.put(topic, queue_id, body, {"DELAY": str(level)})
        real = {"REAL_TOPIC": topic, "REAL_QID": str(queue_id), "DELAY": str(level)}
        return self.put(SCHEDULE_TOPIC, level - 1, body, real)

    def mixed(self, first: int, count: int, size: int = 300, **order: Any) -> None:
        """Messages [first, first + count) over three topics, with and without keys."""
        for number in range(first, first + count):
            self.put(
                *place_of(number), body_of(number, size), properties_of(number), **order
            )

    def await_leader(self) -> None:
        """Put until the store takes one: a DLedger group first elects a leader."""
        for _ in range(_LEADER_TRIES_MAX):
            try:
                self.put("orders", 0, b"first")
            except NotAcknowledged:
                self.broker.tell("sleep", ms=100)
            else:
                return
        raise NotAcknowledged("no leader was elected in half a minute")


def place_of(number: int) -> tuple[str, int]:
    topics = (("orders", 4), ("payments", 2), ("audit-log", 1))
    topic, queues = topics[number % 3]
    return topic, number // 3 % queues


def body_of(number: int, size: int) -> bytes:
    """Between no byte and twice ``size``, and easily compressed."""
    wanted = number * 97 % (2 * size + 1)
    return (b"message %06d, " % number * (wanted // 16 + 1))[:wanted]


def properties_of(number: int) -> dict[str, str]:
    properties = {}
    if number % 5:
        properties["TAGS"] = TAGS[number % 5]
    if number // 3 % 3 != 2:
        customer = f" customer-{number % 50}" if number // 3 % 3 else ""
        properties["KEYS"] = f"K{number}{customer}"
    if number % 4 == 3:
        properties["买家"] = f"customer-{number % 50}"
    if number % 11 == 0:
        properties["UNIQ_KEY"] = f"7F000001{number:024X}"
    return properties


def properties_text(properties: Properties) -> str:
    return "".join(f"{name}\x01{value}\x02" for name, value in properties.items())


def inner_message(body: bytes, properties: bytes, flag: int = 0) -> bytes:
    """One message of a batch's body, as a producer encodes it; properties as given."""
    size = _INNER.size + len(body) + 2 + len(properties)
    head = _INNER.pack(size, 0, 0, flag, len(body))
    return head + body + struct.pack(">h", len(properties)) + properties
