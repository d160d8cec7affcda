"""When the laws of subscriptions and filtered pulls are asked."""

from __future__ import annotations

from crashmq.harness.judging.asking import Breaches, asked
from crashmq.models.appended import Appended
from crashmq.models.expressions import is_readable
from crashmq.models.files.filters import FilterKey
from crashmq.models.files.record import RETRY_PREFIX
from crashmq.models.knowledge.facts import Fact
from crashmq.models.knowledge.filters import NOTHING
from crashmq.models.knowledge.moments import (
    FilteredPullOver,
    FilterMissed,
    FiltersRecovered,
)
from crashmq.models.knowledge.moments_of_rounds import RoundTurned
from crashmq.models.laws.filtering import (
    RETRY_TOPIC,
    filters_by_the_newest,
    goes_on_behind_what_it_saw,
    passes_over_nothing_asked_for,
    retries_are_asked_for_their_topic,
    returns_what_was_asked_for,
    start_loads_the_filters,
)
from crashmq.models.laws.queue_ext import (
    bit_maps_name_who_asks,
    has_room_for_bit_maps,
)

KNOWN_CONTENT = (Fact.WRITTEN_STAYS, Fact.TOPIC_STAYS, Fact.CONTENT_IS_KNOWN)


def _is_of_retries(at: FilteredPullOver) -> bool:
    return at.pull.topic.startswith(RETRY_PREFIX)


def _was_sent_back(message: Appended) -> bool:
    return RETRY_TOPIC in message.message.properties


def _is_filter_known(at: FilteredPullOver) -> bool:
    """Whether the pull is filtered by its own expression, and can be.

    Of a retry topic a broker filters at most what was sent back, by its first topic.
    """
    answer = at.answer
    if _is_of_retries(at) and not all(map(_was_sent_back, at.queue)):
        return False
    is_valid = answer.expression_type == "TAG" or is_readable(answer.expression)
    return is_valid and not _asks_retries(at)


def _asks_retries(at: FilteredPullOver) -> bool:
    """Whether the filter is that of another topic than the pull's."""
    return at.known.setup.filters_retries_of(at.pull.topic)


def _narrows_retries(at: FilteredPullOver) -> bool:
    """Whether a retry may be passed over by its tags code, or by its bit map.

    A broker looks at both, and not only at what it asks for the first topic, where the
    group wants only some of its retries. A client asks for all of them.
    """
    is_by_tags = at.answer.expression_type == "TAG"
    subscribed = at.known.progress.filters
    may_be_registered = at.pull.group in subscribed.narrowed
    return at.answer.expression != "*" if is_by_tags else may_be_registered


def _there(at: FilteredPullOver) -> list[Appended]:
    """The messages of the queue that a reader must find."""
    model = at.known.model
    gone_below = model.log_min if at.step.is_alone else model.may_expire
    return [one for one in at.queue if one.phy_offset >= gone_below]


@asked(
    returns_what_was_asked_for,
    on=FilteredPullOver,
    needs=KNOWN_CONTENT,
    where=_is_filter_known,
)
def _ask_flt_1(at: FilteredPullOver) -> Breaches:
    return returns_what_was_asked_for.judge(at.pull, at.answer, at.queue)


@asked(
    passes_over_nothing_asked_for,
    on=FilteredPullOver,
    needs=(*KNOWN_CONTENT, Fact.READABLE),
    where=_is_filter_known,
)
def _ask_flt_2(at: FilteredPullOver) -> Breaches:
    return passes_over_nothing_asked_for.judge(at.pull, at.answer, _there(at))


@asked(
    retries_are_asked_for_their_topic,
    on=FilteredPullOver,
    needs=(*KNOWN_CONTENT, Fact.READABLE),
    where=lambda at: _asks_retries(at) and not _narrows_retries(at),
)
def _ask_flt_6(at: FilteredPullOver) -> Breaches:
    subscribed = at.known.progress.filters.registered.items()
    asked_of = {
        topic: one
        for (group, topic), one in subscribed
        if group == at.pull.group and NOTHING not in one
    }
    return retries_are_asked_for_their_topic.judge(
        at.pull, at.answer, _there(at), asked_of
    )


@asked(
    goes_on_behind_what_it_saw,
    on=FilteredPullOver,
    needs=(*KNOWN_CONTENT, Fact.ALONE, Fact.READABLE, Fact.QUEUE_IS_SETTLED),
    where=_is_filter_known,
)
def _ask_flt_3(at: FilteredPullOver) -> Breaches:
    pull, known = at.pull, at.known
    visible = known.model.visible((pull.topic, pull.queue_id))
    stands, units = known.positions, known.setup.queue_file_units
    end = known.model.end if stands is None else stands.max_phy_offset
    memory_from = end - known.setup.in_memory_size
    judge = goes_on_behind_what_it_saw.judge
    return judge(pull, at.answer, visible, units, memory_from)


def _has_possible(at: FilteredPullOver | FilterMissed) -> bool:
    return at.possible is not None


@asked(filters_by_the_newest, on=FilteredPullOver, where=_has_possible)
def _ask_flt_4(at: FilteredPullOver) -> Breaches:
    assert at.possible is not None, at
    by = at.answer.expression, at.answer.expression_type
    return filters_by_the_newest.judge(at.pull, by, at.possible)


@asked(filters_by_the_newest, on=FilterMissed, needs=(Fact.ALONE,), where=_has_possible)
def _ask_flt_4_missed(at: FilterMissed) -> Breaches:
    assert at.possible is not None, at
    return filters_by_the_newest.judge(at.pull, None, at.possible)


@asked(start_loads_the_filters, on=FiltersRecovered, needs=(Fact.ALONE,))
def _ask_flt_5(at: FiltersRecovered) -> Breaches:
    return start_loads_the_filters.judge(at.files, at.rows)


def _asking(at: RoundTurned) -> dict[FilterKey, str]:
    """The expressions that certainly are in effect, but for those of retry topics."""
    found: dict[FilterKey, str] = {}
    for key, told in at.known.progress.filters.now.items():
        if len(told) != 1 or key[1].startswith(RETRY_PREFIX):
            continue
        ((expression, kind),) = told
        if kind == "SQL92" and is_readable(expression):
            found[key] = expression
    return found


def _makes_bit_maps(at: RoundTurned) -> bool:
    setup = at.known.setup
    is_dispatch = at.done.service == "reput" and at.known.rounds.put_from >= 0
    has_maps = setup.filters and setup.has_queue_ext
    return is_dispatch and has_maps and has_room_for_bit_maps(setup.queue_ext_size)


@asked(
    bit_maps_name_who_asks,
    on=RoundTurned,
    needs=(
        *(Fact.ALONE, Fact.DISK_WORKS, Fact.DISK_WORKED, Fact.WRITTEN_STAYS),
        *(Fact.READABLE, Fact.UNTOUCHED, Fact.UNDAMAGED_LOG, Fact.FILTERS),
    ),
    where=lambda at: _makes_bit_maps(at) and bool(_asking(at)),
)
def _ask_cq_12(at: RoundTurned) -> Breaches:
    done = at.done
    first = max(done.before.reput_from_offset, at.known.rounds.put_from)
    between = (first, done.after.reput_from_offset)
    return bit_maps_name_who_asks.judge(at.look.image(), _asking(at), between)
