"""The matrix of answers: which laws bound each field of an answer, in each situation.

A cell lists the laws that bound a field from below, from above, or both; if no law
bounds it from both sides, the reason why none can. The fields come from the classes of
answers. The laws come from the declarations of ``asking``: at which moments a law is
asked, and which facts it needs. This module states which field a law bounds, which
facts do not hold in a situation, and which moments occur in it. These statements are
checked too: a test makes a store falsify each field in each situation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

import crashmq.harness.judging.judge  # noqa: F401  it gathers all that is asked
from crashmq.harness.judging.asking import questions
from crashmq.models.history import Answer
from crashmq.models.knowledge.facts import Fact
from crashmq.models.knowledge.moments import (
    FilteredPullBounded,
    FilteredPullOver,
    FilterMissed,
    LookBeside,
    LookOver,
    Moment,
    PullAround,
    PullBeside,
    PullOver,
    PullSeenBefore,
    QueryAround,
    QueryBeside,
    QueryOver,
    SearchAround,
    SearchBeside,
    SearchOver,
)
from crashmq.models.knowledge.moments_of_pulls import PullAnswered
from crashmq.models.observations import BrokerPulled, FilteredPull, Pulled

Kind: TypeAlias = type[Moment]
Side = Literal["both", "least", "most"]
"""From which side a law bounds a field; ``most``: what is there is right, though
something may be missing."""

_PULL: Final = tuple([one.name for one in fields(Pulled)])


def _every(answer: str, names: tuple[str, ...], side: Side = "both") -> dict[str, Side]:
    return {f"{answer}.{name}": side for name in names}


BOUNDS: Final[Mapping[tuple[str, Kind], Mapping[str, Side]]] = {
    ("RD-1", PullOver): {"Pulled.messages": "most"},
    ("RD-2", PullOver): _every("Pulled", _PULL),
    ("RD-5", PullBeside): _every("Pulled", _PULL),
    ("RD-13", PullSeenBefore): {
        "Pulled.min_offset": "least",
        "Pulled.max_offset": "least",
    },
    ("RD-6", PullAround): _every("Pulled", ("status", "next_begin_offset", "messages")),
    ("RD-3", LookOver): {"Looked.message": "both"},
    ("RD-11", LookBeside): {"Looked.message": "both"},
    ("RD-4", SearchOver): {"Searched.queue_offset": "both"},
    ("RD-8", SearchOver): _every("Searched", ("stored_at", "earliest")),
    ("RD-12", SearchBeside): _every(
        "Searched", ("queue_offset", "stored_at", "earliest")
    ),
    ("RD-10", SearchAround): _every(
        "Searched", ("queue_offset", "stored_at", "earliest")
    ),
    ("IX-1", QueryOver): {"Queried.messages": "most"},
    ("IX-2", QueryOver): {"Queried.messages": "both"},
    ("IX-1", QueryBeside): {"Queried.messages": "most"},
    ("IX-11", QueryBeside): {"Queried.messages": "least"},
    ("IX-12", QueryBeside): {"Queried.messages": "most"},
    ("IX-10", QueryAround): {"Queried.messages": "both"},
    ("FLT-1", FilteredPullOver): {"FilteredPull.messages": "most"},
    ("FLT-2", FilteredPullOver): {"FilteredPull.messages": "least"},
    ("FLT-3", FilteredPullOver): _every(
        "FilteredPull", ("status", "next_begin_offset")
    ),
    ("FLT-4", FilteredPullOver): _every(
        "FilteredPull", ("expression", "expression_type")
    ),
    ("FLT-4", FilterMissed): {"NotFiltered": "both"},
    ("RD-14", FilteredPullBounded): _every(
        "FilteredPull", ("status", "next_begin_offset", "min_offset", "max_offset")
    ),
    ("RD-1", PullAnswered): {"BrokerPulled.messages": "most"},
    ("RD-2", PullAnswered): _every(
        "BrokerPulled", ("next_begin_offset", "min_offset", "max_offset", "messages")
    ),
    ("LP-4", PullAnswered): {"BrokerPulled.code": "least"},
    ("LP-7", PullAnswered): {"BrokerPulled.code": "both"},
    ("LP-8", PullAnswered): {"BrokerPulled.next_begin_offset": "both"},
    ("LP-9", PullAnswered): {"BrokerPulled.code": "most"},
}
"""Which fields a law bounds where it is asked at a kind of moment."""

WEAKER: Final[Mapping[tuple[str, str, str], Side]] = {
    ("RD-12", "Searched.queue_offset", "amid deletion"): "most",
}
"""Where a law bounds a field less than elsewhere: the law, the field, the situation."""

_CALM: Final = frozenset({LookOver, PullOver, QueryOver, SearchOver})
_AROUND: Final = frozenset({LookOver, PullAround, QueryAround, SearchAround})
_BESIDE: Final = frozenset(
    {LookBeside, PullBeside, PullSeenBefore, QueryBeside, SearchBeside}
)
_OF_GROUPS: Final = frozenset(
    {FilteredPullOver, FilteredPullBounded, FilterMissed, PullAnswered}
)


@dataclass(frozen=True, slots=True)
class Situation:
    """A kind of circumstances in which an answer comes: a column of the matrix.

    Attributes:
        name: the name of the column.
        lacks: the facts that do not hold then.
        comes: the moments at which answers are judged then.
    """

    name: str
    lacks: frozenset[Fact]
    comes: frozenset[Kind]


_ALONE: Final = frozenset({Fact.ALONE})
_WORKED: Final = frozenset({Fact.DISK_WORKED, Fact.LOG_WORKED, Fact.QUEUES_WORKED})
SITUATIONS: Final = (
    Situation("calm", frozenset(), _CALM | _OF_GROUPS),
    Situation("beside others", _ALONE, _CALM | _BESIDE | _OF_GROUPS),
    Situation(
        "amid a stop", _ALONE | {Fact.NOT_STOPPING}, _CALM | _BESIDE | _OF_GROUPS
    ),
    Situation(
        "amid deletion",
        _ALONE | {Fact.TOPIC_STAYS, Fact.QUEUE_IS_SETTLED},
        _CALM | _BESIDE | _OF_GROUPS,
    ),
    Situation("before a crash", _ALONE | {Fact.LIVES}, _BESIDE | {FilteredPullBounded}),
    Situation("around damage", frozenset({Fact.UNDAMAGED_LOG}), _AROUND),
    Situation("after a fault", _WORKED, _CALM | _OF_GROUPS),
)

_ONE_MOMENT = (
    "the topic is gone or new at some point: any bounds of both lives are right"
)
_LATER = (
    "it may have been asked in an earlier op and read at any time since; the broker "
    "does not report when"
)
_DAMAGED = "units of damaged messages cannot be told from damaged units of others"
_FILTERED: Final = (*_PULL, "expression", "expression_type")
_BROKER: Final = tuple([one.name for one in fields(BrokerPulled)])
_GONE = "which messages match, only the queue of one moment says; RD-14 bounds the rest"
_UNANSWERED = "a put that got no answer may be among them"

_ONE_BY_ONE = "it asks of each match by itself whether its topic is deleted by then"
_COMPARING = "the queue's files go while times are compared: any offset that it had"
_NOT_TOLD = "the crash takes the clients' subscriptions; the next start shows it"
_SUBSCRIBED = "a group may subscribe, or go, at any moment meanwhile"
_HALF_READ = (
    "what a failed call has left half done, a pull that was held may have read before; "
    "RD-1 and LP-3 judge that it gets what is there"
)
_NOT_AROUND = "no scenario serves groups around damage; RD-6 judges the store below"
_CRASHED = "held pulls of a crashed broker are gone; what it answered before is LP-1's"

REASONS: Final[Mapping[tuple[str, str], str]] = {
    ("Pulled.min_offset", "around damage"): _DAMAGED,
    ("Pulled.max_offset", "around damage"): _DAMAGED,
    **{(f"FilteredPull.{name}", "around damage"): _NOT_AROUND for name in _FILTERED},
    ("NotFiltered", "around damage"): _NOT_AROUND,
    **{(f"BrokerPulled.{name}", "around damage"): _NOT_AROUND for name in _BROKER},
    ("Queried.messages", "amid deletion"): _ONE_BY_ONE,
    ("Searched.queue_offset", "amid deletion"): _COMPARING,
    ("FilteredPull.messages", "amid deletion"): _GONE,
    ("FilteredPull.messages", "before a crash"): _UNANSWERED,
    ("FilteredPull.expression", "before a crash"): _NOT_TOLD,
    ("FilteredPull.expression_type", "before a crash"): _NOT_TOLD,
    ("NotFiltered", "before a crash"): _NOT_TOLD,
    ("NotFiltered", "beside others"): _SUBSCRIBED,
    ("NotFiltered", "amid a stop"): _SUBSCRIBED,
    ("NotFiltered", "amid deletion"): _SUBSCRIBED,
    **{
        (f"BrokerPulled.{name}", situation): _LATER
        for situation in ("beside others", "amid a stop", "amid deletion")
        for name in ("min_offset", "max_offset", "messages")
    },
    **{(f"BrokerPulled.{name}", "before a crash"): _CRASHED for name in _BROKER},
    **{
        (f"BrokerPulled.{name}", "after a fault"): _HALF_READ
        for name in ("min_offset", "max_offset", "messages")
    },
}
"""Why no law bounds a field from both sides, where none does."""


class Cell(NamedTuple):
    """One field of an answer in one situation: which laws bound it, or why none can."""

    field: str
    situation: str
    laws: tuple[tuple[str, Side], ...]
    reason: str

    @property
    def is_bounded(self) -> bool:
        """Whether the laws bound it from both sides."""
        sides = {side for _, side in self.laws}
        return "both" in sides or {"least", "most"} <= sides

    @property
    def text(self) -> str:
        """The cell's text in the matrix."""
        told = [law if side == "both" else f"{law} ({side})" for law, side in self.laws]
        if self.reason:
            told.append(f"- {self.reason}")
        return ", ".join(told) or "EMPTY"


def fields_of_answers() -> Iterator[str]:
    """Each field of each answer, as ``Pulled.status``; a bare name has no field."""
    for answer in (*get_args(Answer), BrokerPulled):
        names = [one.name for one in fields(answer)]
        if answer is FilteredPull:
            names = [*_PULL, *[name for name in names if name != "pulled"]]
        yield from [f"{answer.__name__}.{name}" for name in names]
        if not names:
            yield answer.__name__


def cells() -> Iterator[Cell]:
    """Every cell, by field and situation."""
    for name in fields_of_answers():
        for situation in SITUATIONS:
            laws = tuple(_laws_of(name, situation))
            reason = REASONS.get((name, situation.name), "")
            yield Cell(name, situation.name, laws, reason)


def _laws_of(name: str, situation: Situation) -> Iterator[tuple[str, Side]]:
    """The laws that bound the field there: all facts they need can hold."""
    for (law, kind), bounded in BOUNDS.items():
        if name not in bounded or kind not in situation.comes:
            continue
        asked = [each for each in questions()[kind] if law in _ids(each.laws)]
        assert asked, f"{law} is not asked at {kind.__name__}"
        if any(not situation.lacks & {*each.needs} for each in asked):
            yield law, WEAKER.get((law, name, situation.name), bounded[name])


def _ids(laws: tuple[object, ...]) -> set[str]:
    return {law.id for law in laws}  # type: ignore[attr-defined]


def rows() -> dict[str, str]:
    """Each field of an answer in each situation, with the laws that bound it."""
    return {f"{one.field} {one.situation}": one.text for one in cells()}
