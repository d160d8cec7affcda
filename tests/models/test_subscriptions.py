"""What a group is owed of what its consumers ask for, and when nobody can tell."""

from __future__ import annotations

from dataclasses import replace

import pytest

from crashmq.models.appended import Appended
from crashmq.models.knowledge.subscriptions import (
    EVERYTHING,
    Asked,
    Passing,
    Subscriptions,
    wants,
    wants_record,
)
from crashmq.models.messages import message_for
from crashmq.models.ops import PutMessage, StartConsumer

C0 = StartConsumer("c0", "g", "T0,T1", expression="A")
C1 = replace(C0, client="c1")
OTHER = replace(C1, expression="B")
SQL = replace(C0, expression="a > 5", expression_type="SQL92")


def told(*ops: StartConsumer) -> Subscriptions:
    known = Subscriptions()
    for op in ops:
        known.began(op)
    return known


def is_torn(known: Subscriptions, *, filters: bool = True) -> bool:
    return known.is_torn("g", filters=filters)


def test_a_group_is_torn_while_its_members_ask_for_different_messages() -> None:
    known = told(C0, C1)
    assert not is_torn(known)

    known.changes(OTHER, is_done=True)
    assert is_torn(known)
    known.changes(replace(C0, expression="B"), is_done=True)
    assert is_torn(known)  # pulls of before may still be held
    assert not known.is_torn("h", filters=True)


def test_a_torn_group_is_mended_by_a_broker_that_begins_anew() -> None:
    known = told(C0, OTHER)
    known.broker_began()
    assert is_torn(known)  # its members have not come to one mind

    known.changes(replace(C0, expression="B"), is_done=True)
    known.broker_began()
    assert not is_torn(known)


def test_a_torn_group_is_mended_once_it_begins_anew() -> None:
    known = told(C0, OTHER)
    known.ended("c0", is_gone=False)
    known.ended("c1", is_gone=False)
    assert is_torn(known)

    known.began(C0)
    assert not is_torn(known)


def test_the_broker_has_what_a_vanished_client_subscribed_until_it_begins_anew() -> (
    None
):
    known = told(C0)
    known.ended("c0", is_gone=True)
    known.began(OTHER)
    assert is_torn(known)

    known.broker_began()
    assert not is_torn(known)


def test_amid_a_change_nobody_knows_what_a_client_asks_for() -> None:
    known = told(C0)
    known.changes(replace(C0, expression="B"), is_done=False)
    assert is_torn(known)
    assert known.asked_by("c0", "T0") is None

    known.changes(replace(C0, expression="B"), is_done=True)
    assert not is_torn(known)
    assert known.asked_by("c0", "T0") == ("B", "TAG")


@pytest.mark.parametrize("filters", [True, False])
def test_a_broker_without_filters_owes_nothing_to_who_asks_by_them(
    filters: bool,
) -> None:
    assert is_torn(told(SQL), filters=filters) is not filters


def test_of_two_filters_one_may_look_older_once_the_clock_was_set_back() -> None:
    known = told(SQL)
    known.clock_was_set_back()
    assert not is_torn(known)  # of one there is no older

    known.changes(replace(SQL, expression="a = 99"), is_done=True)
    assert not is_torn(known)
    known.clock_was_set_back()
    assert is_torn(known)
    known.broker_began()  # which has kept them
    assert is_torn(known)


def test_another_filter_through_another_client_may_be_older() -> None:
    known = told(SQL)
    known.ended("c0", is_gone=False)
    known.began(replace(SQL, client="c1", expression="a = 99"))
    assert is_torn(known)


def test_a_client_asks_for_its_topics_and_all_that_is_tried_again() -> None:
    known = told(C0)

    assert known.asked_by("c0", "T1") == ("A", "TAG")
    assert known.asked_by("c0", "T2") is None
    assert known.asked_by("c1", "T1") is None
    assert known.asked_by("c1", "%RETRY%g") == EVERYTHING


@pytest.mark.parametrize(
    ("asked", "is_wanted"),
    [
        (EVERYTHING, True),
        (("A", "TAG"), True),
        (("B || A", "TAG"), True),
        (("B", "TAG"), False),
        (("a > 5", "SQL92"), True),
        (("a > 7", "SQL92"), False),
        (("c IS NOT NULL", "SQL92"), False),
        (("a b c", "SQL92"), False),  # it cannot be read
        (None, False),
    ],
)
def test_what_is_asked_for(asked: Asked | None, is_wanted: bool) -> None:
    assert wants(asked, "A", {"a": "6"}) is is_wanted


def test_a_record_that_cannot_be_read_is_wanted_by_who_wants_all() -> None:
    assert wants_record(EVERYTHING, b"?")
    assert not wants_record(("A", "TAG"), b"?")


def tagged(queue_offset: int, tags: str) -> Appended:
    put = message_for(PutMessage("T0", 0, 1, tags=tags), queue_offset, 0, 0)
    return Appended(put, 100 * queue_offset, 100, queue_offset)


def test_a_pull_may_pass_over_what_lies_in_it_and_was_not_asked_for() -> None:
    passing = Passing(2, 4, ("A", "TAG"), None)

    excused = [passing.excuses(tagged(offset, "B")) for offset in range(1, 5)]
    assert excused == [False, True, True, False]
    assert not passing.excuses(tagged(2, "A"))


def test_of_a_torn_group_only_what_was_brought_is_owed() -> None:
    brought, other = tagged(2, "A"), tagged(3, "A")
    keys = frozenset({brought.message.unique_key})
    passing = Passing(2, 4, ("A", "TAG"), keys)

    assert not passing.excuses(brought)
    assert passing.excuses(other)
