"""Judges by number: those that know the same, and no others, have the same one."""

from __future__ import annotations

from crashmq.harness.explore.judges import Judges
from crashmq.harness.explore.state_key import StateKeys
from crashmq.harness.judging.judge import Judge
from crashmq.harness.subjects.python_store import PythonStore
from crashmq.models.knowledge.knowledge import End
from crashmq.models.messages import MessageToPut
from crashmq.models.program import Setup

MESSAGE = MessageToPut("T0", 0, b"body", "", "", "", wait_store_ok=True)
PLACE, ELSEWHERE = "a place", "another"


def judge() -> Judge:
    return Judge(Setup(), PythonStore(Setup()))


def test_judges_that_know_the_same_have_one_number_wherever_they_are() -> None:
    judges, one = Judges(StateKeys()), judge()

    numbers = {
        judges.number(known, place)
        for known in (one, one.fork(PythonStore(Setup())), judge())
        for place in (PLACE, ELSEWHERE)
    }

    assert len(numbers) == 1


def test_a_judge_that_knows_more_has_another_number_at_the_same_place() -> None:
    judges, one, other = Judges(StateKeys()), judge(), judge()
    other.model.in_flight.append(MESSAGE)

    number = judges.number(one, PLACE)

    assert judges.number(other, PLACE) != number
    assert judges.number(judge(), PLACE) == number


def test_a_judge_that_has_learnt_since_has_another_number() -> None:
    judges, one = Judges(StateKeys()), judge()
    number = judges.number(one, PLACE)

    one.model.in_flight.append(MESSAGE)

    assert judges.number(one, PLACE) != number


def test_how_the_last_life_ended_and_what_the_disk_promises_tell_judges_apart() -> None:
    judges, one, ended, doubting = Judges(StateKeys()), judge(), judge(), judge()
    ended.known.end = End.ORDERLY
    doubting.known.promises.errors_come_late = True

    numbers = {judges.number(known, PLACE) for known in (one, ended, doubting)}

    assert len(numbers) == 3


def test_what_a_fork_learns_of_the_disk_its_origin_does_not() -> None:
    one = judge()
    fork = one.fork(PythonStore(Setup()))

    fork.known.promises.reverts = True

    assert not one.known.promises.reverts
