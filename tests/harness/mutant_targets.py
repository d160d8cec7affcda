"""What the tests of mutants edit: one of each kind of place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

LIMIT = 10
TWICE = LIMIT * 2


def limited(number: int, most: int = LIMIT) -> int:
    return min(number, most)


@lru_cache
def remembered(number: int) -> int:
    return number + 1


@dataclass(frozen=True, slots=True)
class Options:
    most: int = TWICE
    name: str = "shipped"


class Color(Enum):
    RED = 1


class Outer:
    size = 3
    double = LIMIT + 1

    class Inner:
        def deep(self) -> int:
            if Outer.size:
                first = 1
                second = 2
                return first + second
            return 0


def doubled(number: int) -> int:
    # The comment and the line below are what edits look for.
    result = number * 2
    assert result % 2 == 0
    return result


def counted_down(number: int) -> int:
    def lower(left: int) -> int:
        return lower(left - 1) if left > number - number else 0

    return lower(number)


def multiplier(factor: int) -> Callable[[int], int]:
    def times(number: int) -> int:
        return number * factor

    return times


tripled = multiplier(3)


@contextmanager
def guarded() -> Iterator[int]:
    yield 1


class Base:
    def greet(self) -> str:
        return "base"


class Counter(Base):
    __step = 1

    def __init__(self) -> None:
        self.__total = 0

    def count(self) -> int:
        """Add the step."""
        self.__total += self.__step
        return self.__total

    def greet(self) -> str:
        return super().greet() + "+counter"

    @property
    def total(self) -> int:
        return self.__total

    @property
    def limit(self) -> int:
        return LIMIT

    @limit.setter
    def limit(self, value: int) -> None:
        self.__total = value

    @staticmethod
    def unit() -> str:
        return "bytes"

    @classmethod
    def named(cls) -> str:
        return cls.__name__

    def generated(self, default: int = 5) -> Iterator[int]:
        yield default
        yield self.__total
