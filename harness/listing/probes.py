"""The probes."""

from __future__ import annotations

import crashmq.harness.episodes.episode  # noqa: F401  # declares every probe of a run
from crashmq.engine.host.probe import declared_probes, unreachable_probes


def rows() -> dict[str, str]:
    """Each probe's sentence and, if no program can hit it, the reason; by name."""
    reasons = unreachable_probes()
    return {
        name: f"{sentence}; unreachable: {reasons[name]}"
        if name in reasons
        else sentence
        for name, sentence in declared_probes().items()
    }
