"""The walk through heartbeats, and through the lists of members that brokers answer."""

from __future__ import annotations

from collections.abc import Iterator

from crashmq.models.history import (
    ConsumerEnded,
    Happening,
    HeartbeatTaken,
    MembersAnswered,
    MembersTold,
    RoundDone,
)
from crashmq.models.knowledge.moments import At, Moment
from crashmq.models.knowledge.moments_of_consumers import (
    MembersChanged,
    MembersListed,
)
from crashmq.models.limits import CLIENT_SILENT_MS
from crashmq.models.ops import EndConsumer, TurnConsumer, all_parts

OF_MEMBERS = frozenset({HeartbeatTaken, RoundDone, ConsumerEnded, MembersAnswered})
"""The kinds of events of which anything comes to be known here."""


def _has_another_turn(at: At, client: str) -> bool:
    """Whether a client's heartbeat may have reached the broker after its end.

    A client that dies during a turn records no end of that turn.
    """
    turns = [one for one in all_parts(at.step.op) if isinstance(one, TurnConsumer)]
    return any(turn.client == client for turn in turns)


def _ends_beside(at: At, client: str) -> bool:
    """Whether a process of the client ends in the step, beside what others do.

    What it still tells the broker may come after the heartbeat of the next one.
    """
    acts = at.step.acts
    ends = any(isinstance(one, EndConsumer) and one.client == client for one in acts)
    return ends and not at.step.is_alone


def _is_seen(at: At) -> bool:
    """Whether all that a broker is told in the step is seen, and it answers that."""
    is_up = at.now.max_phy_offset >= 0 and at.step.crash is None
    return at.step.is_alone and is_up and not (at.step.starts or at.step.fails_calls)


def saw_clients_unseen(at: At) -> None:
    """Record the clients of which a heartbeat may not be recorded in the step."""
    if at.step.is_alone and not at.step.fails_calls:
        return
    names = {getattr(act, "client", "") for act in at.step.acts}
    at.known.progress.members.met |= {("", name) for name in names if name}


def _changed(
    at: At, group: str, client: str, at_ms: int, *, is_there: bool
) -> MembersChanged:
    told = [one.event for one in at.step.entries if isinstance(one.event, MembersTold)]
    its = [one.members for one in told if one.group == group]
    others = at.known.progress.members.others(group, client, at_ms)
    return MembersChanged(
        *at, group, client, is_there, others, its[-1] if its else None
    )


def walk_members(at: At, event: Happening, at_ms: int) -> Iterator[Moment]:
    """Record heartbeats and ends; yield a moment where a broker lists members."""
    members = at.known.progress.members
    match event:
        case HeartbeatTaken(client, group, rows):
            if _is_seen(at) and members.is_new(group, client):
                yield _changed(at, group, client, at_ms, is_there=True)
            members.met.add((group, client))
            # Of two at the same time nobody knows which one the broker took last.
            is_known = at.step.is_alone and rows is not None
            topics = frozenset([topic for topic, _, _ in rows or ()])
            members.told(group, topics if is_known else None)
            # One that ended beside its own heartbeat is known to be gone.
            if client in at.known.consumption.living and not _ends_beside(at, client):
                members.heard(group, client, at.step.entries[0].at_ms, at_ms)
                if _is_seen(at):
                    members.there.add((group, client))
            else:
                members.may_have_heard(group, client)
        case RoundDone(service="client_housekeeping") as done:
            goes = members.who_goes(done.began_ms, CLIENT_SILENT_MS)
            for group, client in goes if _is_seen(at) else ():
                yield _changed(at, group, client, at_ms, is_there=False)
            members.looked(done.began_ms, CLIENT_SILENT_MS)
        case ConsumerEnded(client, how, _):
            if _is_seen(at) and how != "vanish":
                for group in members.groups_of(client, at_ms):
                    yield _changed(at, group, client, at_ms, is_there=False)
            is_last = how != "vanish" and not _has_another_turn(at, client)
            if how == "vanish":
                members.vanished[client] = True
            elif how == "kill" and client in members.vanished:
                is_last = False  # connections of the process before stay open
            members.ended(client, broker_knows=is_last)
            if how != "vanish":
                members.may_have_left(client)
        case MembersAnswered(client, group, told):
            silent_ms, left = members.silent_for(group, at_ms), members.who_left(group)
            expired = members.who_expired(group)
            yield MembersListed(*at, client, group, told, silent_ms, left, expired)
        case _:
            pass
