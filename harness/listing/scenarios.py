"""The scenarios."""

from __future__ import annotations

from crashmq.scenarios.catalogue.scenarios import SCENARIOS


def rows() -> dict[str, str]:
    """Each scenario's sentence, by its name."""
    return {name: one.sentence for name, one in SCENARIOS.items()}
