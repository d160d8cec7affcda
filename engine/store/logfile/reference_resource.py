"""ReferenceResource: a resource that is released when its last user is done.

Each user is an element of a list, whose first element is the owner's. Appending and
removing an element is one step of the interpreter, so neither needs a lock, and whoever
removes the first element is the last user.

Source: org.apache.rocketmq.store.ReferenceResource, RocketMQ 5.3. Differs: readers are
always waited for; in RocketMQ a second shutdown after an interval unmaps under live
readers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from crashmq.engine.host.probe import probe

OUTLIVED = probe(
    "reference_resource.outlived",
    "the last user released a file after its owner: it cleans up",
)
TURNED_AWAY = probe(
    "reference_resource.turned_away",
    "a file was asked for after its owner had released it",
)


class ReferenceResource(ABC):
    """Counts its users; ``clean_up`` runs once, after the last one.

    The owner counts as a user until ``shutdown``.

    Invariants:
        it has a holder while its owner has not released it
    """

    __slots__ = ("_holders", "is_available")

    def __init__(self) -> None:
        self.is_available = True
        self._holders = [True]  # the owner's; a holder's is False

    def _check(self) -> None:
        assert self._holders or not self.is_available, self

    def hold(self) -> bool:
        """Keep it usable until ``release``; False if its owner has released it.

        Source: ReferenceResource#hold.
        """
        self._holders.append(False)
        if self.is_available:
            return True
        TURNED_AWAY.hit()
        self.release()
        return False

    def release(self) -> None:
        """Undo one ``hold``.

        Source: ReferenceResource#release.
        """
        if self._holders.pop():
            self.clean_up()

    def shutdown(self) -> None:
        """Release the owner's hold; ``hold`` fails from now on. Idempotent.

        Source: ReferenceResource#shutdown.
        """
        if self.is_available:
            self.is_available = False
            if len(self._holders) > 1:
                OUTLIVED.hit()
            self.release()

    @property
    def is_cleaned_up(self) -> bool:
        """Whether its last user is done."""
        return not self._holders

    @abstractmethod
    def clean_up(self) -> None:
        """Free the resource; called once."""
