"""Values that are made quickly are what frozen dataclasses are."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, dataclass, field, replace

import pytest

from crashmq.models.quickly_made import quickly_made


@quickly_made
@dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: int = 2
    total: int = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "total", self.x + self.y)


def test_it_has_its_defaults_and_what_follows_from_its_fields() -> None:
    assert (Point(1).y, Point(1).total, Point(x=1, y=5).total) == (2, 3, 6)
    assert replace(Point(1), y=4) == Point(1, 4)
    assert pickle.loads(pickle.dumps(Point(1))) == Point(1)
    assert len({Point(1), Point(1, 2)}) == 1


def test_it_stays_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        Point(1).x = 3  # type: ignore[misc]  # that is what is tried


def test_one_whose_default_is_made_anew_is_refused() -> None:
    @dataclass(frozen=True, slots=True)
    class Listed:
        rows: list[int] = field(default_factory=list)

    with pytest.raises(TypeError, match=r"Listed\.rows is no plain field"):
        quickly_made(Listed)
