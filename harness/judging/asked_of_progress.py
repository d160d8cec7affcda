"""What is asked of how far groups of consumers have come."""

from __future__ import annotations

from crashmq.harness.judging.asking import Breaches, asked
from crashmq.models.knowledge.facts import Fact
from crashmq.models.knowledge.moments import (
    OffsetAnswered,
    OffsetCommitted,
    OffsetsFound,
    OffsetsPersisted,
    OffsetsRecovered,
    QueueBegun,
)
from crashmq.models.laws.progress import (
    a_copy_is_whole,
    a_reset_holds,
    answers_what_was_committed,
    begins_at_the_groups_offset,
    commits_never_go_back,
    no_group_is_past_its_queue,
    persist_writes_all,
    start_finds_what_was_kept,
    start_loads_the_file,
)


def _is_settled(at: OffsetAnswered) -> bool:
    return not at.pending


def _is_pending(at: OffsetAnswered) -> bool:
    return at.pending


@asked(answers_what_was_committed, on=OffsetAnswered, where=_is_settled)
def _ask_ofs_1(at: OffsetAnswered) -> Breaches:
    return answers_what_was_committed.judge(at.key, at.offset, at.possible)


@asked(a_reset_holds, on=OffsetAnswered, where=_is_pending)
def _ask_ofs_3(at: OffsetAnswered) -> Breaches:
    return a_reset_holds.judge(at.key, at.offset, at.possible)


@asked(commits_never_go_back, on=OffsetCommitted)
def _ask_ofs_2(at: OffsetCommitted) -> Breaches:
    return commits_never_go_back.judge(at.key, at.told, at.asked, at.before)


@asked(begins_at_the_groups_offset, on=QueueBegun)
def _ask_ofs_8(at: QueueBegun) -> Breaches:
    return begins_at_the_groups_offset.judge(at.key, at.begun, at.possible, at.end)


@asked(persist_writes_all, on=OffsetsPersisted)
def _ask_ofs_7(at: OffsetsPersisted) -> Breaches:
    return persist_writes_all.judge(at.files, at.known.progress)


def _was_persisted(at: OffsetsFound) -> bool:
    return at.known.progress.is_persisted


@asked(
    a_copy_is_whole,
    on=OffsetsFound,
    needs=(Fact.OFFSETS_STAY,),
    where=_was_persisted,
)
def _ask_ofs_5(at: OffsetsFound) -> Breaches:
    return a_copy_is_whole.judge(at.files)


@asked(no_group_is_past_its_queue, on=OffsetsRecovered, needs=(Fact.ALONE,))
def _ask_ofs_9(at: OffsetsRecovered) -> Breaches:
    rows, files = at.recovered.rows, at.look.files()
    return no_group_is_past_its_queue.judge(rows, files, at.ends)


@asked(start_loads_the_file, on=OffsetsRecovered, needs=(Fact.ALONE,))
def _ask_ofs_6(at: OffsetsRecovered) -> Breaches:
    one = at.recovered
    return start_loads_the_file.judge(one.files, one.rows, at.ends)


@asked(start_finds_what_was_kept, on=OffsetsRecovered, needs=(Fact.OFFSETS_STAY,))
def _ask_ofs_4(at: OffsetsRecovered) -> Breaches:
    one = at.recovered
    return start_finds_what_was_kept.judge(one.rows, one.kept, at.ends)
