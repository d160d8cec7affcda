"""What is known of the members of groups: whom a broker has heard of, and who left."""

from __future__ import annotations

from dataclasses import dataclass, field

from crashmq.models.plain_state import Forked


@dataclass(slots=True)
class Members(Forked):
    """Of all groups, in one life of a broker.

    Attributes:
        heard_ms: by group and client when it told the broker last that it lives.
        left: by group the clients that told, or whose connections told, that they go.
    """

    heard_ms: dict[tuple[str, str], int] = field(default_factory=dict)
    left: dict[tuple[str, str], bool] = field(default_factory=dict)

    def heard(self, group: str, client: str, at_ms: int) -> None:
        """Take note of a heartbeat."""
        self.heard_ms[group, client] = at_ms
        self.left.pop((group, client), None)

    def ended(self, client: str, *, is_told: bool) -> None:
        """Take note that a client is no more; whether anybody tells the broker."""
        for group, its in [key for key in self.heard_ms if key[1] == client]:
            del self.heard_ms[group, its]
            if is_told:
                self.left[group, its] = True

    def silent_for(self, group: str, at_ms: int) -> dict[str, int]:
        """By client for how long its group's broker has not heard of it."""
        return {
            client: at_ms - heard_ms
            for (its, client), heard_ms in sorted(self.heard_ms.items())
            if its == group
        }

    def who_left(self, group: str) -> list[str]:
        """The clients that have left a group, and have not come back."""
        return sorted(client for its, client in self.left if its == group)
