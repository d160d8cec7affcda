"""Living: every function object that was made from a module's text.

The garbage collector knows them all, and looking for some means looking at everything
that lives. A process with a large heap (a test suite) that looks often calls ``settle``
once: what lives by then is looked at for the last time.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from types import FunctionType, ModuleType
from weakref import ReferenceType, ref

_settled: dict[int, list[ReferenceType[FunctionType]]] = {}  # by id of their globals


def functions_of(module: ModuleType) -> list[FunctionType]:
    """Every live function object that was compiled from the module's text."""
    names = vars(module)
    found = {id(each): each for each in _candidates(names)}
    return [
        each
        for each in found.values()
        if each.__globals__ is names
        and each.__code__.co_filename != "<string>"  # what dataclasses generate
    ]


def settle() -> None:
    """Note all functions that live now, and hide all that lives from the collector.

    Cycles among what lives now are never freed, as after ``gc.freeze``.
    """
    gc.collect()
    for each in gc.get_objects():
        if type(each) is FunctionType:
            _settled.setdefault(id(each.__globals__), []).append(ref(each))
    gc.freeze()


def _candidates(names: dict[str, object]) -> Iterator[FunctionType]:
    for noted in _settled.get(id(names), ()):
        if (function := noted()) is not None:
            yield function
    for each in gc.get_referrers(names):
        if type(each) is FunctionType:
            yield each
