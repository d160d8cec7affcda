"""DataVersion: counts the changes of a table, with the time of the last one.

Brokers compare it to find out whether a slave's table is older. A store does not check
it.

Source: org.apache.rocketmq.remoting.protocol.DataVersion, RocketMQ 5.3.
"""

from __future__ import annotations

from crashmq.engine.common.fastjson import Json

_LONG_MAX = (1 << 63) - 1


class DataVersion:
    """The version of one table.

    Attributes:
        counter: how often it was raised.
        state_version: the version of the state machine; 0 without a controller.
        timestamp: when it was raised last, or created; milliseconds since the epoch.
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
        if self.counter > _LONG_MAX:  # as an AtomicLong
            self.counter = -_LONG_MAX - 1

    def to_json(self) -> Json:
        """Its fields, by name."""
        return {
            "counter": self.counter,
            "stateVersion": self.state_version,
            "timestamp": self.timestamp,
        }

    def assign(self, found: Json) -> None:
        """Replace the fields by parsed ones.

        Raises:
            ValueError: they are not those of a version.
        """
        if not isinstance(found, dict):
            raise ValueError(f"dataVersion is {found!r}, not an object")
        fields = [found.get(name, 0) for name in ("counter", "stateVersion")]
        fields.append(found.get("timestamp", self.timestamp))
        numbers = [one for one in fields if type(one) is int]
        if len(numbers) != len(fields):
            raise ValueError(f"dataVersion is {found!r}: its fields are numbers")
        self.counter, self.state_version, self.timestamp = numbers
