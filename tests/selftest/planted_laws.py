"""Edits of the laws: some made weaker by hand, and each of them made to say nothing."""

from __future__ import annotations

import ast
import inspect
import sys
from functools import cache

from harness_mutant import HarnessMutant, mutants_of

from crashmq.harness.mutants.mutation import Edit
from crashmq.models.laws.registry import declared_laws

_WEAKER = (
    (
        "L01",
        *("commit_log", "_lost_in_a_crash"),
        *("mark.durable_offset > log.stop.phy_offset", "False"),
    ),
    (
        "L02",
        *("commit_log", "_lost_in_a_crash"),
        *("elif newest < flushed_ms and log.breaks", "elif False"),
    ),
    (
        "L03",
        *("consume_queue", "_disagreement"),
        *("record.queue_offset != unit.queue_offset", "False"),
    ),
    ("L04", "consume_queue", "_disagreement", "record.size != unit.size", "False"),
    (
        "L05",
        *("consume_queue", "missing_units"),
        *("if exact and image.suspect_queues:", "if False:"),
    ),
    (
        "L06",
        *("checkpoint", "durable_mark_is_in_the_log"),
        *("mark.durable_offset > stop.phy_offset", "False"),
    ),
    (
        "L07",
        *("checkpoint", "_RISING"),
        *('"physic_msg_timestamp", ', ""),
    ),
    (
        "L08",
        *("checkpoint", "marks_never_move_backwards"),
        *('"sequence", "durable_offset", ', '"sequence", '),
    ),
    ("L09", "checkpoint", "checkpoint_is_up_to_date", "durable != end", "False"),
    (
        "L10",
        *("index", "_wrong_links"),
        *("if entry.previous != link:", "if False:"),
    ),
    ("L11", "index", "_wrong_links", "if said != newest:", "if False:"),
    (
        "L12",
        *("index", "ended_files_are_whole"),
        *("yield from _wrong_links(path, file)", "pass"),
    ),
    (
        "L13",
        *("marks", "marks_lie_in_the_log"),
        *("if not low <= now.flushed_where <= high:", "if False:"),
    ),
    ("L14", "marks", "_RISING", '"flushed_where",', ""),
    (
        "L15",
        *("marks", "round_flushes_what_is_enough"),
        *("is_full = end == base + size", "is_full = False"),
    ),
    (
        "L16",
        *("putting", "put_takes_the_next_place"),
        *("elif place not in (-1, answer.phy_offset):", "elif False:"),
    ),
    (
        "L17",
        *("putting", "put_takes_the_next_place"),
        *("elif answer.size != size:", "elif False:"),
    ),
    (
        "L18",
        *("putting", "batch_is_put_as_one"),
        *("if answer.message_ids != ids:", "if False:"),
    ),
    (
        "L19",
        *("recovery", "recovered_log_reaches_the_floor"),
        *("if appended.end <= floor:", "if appended.end < floor:"),
    ),
    (
        "L20",
        *("recovery", "refuses_only_damage"),
        *("if reason and not refusal:", "if False:"),
    ),
    (
        "L21",
        *("recovery", "refuses_only_damage"),
        *("if refusal and not (reason or may_refuse):", "if False:"),
    ),
    (
        "L22",
        *("recovery", "reason_to_refuse"),
        *("if changed := changed_files(extended):", "if changed := []:"),
    ),
    (
        "L23",
        *("recovery", "services_have_caught_up"),
        *('("flushed_where", "reput_from_offset")', '("flushed_where",)'),
    ),
    (
        "L24",
        *("reading", "pull_is_answered_right"),
        *("if pulled.next_begin_offset != next_begin:", "if False:"),
    ),
    ("L25", "reading", "TRANSFER_COUNT_MAX", "32", "33"),
    (
        "L26",
        *("reading", "_fitting"),
        *("file_units - start % file_units", "file_units"),
    ),
    (
        "L27",
        *("reading", "told_times_are_right"),
        *("if searched.earliest not in (earliest, -2):", "if False:"),
    ),
    (
        "L28",
        *("querying", "queried_messages_are_right"),
        *("if after.phy_offset <= before.phy_offset:", "if False:"),
    ),
    (
        "L29",
        *("deletion", "only_what_has_expired_goes"),
        *("if young:", "if False:"),
    ),
    (
        "L30",
        *("topic_deletion", "deletion_ends_where_the_log_did"),
        *("elif not lowest <= dead_below <= highest:", "elif False:"),
    ),
    (
        "L31",
        *("statistics", "statistics_count_what_was_put"),
        *("if sum(seen.put_times) != puts:", "if False:"),
    ),
    (
        "L32",
        *("around", "keeps_what_is_whole"),
        *("if is_to_list and not is_listed:", "if False:"),
    ),
    (
        "L33",
        *("around", "pull_goes_around"),
        *("if number < end and is_asked_for and number not in seen:", "if False:"),
    ),
    (
        "L34",
        *("registry", "Law.hold"),
        *("raise LawUnknown(self.id, error) from error", "return"),
    ),
    (
        "L35",
        *("run", "nothing_unnamed_is_raised"),
        *('failed.error == "OSError" and ', ""),
    ),
)


@cache
def first_lines(module: str) -> dict[str, str]:
    """The first line of each function of a module that is loaded."""
    text = inspect.getsource(sys.modules[module])
    lines = text.splitlines()
    named = [n for n in ast.parse(text).body if isinstance(n, ast.FunctionDef)]
    return {n.name: lines[n.body[0].lineno - 1].strip() for n in named}


def silenced(law: str) -> HarnessMutant:
    """The law that finds nothing: it returns before its first word."""
    judge = declared_laws()[law].judge
    opening = first_lines(judge.__module__)[judge.__name__]
    edit = Edit(judge.__module__, judge.__name__, opening, f"return\n    {opening}")
    return HarnessMutant(f"silent-{law}", "laws", edit)


SILENCED = [silenced(law) for law in declared_laws()]
LAWS = [*mutants_of("laws", "crashmq.models.laws", _WEAKER), *SILENCED]
