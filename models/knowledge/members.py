"""What is known of the members of groups: their last heartbeats, and who has left."""

from __future__ import annotations

from dataclasses import dataclass, field

from crashmq.models.limits import CLIENT_SILENT_MS
from crashmq.models.plain_state import Forked


@dataclass(slots=True)
class Members(Forked):
    """The members of all groups in one run of the broker.

    Attributes:
        heard_ms: by group and client, the time of the last heartbeat.
        left: the clients of a group that have unregistered, or whose connection closed.
        last_ms: as ``heard_ms``, but clients that have ended stay in it.
        subscribed: by group, the topics that its newest heartbeat told; None: unknown.
        expired: the clients of a group that a scan of the broker found silent for too
            long, without a heartbeat since.
        vanished: the clients of which a process has vanished, so that connections of
            theirs may still seem open.
        met: the groups and clients of all heartbeats; without a group those clients
            that may have sent one unseen.
        there: the members of groups that a broker has certainly taken, and not dropped.
    """

    heard_ms: dict[tuple[str, str], int] = field(default_factory=dict)
    left: dict[tuple[str, str], bool] = field(default_factory=dict)
    last_ms: dict[tuple[str, str], int] = field(default_factory=dict)
    expired: dict[tuple[str, str], bool] = field(default_factory=dict)
    subscribed: dict[str, frozenset[str] | None] = field(default_factory=dict)
    vanished: dict[str, bool] = field(default_factory=dict)
    met: set[tuple[str, str]] = field(default_factory=set)
    there: set[tuple[str, str]] = field(default_factory=set)

    def told(self, group: str, topics: frozenset[str] | None) -> None:
        """Record what a heartbeat said that its group subscribes; None: unknown."""
        self.subscribed[group] = topics

    def heard(self, group: str, client: str, least_ms: int, most_ms: int) -> None:
        """Record a heartbeat, which came between two times."""
        self.heard_ms[group, client] = least_ms
        self.last_ms[group, client] = most_ms
        self.left.pop((group, client), None)
        self.expired.pop((group, client), None)

    def may_have_heard(self, group: str, client: str) -> None:
        """Record a heartbeat of a client that was about to end."""
        self.heard_ms.pop((group, client), None)
        self.last_ms.pop((group, client), None)
        self.left.pop((group, client), None)
        self.expired.pop((group, client), None)
        self.there.discard((group, client))

    def clock_was_set_back(self) -> None:
        """Record that nobody knows any more when a client counts as silent."""
        self.heard_ms.clear()
        self.last_ms.clear()
        self.there.clear()

    def looked(self, at_ms: int, silent_ms: int) -> None:
        """Record a scan for clients without a heartbeat for ``silent_ms``."""
        for key, last_ms in self.last_ms.items():
            if at_ms - last_ms > silent_ms:
                self.expired[key] = True
                self.there.discard(key)

    def who_goes(self, at_ms: int, silent_ms: int) -> list[tuple[str, str]]:
        """By group the members that are, for a scan, silent for the first time."""
        its = [one for one in self.there if ("", one[1]) not in self.met]
        return sorted([one for one in its if at_ms - self.last_ms[one] > silent_ms])

    def may_have_left(self, client: str) -> None:
        """Record that a broker may have seen that a client has ended."""
        self.there -= {one for one in self.there if one[1] == client}

    def ended(self, client: str, *, broker_knows: bool) -> None:
        """Record that a client has ended; ``broker_knows``: it has told the broker."""
        for group, its in [key for key in self.heard_ms if key[1] == client]:
            del self.heard_ms[group, its]
            if broker_knows:
                self.left[group, its] = True

    def is_new(self, group: str, client: str) -> bool:
        """Whether a client has certainly sent no heartbeat for a group in this run."""
        return self.met.isdisjoint({(group, client), ("", client)})

    def is_one(self, group: str, client: str, at_ms: int) -> bool:
        """Whether a client is certainly a member, by heartbeats that were seen."""
        heard_ms = self.heard_ms.get((group, client))
        is_heard = heard_ms is not None and 0 <= at_ms - heard_ms <= CLIENT_SILENT_MS
        is_plain = client not in self.vanished and ("", client) not in self.met
        return is_heard and is_plain

    def groups_of(self, client: str, at_ms: int) -> list[str]:
        """The groups of which a client is certainly a member."""
        its = [group for group, one in self.heard_ms if one == client]
        return sorted([one for one in its if self.is_one(one, client, at_ms)])

    def others(self, group: str, client: str, at_ms: int) -> frozenset[str]:
        """The certain members of a group but for one."""
        its = [one for of, one in self.heard_ms if of == group and one != client]
        return frozenset([one for one in its if self.is_one(group, one, at_ms)])

    def silent_for(self, group: str, at_ms: int) -> dict[str, int]:
        """By client of a group, the time in ms since its last heartbeat."""
        return {
            client: at_ms - heard_ms
            for (its, client), heard_ms in sorted(self.heard_ms.items())
            if its == group
        }

    def who_expired(self, group: str) -> list[str]:
        """The clients of a group that must not be listed, since they were silent."""
        return sorted(client for its, client in self.expired if its == group)

    def who_left(self, group: str) -> list[str]:
        """The clients that have left a group, and have not come back."""
        return sorted(client for its, client in self.left if its == group)
