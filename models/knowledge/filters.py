"""What is known of what groups subscribe, and what a crash may leave of it.

A subscription newer than all before counts from its answer on, until the life of the
broker ends. What an older one does depends on what the broker has kept, so nothing is
known of a group that begins a life with one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from crashmq.models.files.filters import FilterKey
from crashmq.models.plain_state import Forked

Asked: TypeAlias = tuple[str, str]
"""An expression and its type."""


@dataclass(slots=True)
class Filters(Forked):
    """Of all groups.

    Attributes:
        now: by group and topic what may count; several where it is not known which of
            two came last. What is missing is unknown.
    """

    now: dict[FilterKey, frozenset[Asked]] = field(default_factory=dict)

    def subscribed(self, key: FilterKey, asked: Asked, *, is_certain: bool) -> None:
        """Record a newer subscription that counts, or may count by now."""
        told = frozenset({asked})
        if is_certain:
            self.now[key] = told
        elif key in self.now:
            self.now[key] |= told

    def forget(self, key: FilterKey) -> None:
        """Record that a group's subscription to a topic is now unknown."""
        self.now.pop(key, None)

    def asked_of_old(self, key: FilterKey) -> None:
        """Record a subscription of an older version, which changes nothing.

        But a broker keeps nothing of one by tags, so it can compare no version then.
        """
        if any(kind == "TAG" for _, kind in self.now.get(key, ())):
            self.forget(key)

    def forget_group(self, group: str) -> None:
        """The same of a group, on all topics."""
        for key in [key for key in self.now if key[0] == group]:
            del self.now[key]

    def ended(self) -> None:
        """Record that this life is over: clients have to subscribe again."""
        self.now = {}
