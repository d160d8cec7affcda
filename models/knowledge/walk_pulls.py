"""The walk through pulls that a broker answers at once, or holds and answers later.

It follows the events of a step in order, once all writes of the step are known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from crashmq.models.appended import Appended
from crashmq.models.history import (
    BrokerPullAnswered,
    BrokerPullAsked,
    BrokerPullHeld,
    LifeEnded,
    RoundsEnded,
    StopEnded,
)
from crashmq.models.knowledge.moments import At, FilteredPullOver, Moment
from crashmq.models.knowledge.moments_of_pulls import (
    PullAnswered,
    PullAsleep,
    PullKept,
    PullsLeft,
    PullsLookedAt,
)
from crashmq.models.knowledge.pulls import OpenPull, Pulls
from crashmq.models.knowledge.reference import VisibleQueue
from crashmq.models.knowledge.topics import Topics
from crashmq.models.knowledge.walk_reads import behind_gaps
from crashmq.models.knowledge.walk_topics import (
    walk_changed_topics,
    walk_changes,
    walk_config_files,
)
from crashmq.models.observations import (
    BrokerPulled,
    FilteredPull,
    Ran,
    Stopped,
)
from crashmq.models.ops import PullFiltered, PullThroughBroker, RunService

_OF_PULLS = frozenset(
    {
        *(BrokerPullAsked, BrokerPullHeld, BrokerPullAnswered),
        *(LifeEnded, StopEnded, RoundsEnded),
    }
)
_OF_PULLS_OR_TOPICS = _OF_PULLS | Topics.SEES


def walk_pulls(at: At) -> Iterator[Moment]:
    """Update the known held pulls by a step's events; yield the moments."""
    step, pulls = at.step, at.known.progress.pulls
    begun: set[int] = set()
    topics = at.known.progress.topics
    yield from walk_config_files(at)
    is_told = not step.kinds.isdisjoint(_OF_PULLS_OR_TOPICS)
    for entry in step.entries if is_told else ():
        if type(entry.event) in topics.SEES:
            topics.saw(entry.event, step, at.known.promises)
        if type(entry.event) not in _OF_PULLS:
            continue
        match entry.event:
            case BrokerPullAsked(number, op):
                begun.add(number)
                pulls.open[number] = OpenPull(op, entry.at_ms - step.set_back_ms)
            case BrokerPullHeld(number, op):
                if number in pulls.open:
                    held_ms = entry.at_ms + step.set_back_ms
                    pulls.open[number] = replace(pulls.open[number], held_ms=held_ms)
                    if step.is_alone:
                        reset_to = pulls.resets.get(number)
                        yield PullKept(*at, op, _visible(at, op), reset_to)
            case BrokerPullAnswered(number, op, answer):
                is_woken = number not in begun
                yield PullAnswered(
                    *at,
                    op,
                    answer,
                    pulls.open.pop(number, None),
                    is_woken,
                    entry.at_ms + step.set_back_ms,
                    pulls.resets.get(number),
                )
                if not (is_woken or number in pulls.resets):
                    yield from _filtered(at, op, answer)
            case LifeEnded():
                pulls.open.clear()
            case StopEnded(seen=Stopped()):
                yield from _left(at, pulls)
            case RoundsEnded(service="pull_request_hold", seen=Ran()) if step.is_alone:
                yield from _looked_at(at, pulls, entry.at_ms)
            case _:
                pass
    yield from walk_changes(at)
    yield from walk_changed_topics(at)
    pulls.resets.clear()
    if step.crash is not None:
        return
    if at.now.max_phy_offset < 0:
        yield from _left(at, pulls)
        return
    for number in sorted(begun & pulls.open.keys()):
        if pulls.open[number].held_ms is None:
            del pulls.open[number]  # the call raised, which is judged as that
    for pull in pulls.held:
        yield PullAsleep(*at, pull, _behind(at, pull.op))


def _filtered(
    at: At, pull: PullThroughBroker, answer: BrokerPulled
) -> Iterator[FilteredPullOver]:
    """Yield the moment of an answer that was filtered by more than tags.

    It was by the pull's own expression, or by the group's for the topics of retries.
    """
    is_read = answer.code in ("SUCCESS", "PULL_RETRY_IMMEDIATELY")
    asks_retries = at.known.setup.filters_retries_of(pull.topic)
    by_tags_alone = pull.expression_type == "TAG" and not asks_retries
    if by_tags_alone or not is_read or at.known.is_degraded:
        return
    key = pull.topic, pull.queue_id
    asked = PullFiltered(pull.group, *key, pull.queue_offset, pull.max_msg_nums)
    queue = behind_gaps(at.known.model.queues.get(key, []))
    told = FilteredPull(answer.as_pulled, pull.tags, pull.expression_type)
    yield FilteredPullOver(*at, asked, told, queue, None)


def _looked_at(at: At, pulls: Pulls, at_ms: int) -> Iterator[Moment]:
    """Yield the moment at which rounds that the op itself ran end."""
    done = at.step.op
    if isinstance(done, RunService) and done.times > 0:
        held = [(pull, _visible(at, pull.op)) for pull in pulls.held]
        yield PullsLookedAt(*at, held, at_ms)


def _left(at: At, pulls: Pulls) -> Iterator[Moment]:
    left = [*pulls.open.values()]
    pulls.open.clear()
    yield PullsLeft(*at, left)


def _visible(at: At, pull: PullThroughBroker) -> VisibleQueue:
    return at.known.model.visible((pull.topic, pull.queue_id))


def _behind(at: At, pull: PullThroughBroker) -> list[Appended]:
    messages = _visible(at, pull).messages
    return [one for one in messages if one.queue_offset >= pull.queue_offset]
