"""A store that says of each message that it lies where it does not.

Its first answer breaks a law, so an episode of it takes milliseconds.
"""

from __future__ import annotations

from crashmq.testing import (
    MessageToPut,
    Observation,
    Pulled,
    Put,
    Skipped,
    Started,
    Stopped,
)

DOWN = Skipped("the store is down")


class Misplaced:
    """Takes every message and holds none."""

    name = "misplaced"

    def __init__(self) -> None:
        self.is_up = False

    def start(self) -> Observation:
        """Be up."""
        if self.is_up:
            return Skipped("the store is up")
        self.is_up = True
        return Started(last_exit_ok=True)

    def shutdown(self) -> Observation:
        """Be down."""
        if not self.is_up:
            return DOWN
        self.is_up = False
        return Stopped(clean=True)

    def kill(self) -> None:
        """Be down at once."""
        self.is_up = False

    def put(self, _: MessageToPut) -> Observation:
        """Answer with a place in the middle of nowhere."""
        return Put("PUT_OK", 1 << 20, 1, 0) if self.is_up else DOWN

    def pull(self, *_: object) -> Observation:
        """Know of no queue."""
        return Pulled("NO_MATCHED_LOGIC_QUEUE", 0, 0, 0) if self.is_up else DOWN

    def files(self) -> dict[str, bytes]:
        """None."""
        return {}

    def close(self) -> None:
        """Nothing is held."""
