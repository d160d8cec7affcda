"""A law that is asked holds, or is broken, or fails itself, and nothing is known."""

from __future__ import annotations

from typing import Any

import pytest

from crashmq.models.laws.registry import LawUnknown, LawViolated
from crashmq.models.laws.run import nothing_is_held, same_digest


def test_a_law_that_is_held_is_counted_and_says_nothing() -> None:
    checks = {"DET-1": 2}

    same_digest.hold(checks, "a", "a")

    assert checks == {"DET-1": 3}


def test_a_law_that_is_broken_raises_a_class_of_its_own() -> None:
    with pytest.raises(LawViolated, match=r"^DET-1 \(I10\), ") as broken:
        same_digest.hold({}, "a", "b")

    assert type(broken.value) is same_digest.error
    assert [found.seen for found in broken.value.violations] == ["b"]


def test_a_law_that_fails_itself_is_unknown_and_not_broken() -> None:
    nothing: Any = None

    with pytest.raises(LawUnknown, match="RUN-2 could not be judged") as held:
        nothing_is_held.hold({}, nothing)
    with pytest.raises(LawUnknown, match="RUN-2 could not be judged"):
        nothing_is_held.violations(nothing)

    assert not isinstance(held.value, AssertionError)
