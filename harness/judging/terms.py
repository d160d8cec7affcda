"""What a judge is given to look at, and what it calls the end of a life."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Protocol, TypeAlias

from models.invariants.judged import Judged
from models.messages import bit_map_at
from models.observations import HalfMade
from models.program import Setup
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

    def unsynced_from(self) -> Mapping[str, int]:
        """The files that a power loss could change, and where; see ``Subject``."""

    def half_made(self) -> HalfMade:
        """The files that were not made for good; see ``Subject``."""


def judged_of(
    setup: Setup,
    image: StoreImage,
    reput_from_offset: int | None,
    *,
    clean: bool,
    knows_bit_maps: bool,
) -> Judged:
    """What the laws of the files are asked about a store of this setup.

    ``knows_bit_maps``: nothing from outside can have changed one.
    """
    return Judged(
        image,
        reput_from_offset,
        clean,
        index_slots=setup.index_slots,
        keeps_index=setup.has_index,
        ext_size=setup.queue_ext_size if setup.has_queue_ext else 0,
        bit_map_of=bit_map_at if knows_bit_maps else None,
    )
