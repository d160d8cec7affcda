"""Connections: those of one client to its broker, of which only the newest is used.

And whom a broker notifies over them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from crashmq.engine.broker.broker_controller import BrokerController
from crashmq.engine.remoting.subscription_data import SubscriptionData
from crashmq.models.history import MembersTold


class Connections:
    """The connections of a client that its broker may take for open.

    Attributes:
        lost: which of the next questions over them gets no answer; 0: none.
    """

    def __init__(self, client: str) -> None:
        self.lost = 0
        self._client = client
        self._made = 1
        self._open = [client]
        self._is_heard = False  # on the newest connection

    @property
    def newest(self) -> str:
        """The name of the connection on which the client sends its heartbeats."""
        return self._open[-1]

    def loses_question(self) -> bool:
        """Whether the next question gets no answer."""
        is_lost = self.lost == 1
        self.lost = max(0, self.lost - 1)
        return is_lost

    def renew(self) -> None:
        """Make a new connection, since the newest one has broken."""
        self._open.append(f"{self._client}#{self._made}")
        self._made += 1
        self._is_heard = False

    def was_heard(self, connection: str) -> None:
        """Record that a broker has taken a heartbeat on a connection.

        If it had seen that one close, the heartbeat was on its way, and it sees that
        again.
        """
        if connection not in self._open:
            self._open.insert(0, connection)
        self._is_heard = connection == self.newest

    def close_old(self, broker: BrokerController | None) -> int:
        """Let a broker see all but the newest close; returns how many.

        None do before a heartbeat has come on the newest one, or while no broker runs.
        """
        if broker is None or not broker.is_started or not self._is_heard:
            return 0
        old, self._open = self._open[:-1], self._open[-1:]
        for connection in old:
            broker.consumer_manager.do_channel_close_event(connection)
        return len(old)

    def close_all(self, broker: BrokerController) -> None:
        """Let a broker see all of them close, as when the client's process ends."""
        for connection in self._open:
            broker.consumer_manager.do_channel_close_event(connection)


class Notified:
    """Hears whom a broker notifies over the connections of its clients."""

    def __init__(self, note: Callable[[MembersTold], None]) -> None:
        self._note = note

    def consumer_ids_changed(self, group: str, client_ids: Sequence[str]) -> None:
        """Note that the members of a group are notified."""
        self._note(MembersTold(group, (*client_ids,)))

    def group_registered(
        self, group: str, subscriptions: Sequence[SubscriptionData]
    ) -> None:
        """Ignore what a group subscribes: its heartbeat says so."""

    def group_unregistered(self, group: str) -> None:
        """Ignore that a group has lost its last member: nobody is notified."""
