"""Lazy properties: computed on first use and kept, shared by all laws of an image."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

T = TypeVar("T")


class lazy(Generic[T]):  # noqa: N801  # it is written as a decorator
    """``functools.cached_property`` without the lock that it takes before Python 3.12.

    The value is kept in the instance's ``__dict__`` under the property's name, so only
    the first access comes here. Two threads may both compute it; the values are equal.
    """

    def __init__(self, work_out: Callable[[Any], T]) -> None:
        self._work_out = work_out
        self._name = work_out.__name__
        self.__doc__ = work_out.__doc__

    @overload
    def __get__(self, owner: None, kind: type | None = None) -> Self: ...

    @overload
    def __get__(self, owner: object, kind: type | None = None) -> T: ...

    def __get__(self, owner: object | None, kind: type | None = None) -> Self | T:
        if owner is None:
            return self
        value = owner.__dict__[self._name] = self._work_out(owner)
        return value
