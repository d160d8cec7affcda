"""The walk through subscriptions of groups.

It follows the events of a step in order. If other ops overlapped, a pull may have been
filtered by the subscription before or after.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from crashmq.models.expressions import is_readable
from crashmq.models.files.record import RETRY_PREFIX
from crashmq.models.history import (
    FiltersLoaded,
    LifeEnded,
    StartBegan,
    StopBegan,
    SubscriptionAnswered,
    SubscriptionAsked,
)
from crashmq.models.knowledge.filters import NOTHING, Filters
from crashmq.models.knowledge.moments import At, FiltersRecovered, Moment
from crashmq.models.observations import Done
from crashmq.models.ops import FilterOp, Subscribe, Unsubscribe


def walk_filters(at: At) -> Iterator[Moment]:
    """Update the known filters by a step's events; yield a moment for each check."""
    step, filters = at.step, at.known.progress.filters
    found: Mapping[str, bytes] = {}
    _forget_unsure(at, filters)
    for entry in step.entries:
        filters.latest_ms = max(filters.latest_ms, entry.at_ms)
        match entry.event:
            case SubscriptionAsked(op):
                if isinstance(op, Subscribe):
                    _was_asked(filters, op)
                if not step.is_alone:
                    _asked_beside_others(filters, op)
            case SubscriptionAnswered(asked, seen):
                before_it = step.entries[asked].event
                assert isinstance(before_it, SubscriptionAsked), before_it
                if step.is_alone:
                    _answered(filters, before_it.op, is_taken=isinstance(seen, Done))
            case StopBegan():
                filters.forget_all()
            case LifeEnded():
                filters.ended()
            case StartBegan(found, _):
                filters.ended()
            case FiltersLoaded(rows):
                filters.loaded([group for (group, _), _ in rows])
                for key, (expression, _) in rows:
                    filters.may_have(key, expression)
                yield FiltersRecovered(*at, found, rows)
            case _:
                pass
    _forget_unsure(at, filters)


def _forget_unsure(at: At, filters: Filters) -> None:
    """Forget filters of clients that may have expired, and of running consumers.

    A running consumer sends its subscription to its broker by itself.
    """
    if "client_housekeeping" in at.step.services:
        filters.forget_all()
    for op in at.known.consumption.newest.values():
        filters.forget_group(op.group)
        filters.came(op.group)
        filters.may_have_any(op.group)


def _was_asked(filters: Filters, op: Subscribe) -> None:
    """Record what may be in effect once, whatever becomes of the subscription."""
    if op.topic.startswith(RETRY_PREFIX):
        filters.narrowed.add(op.group)
    if op.expression_type == "SQL92":
        filters.may_have((op.group, op.topic), op.expression)


def _asked_beside_others(filters: Filters, op: FilterOp) -> None:
    """Record that a subscription may be in effect from now on."""
    if isinstance(op, Unsubscribe):
        filters.forget_group(op.group)
        return
    filters.came(op.group)
    filters.groups.add(op.group)
    key = op.group, op.topic
    if op.version:
        filters.asked_of_old(key)
    elif _is_of_use(op):
        asked = op.expression, op.expression_type
        filters.subscribed(key, asked, is_certain=False)
    else:
        filters.forget(key)


def _answered(filters: Filters, op: FilterOp, *, is_taken: bool) -> None:
    if isinstance(op, Unsubscribe):
        filters.forget_group(op.group)
        if is_taken:
            filters.left(op.group)
        return
    filters.came(op.group)
    filters.groups.add(op.group)
    if op.version:
        filters.asked_of_old((op.group, op.topic))
    else:
        key = op.group, op.topic
        filters.forget(key)
        if is_taken:
            told = op.expression, op.expression_type
            asked = told if _is_of_use(op) else NOTHING
            filters.subscribed(key, asked, is_certain=True)


def _is_of_use(op: Subscribe) -> bool:
    """Whether a broker can filter by the expression."""
    return op.expression_type == "TAG" or is_readable(op.expression)
