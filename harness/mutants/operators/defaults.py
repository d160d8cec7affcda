"""Defaults that no run uses: of fields that are always given when their class is made.

Changing the default of such a field changes nothing that a search can see. Only a test
that compares the engine's defaults with RocketMQ's would notice.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from crashmq import engine, harness

_ROOMS = Path(engine.__file__).parent, Path(harness.__file__).parent


def is_always_given(place: str) -> bool:
    """Whether ``Class.field`` is passed by name at every place that makes its class."""
    made, _, name = place.rpartition(".")
    calls = _given().get(made.rpartition(".")[2], ()) if made else ()
    return bool(calls) and all(name in given for given in calls)


@cache
def _given() -> dict[str, tuple[frozenset[str], ...]]:
    """For each class, and each place that makes it, the names that are passed."""
    found: dict[str, list[frozenset[str]]] = {}
    for name, given in _calls():
        found.setdefault(name, []).append(given)
    return {name: tuple(each) for name, each in found.items()}


def _calls() -> Iterator[tuple[str, frozenset[str]]]:
    for room in _ROOMS:
        for path in sorted(room.rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                match node:
                    case ast.Call(func=ast.Name(id=name), keywords=keywords):
                        names = {one.arg for one in keywords if one.arg is not None}
                        yield name, frozenset(names)
