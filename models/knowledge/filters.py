"""What is known of the subscriptions of groups, and what a crash may leave of them.

A subscription with a newer version than all before is in effect from its answer until
the broker's run ends. The effect of one with an older version depends on what the
broker has kept; a group whose first subscription of a run is such a one is unknown.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from crashmq.models.files.filters import BitMapFilters, FilterKey
from crashmq.models.plain_state import Forked

Asked: TypeAlias = tuple[str, str]
"""An expression and its type."""
NOTHING: Final[Asked] = ("", "")
"""What a group subscribes by a text that is no expression: it has no filter."""


@dataclass(slots=True)
class Filters(Forked):
    """The subscriptions by which the broker filters the pulls of all groups.

    Attributes:
        now: by group and topic, the subscriptions that may be in effect; several if it
            is unknown which came last. A missing key: unknown.
        behind_tags: of these, the subscriptions by tags after which an older one came.
        groups: those of which a client has subscribed anything in this run of the
            broker, be it of use or not.
        narrowed: those of which a client has ever subscribed the group's own retries.
        ever: what the broker may ever have filtered by. The groups of running
            consumers, which send subscriptions themselves, are open.
        gone_ms: the groups that have no member now, and since when at the latest.
        latest_ms: the latest time that the clock has shown.
    """

    now: dict[FilterKey, frozenset[Asked]] = field(default_factory=dict)
    behind_tags: set[FilterKey] = field(default_factory=set)
    groups: set[str] = field(default_factory=set)
    narrowed: set[str] = field(default_factory=set)
    ever: BitMapFilters = field(default_factory=BitMapFilters)
    gone_ms: dict[str, int] = field(default_factory=dict)
    latest_ms: int = 0

    @property
    def registered(self) -> dict[FilterKey, frozenset[Asked]]:
        """The subscriptions that the broker's table of filters has, if it has any."""
        return {key: of for key, of in self.now.items() if key not in self.behind_tags}

    def came(self, group: str) -> None:
        """Record that a group has, or may have, a member."""
        self.gone_ms.pop(group, None)

    def left(self, group: str) -> None:
        """Record that a group has no member any more."""
        self.gone_ms.setdefault(group, self.latest_ms)

    def loaded(self, groups: Iterable[str]) -> None:
        """Record the start of a broker, which knows these groups and no member."""
        self.gone_ms = dict.fromkeys(sorted(groups), self.latest_ms)

    def subscribed(self, key: FilterKey, asked: Asked, *, is_certain: bool) -> None:
        """Record a newer subscription that is, or may be, in effect from now on."""
        told = frozenset({asked})
        if is_certain:
            self.forget(key)
            self.now[key] = told
        elif key in self.now:
            self.now[key] |= told

    def may_have(self, key: FilterKey, expression: str) -> None:
        """Record that the broker may filter a group's messages by an expression."""
        told, known = (key, expression), self.ever.expressions
        if told not in known:
            self.ever = replace(self.ever, expressions=known | {told})

    def may_have_any(self, group: str) -> None:
        """Record that a group may have any filter on any topic."""
        if group not in self.ever.open_groups:
            open_groups = self.ever.open_groups | {group}
            self.ever = replace(self.ever, open_groups=open_groups)

    def forget(self, key: FilterKey) -> None:
        """Record that a group's subscription to a topic is now unknown."""
        self.now.pop(key, None)
        self.behind_tags.discard(key)

    def asked_of_old(self, key: FilterKey) -> None:
        """Record a subscription of an older version, which changes nothing.

        The exception: the broker's table of filters keeps no version of a subscription
        by tags, so after one it may have the older one. After one that is no expression
        it may even be in effect.
        """
        kinds = {kind for _, kind in self.now.get(key, ())}
        if kinds == {"TAG"}:
            self.behind_tags.add(key)
        elif not kinds <= {"SQL92"}:
            self.forget(key)

    def forget_group(self, group: str) -> None:
        """Record that a group's subscriptions to all topics are now unknown."""
        for key in [key for key in self.now if key[0] == group]:
            self.forget(key)

    def forget_all(self) -> None:
        """Record that all subscriptions are now unknown."""
        self.now, self.behind_tags = {}, set()

    def ended(self) -> None:
        """Record the end of the broker's run: clients have to subscribe again."""
        self.forget_all()
        self.groups = set()
