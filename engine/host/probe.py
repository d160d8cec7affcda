"""*Sometimes* marks: a probe sits at a branch and says that it was taken.

A probe is declared at import, so that a branch nobody reached is known by name and
can be reported. Without a recorder a hit is a no-op.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

_declared: dict[str, Probe] = {}
_recorders: list[dict[str, int]] = []


class Probe:
    """A mark at one branch of the engine."""

    __slots__ = ("name", "sentence")

    def __init__(self, name: str, sentence: str) -> None:
        self.name = name
        self.sentence = sentence

    def hit(self) -> None:
        """Count one visit in the innermost recorder, if there is any."""
        if _recorders:
            hits = _recorders[-1]
            hits[self.name] = hits.get(self.name, 0) + 1


def probe(name: str, sentence: str) -> Probe:
    """Declare a probe.

    Args:
        name: ``module.branch``, unique in the engine.
        sentence: what has happened when the probe is hit.

    Raises:
        ValueError: the name is taken.
    """
    if name in _declared:
        raise ValueError(f"probe {name!r} is declared twice; give one another name.")
    _declared[name] = Probe(name, sentence)
    return _declared[name]


def declared_probes() -> dict[str, str]:
    """Every declared probe's sentence, by name, sorted by name."""
    return {name: _declared[name].sentence for name in sorted(_declared)}


@contextmanager
def recording() -> Iterator[dict[str, int]]:
    """Count hits by probe name while the context lasts; contexts nest."""
    hits: dict[str, int] = {}
    _recorders.append(hits)
    try:
        yield hits
    finally:
        _recorders.pop()
