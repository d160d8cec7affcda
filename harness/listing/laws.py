"""The laws."""

from __future__ import annotations

import crashmq.harness.episodes.episode  # noqa: F401  # declares every law of a run
from crashmq.models.laws.registry import declared_laws


def rows() -> dict[str, str]:
    """Each law's sentence and its invariants of I1 to I20, by its id."""
    laws = declared_laws()
    return {name: f"{law.sentence} ({law.catalogue})" for name, law in laws.items()}
