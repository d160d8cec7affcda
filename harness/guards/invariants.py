"""Invariants: every class that lists some has them checked after each of its moves.

A class lists what always holds under ``Invariants:`` in its docstring, and asserts it
in ``_check``, without using a disk. While checking is on, every public method of such a
class runs ``_check`` at its end, unless another call of the same object is in progress.
While it is off the classes are unchanged, and it costs nothing. The profiles ``dev``
and ``ci`` turn it on; a soak has ``--invariants``.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from types import FunctionType
from typing import Any

_ROOMS = ("engine", "models", "harness")
_LISTED = re.compile(r"^    Invariants:$", re.MULTILINE)
_NOT_ASKED = tuple(
    f"crashmq.harness.{name}" for name in ("commands", "pytest_plugin", "cli")
)


class InvariantBroken(AssertionError):
    """An invariant that a class lists does not hold; the message names the method."""


@cache
def checked_classes() -> tuple[type, ...]:
    """Every class of the store, the models and the harness that lists invariants."""
    found = []
    for name in _module_names():
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError as lacking:
            if (lacking.name or "").startswith("crashmq"):
                raise
            continue  # it needs an extra that is not installed: nothing of it is used
        for each in vars(module).values():
            is_here = isinstance(each, type) and each.__module__ == name
            if is_here and _LISTED.search(each.__doc__ or ""):
                found.append(each)
    return tuple(found)


def _module_names() -> list[str]:
    names: list[str] = []
    for room in _ROOMS:
        package = importlib.import_module(f"crashmq.{room}")
        modules = pkgutil.walk_packages(package.__path__, f"crashmq.{room}.")
        names += [module.name for module in modules]
    return [name for name in names if not name.startswith(_NOT_ASKED)]


@contextmanager
def invariants_checked(*, enabled: bool = True) -> Iterator[None]:
    """While the context lasts, if enabled, check all classes that list invariants.

    Raises:
        InvariantBroken: from the method that ended.
    """
    if not enabled or _ACTIVE.is_on:
        yield
        return
    written = [(cls, *each) for cls in checked_classes() for each in _moves_of(cls)]
    _ACTIVE.is_on = True
    for cls, name, move in written:
        setattr(cls, name, _checking(move, cls))
    try:
        yield
    finally:
        for cls, name, move in written:
            setattr(cls, name, move)
        _ACTIVE.is_on = False


def _moves_of(cls: type) -> list[tuple[str, FunctionType]]:
    """The public methods that a class defines itself; a generator moves later."""
    return [
        (name, each)
        for name, each in vars(cls).items()
        if isinstance(each, FunctionType)
        and not name.startswith("_")
        and not inspect.isgeneratorfunction(each)
        and not hasattr(each, "__wrapped__")
        and not getattr(each, "__isabstractmethod__", False)
    ]


class _Calls:
    """Which objects have calls in progress, and how many each."""

    def __init__(self) -> None:
        self.is_on = False
        self.under_way: dict[int, list[Any]] = {}

    def begin(self, subject: object) -> None:
        """A call of this object has begun."""
        self.under_way.setdefault(id(subject), []).append(subject)

    def end(self, subject: object) -> bool:
        """The call has ended; return whether no other one is under way."""
        calls = self.under_way[id(subject)]
        calls.pop()
        if not calls:
            del self.under_way[id(subject)]
        return not calls


_ACTIVE = _Calls()


def _checking(move: FunctionType, cls: type) -> Callable[..., Any]:
    """The same method, which checks its object at the end."""
    check = vars(cls)["_check"]

    @wraps(move)
    def checked(self: Any, *args: Any, **named: Any) -> Any:
        _ACTIVE.begin(self)
        try:
            answer = move(self, *args, **named)
        finally:
            is_last = _ACTIVE.end(self)
        if is_last:
            try:
                _unseen(check, self)
            except AssertionError as broken:
                where = f"{cls.__name__} after {move.__name__}"
                raise InvariantBroken(f"{where}: {broken}") from broken
        return answer

    return checked


def _unseen(check: Callable[[Any], None], subject: object) -> None:
    """Run the check without making its lines switch points of a schedule."""
    tracer = sys.gettrace()
    if tracer is None:
        check(subject)
        return
    sys.settrace(None)
    try:
        check(subject)
    finally:
        sys.settrace(tracer)
