"""Plain state: copies of it that live on their own, and tokens to tell it apart.

A judge's state is lists, dicts and sets of values that nobody changes. The explorer
copies it for each crash it tries, and decides crashes whose tokens are equal once.
What is no container and has no ``fork`` of its own is shared by all copies, so it must
not change. What a token cannot look into is equal to itself alone.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Final, TypeVar

T = TypeVar("T")

_TELLING: Final = frozenset({int, str, bytes})  # equal to nothing of another kind
_ATOMS: Final = _TELLING | {bool, type(None)}


class _Itself:
    """Equal to nothing else; it keeps its object alive, so that no id is reused."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value: Final = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and other.value is self.value


def forked(value: T) -> T:
    """A copy of ``value``: its containers, and what forks itself, to the bottom."""
    kind: Any = type(value)
    how = _how_to_fork(kind)
    copy: T = value if how is None else how(value)
    return copy


def fork_of_fields(value: T) -> T:
    """A copy of a dataclass, each field of which is forked."""
    kind: Any = type(value)
    copy: T = object.__new__(kind)
    for name, _ in _fields(kind):
        part = getattr(value, name)
        if type(part) not in _ATOMS:  # nearly all are, and a call costs more
            part = forked(part)
        setattr(copy, name, part)
    return copy


def token(value: object) -> Hashable:
    """Equal for values that are equal to whoever reads them; hashable.

    A frozen dataclass stands for itself, and so does one that has a hash. A field of
    another one that takes no part in comparing takes none here.
    """
    kind: Any = type(value)
    return _how_to_tell(kind)(value)


def _tokens(values: Iterable[object]) -> tuple[Hashable, ...]:
    return tuple([part if type(part) in _TELLING else token(part) for part in values])


@cache
def _how_to_fork(kind: Any) -> Callable[[Any], Any] | None:
    if kind is list:
        return _forked_list
    if kind is dict:
        return lambda value: {key: forked(part) for key, part in value.items()}
    if kind is set:
        return set
    fork = getattr(kind, "fork", None)
    return fork if callable(fork) else None


def _forked_list(value: list[Any]) -> list[Any]:
    return [forked(part) for part in value] if value else []


@cache
def _how_to_tell(kind: Any) -> Callable[[Any], Hashable]:
    if kind in _TELLING:
        return lambda value: value
    if issubclass(kind, list | tuple):
        return _tokens
    if issubclass(kind, dict):
        return lambda value: (dict, *value, _tokens(value.values()))
    if issubclass(kind, set | frozenset):
        return lambda value: frozenset([token(part) for part in value])
    is_hashable = issubclass(kind, Hashable)
    if is_dataclass(kind) and not is_hashable:
        return _token_of_fields
    if not is_hashable or kind.__eq__ is object.__eq__:
        return _Itself
    return lambda value: (kind, value)


def _token_of_fields(value: object) -> Hashable:
    kind: Any = type(value)
    compared = [name for name, is_compared in _fields(kind) if is_compared]
    return (kind, *_tokens([getattr(value, name) for name in compared]))


@cache
def _fields(kind: Any) -> tuple[tuple[str, bool], ...]:
    return tuple((field.name, field.compare) for field in fields(kind))
