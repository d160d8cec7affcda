"""Draft: a program while it is generated.

A phrase is a few ops that belong together, added by a function that takes the draft.
``workload`` lists the phrases; each phrase's module decides what follows what.
"""

from __future__ import annotations

from crashmq.models.ops import EVERYTHING, Capability, Op, StartConsumer, needs
from crashmq.models.program import Setup
from crashmq.scenarios.programs.chance import Chance
from crashmq.scenarios.programs.drawn_ops import OpDrawer
from crashmq.scenarios.programs.space import Space

THOROUGH_MS = 61_000
"""After so long every service does all there is to do."""


class Draft:
    """The ranges, the store, the source of choices, and the ops so far.

    ``drawn`` draws single ops of the space, and knows what the earlier ones stored. An
    op that needs more than the store ``can`` do is left out. ``joined`` has the newest
    consumer of each client.
    """

    __slots__ = (
        *("_is_bounded", "can", "chance", "drawn", "joined", "ops", "setup"),
        "space",
    )

    def __init__(
        self,
        space: Space,
        setup: Setup,
        chance: Chance,
        can: frozenset[Capability] = EVERYTHING,
    ) -> None:
        self.space = space
        self.setup = setup
        self.chance = chance
        self.can = can
        self._is_bounded = can != EVERYTHING
        self.drawn = OpDrawer(space, setup, chance)
        self.ops: list[Op] = []
        self.joined: dict[str, StartConsumer] = {}

    def delay_ms(self, level: int) -> int:
        """How long the store's broker lets a message of a delay level wait."""
        return self.setup.delay_levels.delay_ms(level)

    def add(self, *ops: Op) -> None:
        """Append ops to the program."""
        if self._is_bounded:
            ops = tuple([op for op in ops if needs(op) <= self.can])
        self.ops += ops
