"""What is known of the subscriptions of the members of groups.

All members of a group have to subscribe the same. While they do not, a broker filters
the pulls of one member by the subscription of another, and messages are skipped:
RocketMQ calls that misuse and promises nothing. A group is *torn* from then on, until
the broker starts again while all members agree, or until the group begins anew without
members.

A broker persists the SQL filters of a group and compares their age. If a group had two
of them, through two clients or before a clock was set back, it is unknown by which one
it is filtered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from crashmq.models.appended import Appended
from crashmq.models.expressions import is_readable, matches
from crashmq.models.files.record import RETRY_PREFIX
from crashmq.models.files.store_image import BadRecord, decode_record
from crashmq.models.knowledge.names import name_of
from crashmq.models.ops import StartConsumer
from crashmq.models.plain_state import Forked

Asked: TypeAlias = tuple[str, str]
"""An expression and its type."""
EVERYTHING: Asked = ("*", "TAG")


class Subscription(NamedTuple):
    """What a client subscribes for its group.

    ``is_gone``: the client vanished, and only the broker still has its subscription.
    """

    group: str
    topics: frozenset[str]
    asked: Asked
    is_gone: bool = False
    broadcasts: bool = False

    @classmethod
    def of(cls, op: StartConsumer) -> Subscription:
        """The subscription of a consumer's start."""
        asked = (op.expression, op.expression_type)
        topics = frozenset(op.topics.split(","))
        return cls(op.group, topics, asked, broadcasts=op.broadcasts)

    def has_all_of(self, topic: str) -> bool:
        """Whether a client has all of a topic for the retries of its own group."""
        return topic == RETRY_PREFIX + self.group and not self.broadcasts

    def is_like(self, other: Subscription) -> bool:
        """Whether both have the same group, topics and expression."""
        return self[:3] == other[:3]


@dataclass(slots=True)
class Subscriptions(Forked):
    """The subscriptions of the members of all groups.

    Attributes:
        by_client: the subscription of each client, also after it vanished.
        joined: the consumer with which each client joined last, also after its end.
        changing: the clients whose change of subscription has begun and not ended.
        changed: the clients that have ever changed theirs, be it that one with the same
            name joined with another.
        torn: the groups whose filter is unknown; see the module.
        had: for each group with an SQL filter so far, all its subscriptions.
    """

    by_client: dict[str, Subscription] = field(default_factory=dict)
    joined: dict[str, StartConsumer] = field(default_factory=dict)
    changing: frozenset[str] = frozenset()
    changed: frozenset[str] = frozenset()
    torn: frozenset[str] = frozenset()
    had: dict[str, frozenset[Asked]] = field(default_factory=dict)

    def began(self, op: StartConsumer) -> None:
        """Record that a client's consumer has joined."""
        told = Subscription.of(op)
        before = self.joined.get(op.client, op)
        if Subscription.of(before) != told:
            self.changed |= {op.client}
        self.joined[op.client] = op
        if not [*self._others(told.group, "")]:
            self.torn -= {told.group}
        others = [*self._others(told.group, "")]
        had = self.had.get(told.group, frozenset())
        is_other = bool(had) and told.asked not in had
        self._takes(op.client, told)
        if is_other or not all(told.is_like(other) for other in others):
            self.torn |= {told.group}

    def changes(self, op: StartConsumer, *, is_done: bool) -> None:
        """Record that a client changes its subscription to that of ``op``."""
        self.changed |= {op.client}
        told = Subscription.of(op)
        self._takes(op.client, told)
        others = self._others(told.group, op.client)
        if not all(told.is_like(other) for other in others):
            self.torn |= {told.group}
        if is_done:
            self.changing -= {op.client}
        else:
            self.changing |= {op.client}

    def _takes(self, client: str, told: Subscription) -> None:
        self.by_client[client] = told
        had = self.had.get(told.group, frozenset())
        if had or told.asked[1] != "TAG":
            self.had[told.group] = had | {told.asked}

    def _others(self, group: str, client: str) -> Iterator[Subscription]:
        for one, told in self.by_client.items():
            if told.group == group and one != client:
                yield told

    def ended(self, client: str, *, is_gone: bool) -> None:
        """Record that a consumer ended; ``is_gone``: the broker is not notified."""
        told = self.by_client.pop(client, None)
        if told is not None and client in self.changing:
            self.torn |= {told.group}
        self.changing -= {client}
        if told is not None and is_gone:
            self.by_client[client] = told._replace(is_gone=True)

    def broker_began(self) -> None:
        """Record the start of a broker, which knows only the filters it persisted."""
        for client, told in [*self.by_client.items()]:
            if told.is_gone:
                del self.by_client[client]
        self.torn = frozenset([group for group in self.torn if self._stays_torn(group)])

    def _stays_torn(self, group: str) -> bool:
        members = [*self._others(group, "")]
        is_of_one_mind = all(one.is_like(members[0]) for one in members)
        return not is_of_one_mind or len(self.had.get(group, ())) > 1

    def clock_was_set_back(self) -> None:
        """Record that later subscriptions may look older than the present ones."""
        told = {group for group, had in self.had.items() if len(had) > 1}
        self.torn |= told

    def is_torn(self, group: str, *, filters: bool) -> bool:
        """Whether a group's subscription is unknown: it need consume nothing.

        ``filters``: its broker supports SQL92 expressions.
        """
        if group in self.torn:
            return True
        return any(
            client in self.changing or not _is_understood(told.asked, filters)
            for client, told in self.by_client.items()
            if told.group == group
        )

    def topics_told_by(self, client: str) -> frozenset[str] | None:
        """The topics that a client's heartbeat tells now; None: unknown."""
        told = self.by_client.get(client)
        if told is None or client in self.changing:
            return None
        return frozenset(told.topics)

    def asked_by(self, client: str, topic: str) -> Asked | None:
        """A client's present subscription to a topic; None: unknown."""
        told = self.by_client.get(client)
        if told is None and topic.startswith(RETRY_PREFIX):
            return EVERYTHING  # it has ended, and what it pulled was its group's
        if told is not None and told.has_all_of(topic):
            return EVERYTHING
        if told is None or client in self.changing or topic not in told.topics:
            return None
        return told.asked


def _is_understood(asked: Asked, filters: bool) -> bool:
    expression, kind = asked
    return kind == "TAG" or (filters and is_readable(expression))


class Passing(NamedTuple):
    """The messages that a pull went past: queue_offsets [``begin``, ``end``).

    Attributes:
        begin: the offset of the pull.
        end: the next_begin_offset of its answer.
        wanted: the subscription it was filtered by; None: unknown.
        brought: for a group whose members disagree on their subscription, the names
            of the messages that the pull returned; only those must be consumed.
    """

    begin: int
    end: int
    wanted: Asked | None
    brought: frozenset[str] | None

    def excuses(self, appended: Appended) -> bool:
        """Whether a message lies in the range and its group need not consume it."""
        if not self.begin <= appended.queue_offset < self.end:
            return False
        message = (appended.listed_as or appended).message
        if self.brought is not None:
            return name_of(appended) not in self.brought
        return not wants(self.wanted, message.tags, message.properties)


def wants(asked: Asked | None, tags: str, properties: Mapping[str, str]) -> bool:
    """Whether a message matches a subscription; also one on which an expression fails.

    With an unknown subscription no message does.
    """
    if asked is None or not _is_understood(asked, filters=True):
        return False
    expression, kind = asked
    return matches(expression, kind, tags, properties) in ("yes", "fails")


def wants_record(asked: Asked | None, data: bytes) -> bool:
    """As ``wants``, for a stored message; False for one that cannot be decoded."""
    if asked == EVERYTHING:
        return True
    try:
        properties = decode_record(data).properties
    except BadRecord:
        return False
    return wants(asked, properties.get("TAGS", ""), properties)
