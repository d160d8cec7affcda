"""ReferenceResource: something that is let go when its last holder lets go of it.

Holders are the elements of a list, the owner at the bottom: taking and giving back one
of them is a single step of the interpreter, so neither needs a lock, and whoever takes
the owner's element off is the last.

Source: org.apache.rocketmq.store.ReferenceResource, RocketMQ 5.3. Differs: nobody is
ever overtaken: there, a second shutdown after an interval unmaps below live readers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from engine.host.probe import probe

OUTLIVED = probe(
    "reference_resource.outlived", "a holder let go after the owner had: it cleans up"
)
TURNED_AWAY = probe(
    "reference_resource.turned_away", "somebody asked for what was let go already"
)


class ReferenceResource(ABC):
    """Counts who uses it; ``clean_up`` runs once, after the last one.

    Invariants:
        clean_up has run if and only if nobody holds it, its owner included
    """

    __slots__ = ("_holders", "is_available")

    def __init__(self) -> None:
        self.is_available = True
        self._holders = [True]  # the owner's; a holder's is False

    def hold(self) -> bool:
        """Keep it usable until ``release``; False if its owner has let go.

        Source: ReferenceResource#hold.
        """
        self._holders.append(False)
        if self.is_available:
            return True
        TURNED_AWAY.hit()
        self.release()
        return False

    def release(self) -> None:
        """Give back what ``hold`` gave.

        Source: ReferenceResource#release.
        """
        if self._holders.pop():
            self.clean_up()

    def shutdown(self) -> None:
        """Let the owner go; nobody gets hold of it any more. Idempotent.

        Source: ReferenceResource#shutdown.
        """
        if self.is_available:
            self.is_available = False
            if len(self._holders) > 1:
                OUTLIVED.hit()
            self.release()

    @property
    def is_cleaned_up(self) -> bool:
        """Whether nobody uses it any more."""
        return not self._holders

    @abstractmethod
    def clean_up(self) -> None:
        """Give back what it stands for; called once."""
