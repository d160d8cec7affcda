"""DataVersion: how often a table has changed, and when it did last.

It protects nothing: brokers compare it to learn whether a slave's table is older.

Source: org.apache.rocketmq.remoting.protocol.DataVersion, RocketMQ 5.3.
"""

from __future__ import annotations

from crashmq.engine.common.fastjson import Json


class DataVersion:
    """The version of one table.

    Attributes:
        counter: how often it was raised.
        state_version: of the state machine; 0 without a controller.
        timestamp: when it was raised last, or made; milliseconds since the epoch.
    """

    def __init__(self, timestamp: int) -> None:
        self.counter = 0
        self.state_version = 0
        self.timestamp = timestamp

    def next_version(self, timestamp: int, state_version: int = 0) -> None:
        """Raise it. Source: DataVersion#nextVersion."""
        self.timestamp = timestamp
        self.state_version = state_version
        self.counter += 1

    def to_json(self) -> Json:
        """Its fields, by name."""
        return {
            "counter": self.counter,
            "stateVersion": self.state_version,
            "timestamp": self.timestamp,
        }

    def assign(self, found: Json) -> None:
        """Take over the fields that were read.

        Raises:
            ValueError: they are not a version's.
        """
        if not isinstance(found, dict):
            raise ValueError(f"dataVersion is {found!r}, not an object")
        fields = [found.get(name, 0) for name in ("counter", "stateVersion")]
        fields.append(found.get("timestamp", self.timestamp))
        numbers = [one for one in fields if isinstance(one, int)]
        if len(numbers) != len(fields):
            raise ValueError(f"dataVersion is {found!r}: its fields are numbers")
        self.counter, self.state_version, self.timestamp = numbers
