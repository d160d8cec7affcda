"""What is known of the pulls that a broker holds: each waits for one answer."""

from __future__ import annotations

from dataclasses import dataclass, field

from crashmq.models.ops import PullThroughBroker
from crashmq.models.plain_state import Forked


@dataclass(frozen=True, slots=True)
class OpenPull:
    """A pull without an answer.

    Attributes:
        asked_ms: when it was asked, by the store's clock.
        held_ms: when it was held at the latest; None: unknown that it is.
    """

    op: PullThroughBroker
    asked_ms: int
    held_ms: int | None = None


@dataclass(slots=True)
class Pulls(Forked):
    """Of one life of a broker.

    Attributes:
        open: by number those that have no answer.
        resets: of the step in progress, by number the offset of the reset that a pull
            must have met; -1: it may have met one.
        replicated: how far replicas have the log, of a store that waits for them.
    """

    open: dict[int, OpenPull] = field(default_factory=dict)
    resets: dict[int, int] = field(default_factory=dict)
    replicated: int = 0

    @property
    def held(self) -> list[OpenPull]:
        """Those that are held, oldest first."""
        return [pull for pull in self.open.values() if pull.held_ms is not None]
