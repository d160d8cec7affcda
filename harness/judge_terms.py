"""What a judge is given to look at: a subject's files, and whoever decodes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeAlias

from models.store_image import StoreImage

Reader: TypeAlias = Callable[[Mapping[str, bytes], StoreImage | None], StoreImage]


class LookedAt(Protocol):
    """All of a subject that a judge looks at by itself."""

    @property
    def epoch_ms(self) -> int:
        """Where the subject's wall clock began."""

    def files(self) -> Mapping[str, bytes]:
        """The store's files as a reader sees them now, by path."""
