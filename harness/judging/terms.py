"""What a judge is given to look at, and what it calls the end of a life."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Protocol, TypeAlias

from models.store_image import StoreImage

Reader: TypeAlias = Callable[[Mapping[str, bytes], StoreImage | None], StoreImage]


class End(Enum):
    """How the newest life of the store ended, if it has, as the abort file tells it."""

    ORDERLY = "everything is durable, and the abort file is gone"
    ABORT_STAYS = "the abort file is there: it runs, or nobody ended it in order"
    UNKNOWN = "something stepped in while the abort file was made or removed"


class LookedAt(Protocol):
    """All of a subject that a judge looks at by itself."""

    @property
    def epoch_ms(self) -> int:
        """Where the subject's wall clock began."""

    def files(self) -> Mapping[str, bytes]:
        """The store's files as a reader sees them now, by path."""
