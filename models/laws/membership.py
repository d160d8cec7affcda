"""Laws of group membership: which consumers a broker lists for a rebalance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set

from crashmq.models.laws.registry import law
from crashmq.models.verdict import Violation

SILENT_MS = 120_000
"""Whoever was heard of within so long is a member. Source: channelExpiredTimeout."""


def _named(members: Sequence[str]) -> str:
    return f"the broker lists {', '.join(members) or 'no member'}"


@law(
    "MBR-1",
    "a broker lists every member of a group whose last heartbeat is less than two "
    "minutes old",
    catalogue="I12",
)
def who_is_heard_of_is_a_member(
    group: str, members: Sequence[str], silent_ms: Mapping[str, int]
) -> Iterator[Violation]:
    """A consumer that a broker does not list gives up all its queues.

    Source: ConsumerManager#registerConsumer, #scanNotActiveChannel.
    """
    for client, ms in silent_ms.items():
        if ms <= SILENT_MS and client not in members:
            heard = f"{client}, heard of {ms} ms ago"
            yield Violation(f"group {group}", _named(members), heard)


@law(
    "MBR-2",
    "a broker does not list a member that has left the group or whose connection was "
    "closed",
    catalogue="I12",
)
def who_has_left_is_no_member(
    group: str, members: Sequence[str], left: Sequence[str]
) -> Iterator[Violation]:
    """The queues assigned to it would have no consumer until it counts as inactive.

    Source: ConsumerManager#unregisterConsumer, #doChannelCloseEvent.
    """
    for client in left:
        if client in members:
            yield Violation(f"group {group}", _named(members), f"not {client}")


@law(
    "MBR-4",
    "a broker notifies the members of a group when a client joins it, leaves it or is "
    "silent for too long, and names all who are members then",
    catalogue="I12",
)
def members_are_told_of_each_other(
    group: str,
    client: str,
    others: Set[str],
    told: Sequence[str] | None,
    *,
    joins: bool,
) -> Iterator[Violation]:
    """Else they share the queues otherwise only with their next round of a rebalance.

    Args:
        group: the group.
        client: the client that joins or leaves.
        others: who certainly is a member besides.
        told: the members that the broker has named; None: it notified nobody.
        joins: whether the client joins.

    Source: ConsumerManager#registerConsumer, #unregisterConsumer,
    #doChannelCloseEvent, #scanNotActiveChannel; DefaultConsumerIdsChangeListener.
    """
    if not (joins or others):
        return  # nobody is left to be notified
    who = f"{client} {'joins' if joins else 'leaves'} group {group}"
    expected = {*others, client} if joins else {*others}
    if told is None:
        yield Violation(who, "nobody is notified", f"{sorted(expected)}")
    elif expected - {*told} or (client in told and not joins):
        yield Violation(who, f"{sorted(told)} are named", f"{sorted(expected)}")


@law(
    "MBR-3",
    "after a scan for inactive clients, a broker lists no member whose last heartbeat "
    "is more than two minutes old",
    catalogue="I12 I19",
)
def who_is_silent_is_no_member(
    group: str, members: Sequence[str], expired: Sequence[str]
) -> Iterator[Violation]:
    """The queues assigned to it would never have a consumer again.

    Source: ConsumerManager#scanNotActiveChannel, ClientHousekeepingService.
    """
    for client in expired:
        if client in members:
            expected = f"not {client}, silent for more than {SILENT_MS} ms"
            yield Violation(f"group {group}", _named(members), expected)
