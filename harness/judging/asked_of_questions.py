"""When the laws of a broker's answers to an administrator are asked."""

from __future__ import annotations

from crashmq.harness.judging.asked_of_progress import SURE_QUEUE
from crashmq.harness.judging.asking import Breaches, asked
from crashmq.models.knowledge.moments import NamesAnswered, NumberAnswered, TimeFound
from crashmq.models.laws.questions import (
    answers_where_a_group_pulls,
    finds_the_first_since,
    knows_its_groups,
    knows_who_has_a_lock,
    names_those_who_subscribe,
    names_those_with_offsets,
)


@asked(
    names_those_with_offsets,
    on=NamesAnswered,
    where=lambda at: at.ask.question != "subscribers",
)
def _ask_adm_1(at: NamesAnswered) -> Breaches:
    return names_those_with_offsets.judge(at.ask, at.names, at.must, at.may)


@asked(
    names_those_who_subscribe,
    on=NamesAnswered,
    where=lambda at: at.ask.question == "subscribers",
)
def _ask_adm_2(at: NamesAnswered) -> Breaches:
    return names_those_who_subscribe.judge(at.ask, at.names, at.must, at.may)


@asked(
    answers_where_a_group_pulls,
    on=NumberAnswered,
    where=lambda at: at.ask.question == "pull_offset",
)
def _ask_adm_3(at: NumberAnswered) -> Breaches:
    return answers_where_a_group_pulls.judge(at.ask, at.number, at.possible)


@asked(finds_the_first_since, on=TimeFound, needs=SURE_QUEUE)
def _ask_adm_4(at: TimeFound) -> Breaches:
    return finds_the_first_since.judge(at.key, at.number, at.first)


@asked(
    knows_its_groups,
    on=NumberAnswered,
    where=lambda at: at.ask.question == "group",
)
def _ask_adm_5(at: NumberAnswered) -> Breaches:
    return knows_its_groups.judge(at.ask, at.number, at.possible)


@asked(
    knows_who_has_a_lock,
    on=NumberAnswered,
    where=lambda at: at.ask.question == "lock",
)
def _ask_adm_6(at: NumberAnswered) -> Breaches:
    return knows_who_has_a_lock.judge(at.ask, at.number, at.possible)
