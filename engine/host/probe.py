"""Probes: marks in the engine that record that a branch was taken ("sometimes").

A probe is declared at import, so a branch that no run reaches can be reported by name.
Without a recorder a hit does nothing. A probe that no program can reach is declared
with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

_declared: dict[str, Probe] = {}
_recorders: list[dict[str, int]] = []


class Probe:
    """A mark at one branch of the engine."""

    __slots__ = ("name", "sentence", "unreachable")

    def __init__(self, name: str, sentence: str, unreachable: str) -> None:
        self.name = name
        self.sentence = sentence
        self.unreachable = unreachable

    def hit(self) -> None:
        """Count one visit in the innermost recorder, if there is any."""
        if _recorders:
            hits = _recorders[-1]
            hits[self.name] = hits.get(self.name, 0) + 1


def probe(name: str, sentence: str, *, unreachable: str = "") -> Probe:
    """Declare a probe.

    Args:
        name: ``module.branch``, unique in the engine.
        sentence: what has happened when the probe is hit.
        unreachable: why no program can hit it on the engine as it is; "" if one can.

    Raises:
        ValueError: the name is taken.
    """
    if name in _declared:
        raise ValueError(f"probe {name!r} is declared twice; give one another name.")
    _declared[name] = Probe(name, sentence, unreachable)
    return _declared[name]


def declared_probes() -> dict[str, str]:
    """Every declared probe's sentence, by name, sorted by name."""
    return {name: _declared[name].sentence for name in sorted(_declared)}


def unreachable_probes() -> dict[str, str]:
    """The reason why no program hits a probe, by probe name, sorted."""
    return {
        name: _declared[name].unreachable
        for name in sorted(_declared)
        if _declared[name].unreachable
    }


@contextmanager
def recording() -> Iterator[dict[str, int]]:
    """Count hits by probe name while the context lasts; contexts nest."""
    hits: dict[str, int] = {}
    _recorders.append(hits)
    try:
        yield hits
    finally:
        _recorders.pop()
