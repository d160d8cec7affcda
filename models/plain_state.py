"""Plain state: it can be copied independently, and compared by tokens.

A judge's state consists of lists, dicts and sets of immutable values. The explorer
copies it for each crash it tries, and judges crashes with equal tokens once. A value
that is no container and has no ``fork`` is shared by all copies, so it must not change.
A value whose content a token cannot read is equal only to itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from functools import cache
from operator import attrgetter, eq, is_
from typing import Any, Final, Self, TypeVar

T = TypeVar("T")

_TELLING: Final = frozenset({int, str, bytes})  # equal to nothing of another kind
_ATOMS: Final = _TELLING | {bool, type(None)}


class _Itself:
    """A token equal only to itself; it keeps its object alive, so no id is reused."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value: Final = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and other.value is self.value


def forked(value: T) -> T:
    """A deep copy of ``value``: containers, and objects with a ``fork``, are copied."""
    kind: Any = type(value)
    how = _how_to_fork(kind)
    copy: T = value if how is None else how(value)
    return copy


def fork_of_fields(value: T) -> T:
    """A copy of a dataclass with every field forked.

    Its constructor must take exactly the fields, and have no side effects.
    """
    kind: Any = type(value)
    copy: T = kind(
        *[
            part if type(part) in _ATOMS else forked(part)  # nearly all are atoms
            for part in _all_parts(kind)(value)
        ]
    )
    return copy


class Forked:
    """A base of dataclasses with a ``fork``."""

    __slots__ = ()

    def fork(self) -> Self:
        """An independent copy."""
        return fork_of_fields(self)


def token(value: object) -> Hashable:
    """A hashable key; equal keys for values that no reader can distinguish.

    A frozen dataclass is its own token, as is any hashable value. Fields that are
    excluded from comparison are left out.
    """
    kind: Any = type(value)
    return _how_to_tell(kind)(value)


def is_alike(one: object, other: object) -> bool:
    """Whether both tokens are certainly equal, without computing them."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    kind: Any = type(one)
    return _how_to_compare(kind)(one, other)


def _are_alike(ones: Collection[object], others: Collection[object]) -> bool:
    if len(ones) != len(others):
        return False
    for one, other in zip(ones, others, strict=True):
        if one is not other and not is_alike(one, other):
            return False
    return True


@cache
def _how_to_compare(kind: Any) -> Callable[[Any, Any], bool]:
    if kind in _TELLING:
        return eq
    if issubclass(kind, list | tuple):
        return _are_alike
    if issubclass(kind, dict):
        return _dicts_are_alike
    if issubclass(kind, set | frozenset):
        return _are_plain_and_equal
    if issubclass(kind, Hashable):
        return eq
    if is_dataclass(kind):
        return _fields_are_alike
    return is_


def _dicts_are_alike(one: dict[Any, Any], other: dict[Any, Any]) -> bool:
    if not one or not other:
        return not one and not other
    return [*one] == [*other] and _are_alike(one.values(), other.values())


def _fields_are_alike(one: object, other: object) -> bool:
    kind: Any = type(one)
    parts = _compared_parts(kind)
    return _are_alike(parts(one), parts(other))


def _are_plain_and_equal(one: AbstractSet[object], other: AbstractSet[object]) -> bool:
    return one == other and {*map(type, one), *map(type, other)} <= _TELLING


def _tokens(values: Iterable[object]) -> tuple[Hashable, ...]:
    return tuple([part if type(part) in _TELLING else token(part) for part in values])


@cache
def _how_to_fork(kind: Any) -> Callable[[Any], Any] | None:
    if kind is list:
        return _forked_list
    if kind is dict:
        return _forked_dict
    if kind is set:
        return set
    fork = getattr(kind, "fork", None)
    return fork if callable(fork) else None


def _forked_list(value: list[Any]) -> list[Any]:
    if _are_shared(value):
        return value.copy()
    return [forked(part) for part in value]


def _forked_dict(value: dict[Any, Any]) -> dict[Any, Any]:
    if _are_shared(value.values()):
        return value.copy()
    return {key: forked(part) for key, part in value.items()}


def _are_shared(values: Iterable[Any]) -> bool:
    """Whether a fork shares all of these objects."""
    return not any(map(_how_to_fork, {*map(type, values)}))


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
    return (kind, *_tokens(_compared_parts(kind)(value)))


@cache
def _all_parts(kind: Any) -> Callable[[Any], tuple[Any, ...]]:
    """A function that returns the fields of a dataclass as a tuple."""
    return _parts([field.name for field in fields(kind)])


@cache
def _compared_parts(kind: Any) -> Callable[[Any], tuple[Any, ...]]:
    """The same without fields that are excluded from comparison."""
    return _parts([field.name for field in fields(kind) if field.compare])


def _parts(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    if len(names) > 1:
        return attrgetter(*names)
    return lambda value: tuple([getattr(value, name) for name in names])
