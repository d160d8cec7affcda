"""Laws of members: who is to be named, and who is not."""

from __future__ import annotations

from crashmq.models.knowledge.members import Members
from crashmq.models.laws.membership import (
    who_has_left_is_no_member,
    who_is_heard_of_is_a_member,
)


def test_whoever_was_heard_of_is_named_for_two_minutes() -> None:
    judge = who_is_heard_of_is_a_member.violations

    assert not judge("g", ("c0",), {"c0": 0})
    assert not judge("g", (), {"c0": 120_001})
    assert judge("g", (), {"c0": 120_000})


def test_whoever_has_left_is_not_named() -> None:
    judge = who_has_left_is_no_member.violations

    assert not judge("g", ("c0",), ["c1"])
    assert judge("g", ("c0", "c1"), ["c1"])


def test_who_has_left_and_comes_back_is_heard_of_again() -> None:
    members = Members()
    members.heard("g", "c0", 10, 10)
    members.ended("c0", broker_knows=True)
    left = members.who_left("g"), members.silent_for("g", 20)
    members.heard("g", "c0", 30, 30)

    assert left == (["c0"], {})
    assert (members.who_left("g"), members.silent_for("g", 35)) == ([], {"c0": 5})


def test_who_vanishes_is_neither_heard_of_nor_known_to_have_left() -> None:
    members = Members()
    members.heard("g", "c0", 10, 10)
    members.ended("c0", broker_knows=False)

    assert (members.who_left("g"), members.silent_for("g", 20)) == ([], {})
