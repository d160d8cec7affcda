"""A store that says of each message that it lies where it does not.

Its first answers break a law, so an episode of it takes milliseconds.
"""

from __future__ import annotations

from dataclasses import replace

from tiny_store import TinyStore

from crashmq.testing import MessageToPut, Observation, Put


class Misplaced(TinyStore):
    """The tests' small store, but for its answers to puts."""

    name = "misplaced"

    def put(self, message: MessageToPut) -> Observation:
        """Append a record, and answer with a place in the middle of nowhere."""
        answer = super().put(message)
        if isinstance(answer, Put):
            return replace(answer, phy_offset=1 << 20)
        return answer
