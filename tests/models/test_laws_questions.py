"""Laws of what a broker answers to an administrator."""

from __future__ import annotations

import pytest

from crashmq.models.laws.questions import (
    answers_where_a_group_pulls,
    finds_the_first_since,
    knows_its_groups,
    knows_who_has_a_lock,
    names_those_who_subscribe,
    names_those_with_offsets,
)
from crashmq.models.ops import AskBroker

OF_G = AskBroker("topics_of_group", "g")
LOCK = AskBroker("lock", "g", "T0", client="c0")


@pytest.mark.parametrize("law", [names_those_with_offsets, names_those_who_subscribe])
def test_a_broker_names_what_is_there_once_and_nothing_else(law: object) -> None:
    judge = getattr(law, "violations")  # noqa: B009  both take the same
    must, may = frozenset({"T0", "T1"}), frozenset({"T0", "T1", "T2"})

    assert not judge(OF_G, ("T0", "T1"), must, may)
    assert not judge(OF_G, ("T0", "T1", "T2"), must, may)
    assert judge(OF_G, ("T0",), must, may)
    assert judge(OF_G, ("T0", "T1", "T3"), must, may)
    assert judge(OF_G, ("T1", "T0"), must, may)
    assert judge(OF_G, ("T0", "T0", "T1"), must, may)


def test_a_group_pulls_where_its_last_pull_or_its_offset_says() -> None:
    judge = answers_where_a_group_pulls.violations
    asked = AskBroker("pull_offset", "g", "T0")

    assert not judge(asked, 3, frozenset({3}))
    assert not judge(asked, -1, frozenset({-1, 3}))
    assert judge(asked, 2, frozenset({3}))


def test_a_search_by_time_finds_the_first_message_since() -> None:
    judge = finds_the_first_since.violations

    assert not judge(("T0", 0), 3, 3)
    assert judge(("T0", 0), 2, 3)
    assert judge(("T0", 0), 4, 3)


def test_a_broker_knows_its_groups_and_who_has_a_lock() -> None:
    of_groups, of_locks = knows_its_groups.violations, knows_who_has_a_lock.violations

    assert not of_groups(AskBroker("group", "g"), 1, frozenset({1}))
    assert of_groups(AskBroker("group", "g"), 0, frozenset({1}))
    assert not of_locks(LOCK, 0, frozenset({0, 1}))
    assert of_locks(LOCK, 1, frozenset({0}))
