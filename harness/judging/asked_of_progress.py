"""When the laws of consumer offsets, and of answers to an administrator, are asked."""

from __future__ import annotations

from crashmq.harness.judging.asking import Breaches, asked
from crashmq.models.knowledge.facts import Fact
from crashmq.models.knowledge.moments import (
    CommitAnswered,
    LowestAnswered,
    NamesAnswered,
    NumberAnswered,
    OffsetAnswered,
    OffsetCommitted,
    OffsetsFound,
    OffsetsPersisted,
    OffsetsRecovered,
    QueueBegun,
    ResetAnswered,
    TimeFound,
)
from crashmq.models.laws.progress import (
    a_copy_is_whole,
    a_reset_holds,
    answers_what_was_committed,
    begins_at_the_groups_offset,
    commits_never_go_back,
    lowest_offsets_are_answered,
    no_commit_passes_the_end,
    no_group_is_past_its_queue,
    persist_writes_all,
    resets_go_where_they_are_told,
    start_finds_what_was_kept,
    start_loads_the_file,
)
from crashmq.models.laws.questions import (
    answers_where_a_group_pulls,
    finds_the_first_since,
    knows_its_groups,
    knows_who_has_a_lock,
    names_those_who_subscribe,
    names_those_with_offsets,
    tells_what_is_configured,
)

SURE_QUEUE = (Fact.WRITTEN_STAYS, Fact.QUEUE_IS_SETTLED, Fact.UNDAMAGED_LOG)
SURE_ENDS = (Fact.ANSWERS_ALL, Fact.QUEUE_IS_SETTLED, Fact.UNDAMAGED_LOG)


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


def _knows_beginnings(at: QueueBegun) -> bool:
    return at.begins is not None


@asked(
    begins_at_the_groups_offset,
    on=QueueBegun,
    needs=SURE_QUEUE,
    where=_knows_beginnings,
)
def _ask_ofs_8(at: QueueBegun) -> Breaches:
    begins = at.begins or frozenset()
    return begins_at_the_groups_offset.judge(at.key, at.begun, at.possible, begins)


@asked(no_commit_passes_the_end, on=CommitAnswered, needs=SURE_ENDS)
def _ask_ofs_10(at: CommitAnswered) -> Breaches:
    judge = no_commit_passes_the_end.judge
    return judge(at.key, at.told, at.end, accepted=at.accepted)


@asked(resets_go_where_they_are_told, on=ResetAnswered, needs=SURE_QUEUE)
def _ask_ofs_11(at: ResetAnswered) -> Breaches:
    return resets_go_where_they_are_told.judge(at.key, at.offset, at.targets)


@asked(lowest_offsets_are_answered, on=LowestAnswered, needs=SURE_QUEUE)
def _ask_ofs_12(at: LowestAnswered) -> Breaches:
    return lowest_offsets_are_answered.judge(at.topic, at.rows, at.possible)


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
    one, files = at.recovered, at.look.files()
    return no_group_is_past_its_queue.judge(one.rows, files, at.ends, one.files)


@asked(start_loads_the_file, on=OffsetsRecovered, needs=(Fact.ALONE,))
def _ask_ofs_6(at: OffsetsRecovered) -> Breaches:
    one = at.recovered
    return start_loads_the_file.judge(one.files, one.rows, at.ends)


@asked(start_finds_what_was_kept, on=OffsetsRecovered, needs=(Fact.OFFSETS_STAY,))
def _ask_ofs_4(at: OffsetsRecovered) -> Breaches:
    one = at.recovered
    return start_finds_what_was_kept.judge(one.rows, one.kept, at.ends)


@asked(
    names_those_with_offsets,
    on=NamesAnswered,
    where=lambda at: at.ask.question in ("topics_of_group", "groups_of_topic"),
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
    tells_what_is_configured,
    on=NamesAnswered,
    where=lambda at: at.ask.question in ("topic_config", "group_config"),
)
def _ask_adm_7(at: NamesAnswered) -> Breaches:
    return tells_what_is_configured.judge(at.ask, at.names, at.must)


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
