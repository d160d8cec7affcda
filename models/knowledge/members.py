"""What is known of the members of groups: last heartbeats, and who has left."""

from __future__ import annotations

from dataclasses import dataclass, field

from crashmq.models.plain_state import Forked


@dataclass(slots=True)
class Members(Forked):
    """Of all groups, in one life of a broker.

    Attributes:
        heard_ms: by group and client when it told the broker last that it lives.
        left: by group the clients that told, or whose connections told, that they go.
        last_ms: as ``heard_ms``, also of those that are no more.
        expired: by group the clients that were silent for too long as the broker
            looked for such, and that it has not heard of since.
    """

    heard_ms: dict[tuple[str, str], int] = field(default_factory=dict)
    left: dict[tuple[str, str], bool] = field(default_factory=dict)
    last_ms: dict[tuple[str, str], int] = field(default_factory=dict)
    expired: dict[tuple[str, str], bool] = field(default_factory=dict)

    def heard(self, group: str, client: str, at_ms: int) -> None:
        """Record a heartbeat."""
        self.heard_ms[group, client] = at_ms
        self.last_ms[group, client] = at_ms
        self.left.pop((group, client), None)
        self.expired.pop((group, client), None)

    def may_have_heard(self, group: str, client: str) -> None:
        """Record a heartbeat that came as its client went."""
        self.last_ms.pop((group, client), None)
        self.expired.pop((group, client), None)

    def looked(self, at_ms: int, silent_ms: int) -> None:
        """Record a scan for clients without a heartbeat for ``silent_ms``."""
        for key, last_ms in self.last_ms.items():
            if at_ms - last_ms > silent_ms:
                self.expired[key] = True

    def ended(self, client: str, *, is_told: bool) -> None:
        """Record that a client has ended; returns whether the broker is notified."""
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

    def who_expired(self, group: str) -> list[str]:
        """The clients of a group that are too silent to be named."""
        return sorted(client for its, client in self.expired if its == group)

    def who_left(self, group: str) -> list[str]:
        """The clients that have left a group, and have not come back."""
        return sorted(client for its, client in self.left if its == group)
