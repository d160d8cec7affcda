"""Edits of the judge, of what it excuses, and of what the explorer takes for equal."""

from __future__ import annotations

from harness_mutant import mutants_of

_FACTS = (
    ("J01", "_untouched", "not at.known.tampering.damaged", "False"),
    ("J01B", "_untouched", "not at.known.tampering.damaged", "True"),
    ("J07", "_knew_positions", "at.known.positions is not None", "False"),
    ("J17", "_synced_stays", "at.known.promises.keeps_what_is_synced", "False"),
    ("J19", "_end_is_known", "at.known.end is not End.UNKNOWN", "False"),
    (
        *("J28", "_queue_is_settled"),
        *("not is_half_dispatched(at, (read.topic, read.queue_id))", "False"),
    ),
    ("J29", "_alone", "at.step.is_alone", "False"),
    ("J32", "_checkpoint_is_whole", "not at.known.checkpoint_is_torn", "True"),
)

_LISTED = "return is_listed and step.fails_reads"
_KNOWLEDGE = (
    (
        *("J03", "knowledge", "Knowledge.crashed"),
        *('step.crash.kind == "power_loss"', "True"),
    ),
    (
        *("J04", "knowledge", "Knowledge.crashed"),
        *("self.promises.is_broken_by(step.crash.kind)", "True"),
    ),
    ("J05", "walk_start", "walk_start", "if log_was_damaged:", "if False:"),
    (
        *("J06", "walk_start", "_adopt"),
        *("model.floor if model.floor is not None else model.floor_kill", "0"),
    ),
    (
        *("J08", "walk", "_walk_lives"),
        *(
            "_see_nothing_begin_later(at)\n        yield from walk_reads(at)",
            "_see_nothing_begin_later(at)",
        ),
    ),
    ("J08B", "walk", "_walk_step", "yield from walk_debts(at)", "pass"),
    ("J10", "walk", "_walk_puts", "in_flight.append(message)", "pass"),
    ("J11", "walk", "_place_of", "total + FILLER_SIZE_MIN <= left", "total <= left"),
    (
        *("J12", "promises", "Promises.is_broken_by"),
        *("self.has_lied or not self.kind.keeps_promises", "self.has_lied"),
    ),
    (
        *("J13", "promises", "Promises.saw_fault"),
        *('self.reverts or self.kind.sync_failure == "revert"', "self.reverts"),
    ),
    (
        *("J14", "promises", "Promises.saw_fault"),
        *('self.kind.sync_failure == "late"', "False"),
    ),
    (
        *("J15", "promises", "Promises.saw_fault"),
        *("self.hides_a_failed_sync = True", "pass"),
    ),
    (
        *("J16", "promises", "Promises.renewed"),
        *("self.errors_come_late = self.reverts = False", "pass"),
    ),
    (
        *("J18", "tampering", "Tampering.saw"),
        *("takes_abort and not ended_in_order", "False"),
    ),
    ("J21", "walk_start", "_adopt", "if rotten:", "if False:"),
    ("J22", "start_over", "extended", 'log_file_size, b"\\0"', '0, b"\\0"'),
    (
        *("J23", "expiry", "Expiry.is_due"),
        *("is_hour or is_full", "is_full"),
    ),
    (
        *("J24", "expiry", "Expiry._see_cleaner"),
        *("min(percent_before, self.percent) > least", "False"),
    ),
    (
        *("J25", "walk", "_see_cut_short"),
        *('"clean_commit_log" in step.services and', "False and"),
    ),
    (
        *("J26", "expiry", "Expiry.may_go_until"),
        *("None if self._may_force(op, world) else ", ""),
    ),
    ("J27", "matching", "is_indexed", "record.end <= reput", "record.end < reput"),
    ("J30", "walk", "_walk_deletions", "if seen is None:", "if False:"),
    ("J31", "walk_start", "deletions_known", "0 < min(at, log_end) <= log_min", "True"),
    (
        *("J33", "walk_start", "_is_unsure_around"),
        *("degraded.touches(r.phy_offset, r.end)", "False"),
    ),
    *[
        (name, "walk_start", "_is_unsure_around", _LISTED, after)
        for name, after in (
            ("J33B", "return False"),
            ("J33C", "return step.fails_reads"),
            ("J33D", "return is_listed"),
        )
    ],
)

_ASKED_OF_STARTS = (
    ("J02", "is_after_orderly_end", "at.known.end is End.ORDERLY", "False"),
    (
        *("J09", "_starts_on_what_a_start_left"),
        *("at.before is not None and same_store(at.before, at.found.files)", "False"),
    ),
    ("J20", "_refused", "isinstance(at.start, Refused)", "False"),
)

_FOUND_AGAIN = ("judge", "Judge.judge_found_again")
_AGAIN = (
    ("J34", *_FOUND_AGAIN, "self.ask([FilesFound(*at, found)])", "pass"),
    ("J35", *_FOUND_AGAIN, "self.ask([over])", "pass"),
    ("J36", *_FOUND_AGAIN, "StoreUp(*at, found, seen, at.look.image()),", ""),
    (
        *("J37", *_FOUND_AGAIN),
        *("StartLeft(*at, before, found, full, left, ended, takes_over),", ""),
    ),
    ("J38", *_FOUND_AGAIN, "if known.tampering.damaged:", "if False:"),
)

_EXPLORE = (
    (
        "X01",
        *("explorer", "Explorer._explore"),
        *("self._kill(crash_point, kill, cut, disk, depth)", "pass"),
    ),
    (
        "X02",
        "explorer",
        "Explorer._decide",
        "state_key, judged.number,",
        "state_key, 0,",
    ),
    (
        "X03",
        *("explorer", "Explorer._decide"),
        *("state_key, judged.number,", "state_key[1:], judged.number,"),
    ),
    (
        "X04",
        *("recovery", "Recoveries.outcome"),
        *("if known is not None:", "if True:"),
    ),
    (
        "X05",
        "crash_states",
        "CrashStates.all",
        "range(unit.versions)",
        "range(unit.versions - 1)",
    ),
    (
        "X06",
        *("crash_point", "Watcher._look_between"),
        *("self._keep(1, ())", "pass"),
    ),
    (
        "X08",
        *("explorer", "Explorer._note"),
        *("elif depth < self._limits.depth:", "elif False:"),
    ),
    (
        "X09",
        *("state_key", "StateKeys.of"),
        *("(tuple(known_by), inode.mtime_ms, ", "(tuple(known_by), 0, "),
    ),
    ("X10", "explorer", "Explorer._disks", "self._limits.cuts and ", "False and "),
    ("X11", "state_key", "StateKeys.content", "paths[0] in NEVER_READ", "True"),
    (
        "X12",
        *("judges", "Judges.number"),
        *("self._state_keys.number(token(state))", "0"),
    ),
    ("X16", "judges", "Judges.number", "is_alike(known[0], state)", "True"),
    ("X23", "judged_crash", "_are_alike", "and one.entries is other.entries", ""),
    ("X28", "judged_crash", "JudgedCrashes.at", "cut > 0 and ", "False and "),
    ("X24", "judged_crash", "_are_alike", "one.judge is other.judge", "True"),
    (
        "X25",
        "read_log",
        "ReadLog.find",
        "self._roots.get(root)",
        "[*self._roots.values()][0]",
    ),
    (
        "X27",
        *("recovery", "Recoveries._end"),
        *("(left.number, judged.number, found)", "(left.number, 0, found)"),
    ),
    ("X38", "recovery", "Recoveries.outcome", "judged.kind)", '"power_loss")'),
    ("X39", "recovery", "_root", "judged.kind, ", ""),
    ("X29", "recovery", "Recoveries._left", "positions, numbers, state_key", "numbers"),
    (
        "X30",
        *("recovery", "Recoveries.outcome"),
        *("files = left.step.starts[0].found", "pass"),
    ),
    (
        "X31",
        "state_key",
        "StateKeys.content",
        "(known, bad) if bad else known",
        "known",
    ),
    ("X32", "state_key", "StateKeys.frame", "foreign_size, has_bad", "has_bad"),
    ("X17", "judges", "Judges.number", "forked(state), number", "state, number"),
)

_SETTLING = (
    (
        "X18",
        *("settling", "_settled"),
        *("bad=bad_sectors(profile, inode, content)", "bad=inode.bad"),
    ),
    ("X19", "settling", "_settled", "if file.is_certain:", "if False:"),
    ("X33", "read_tracking", "Asked.all", "self._kept.get(number, 0)", "0"),
    ("X34", "read_tracking", "Asked.note", "begin <= start and end <= until", "True"),
    (
        "X26",
        "read_tracking",
        "Read.answer",
        "self.start : self.end",
        "self.start : self.start",
    ),
    ("X35", "read_tracking", "Read.answer_to", "type(error), data", "type(error)"),
    (
        "X36",
        *("read_tracking", "Asked.note"),
        *("of is None or not self._is_as_found(number)", "of is None"),
    ),
    ("X37", "read_tracking", "Read.answer_to", "of(data, *terms)", "of, *terms"),
    ("X20", "settling", "Settling.disk", "contents.items()", "()"),
)

_TOKENS = (
    ("X13", "knowledge", "Knowledge.state", "self.end,", ""),
    ("X14", "knowledge", "Knowledge.state", "self.promises,", ""),
)

_PLAIN_STATE = (
    (
        "X15",
        *("plain_state", "_compared_parts"),
        *("if field.compare", "if not field.compare"),
    ),
    ("X21", "plain_state", "is_alike", "type(one) is not type(other)", "False"),
    ("X07", "history", "Step.cut_short", "OthersMayAct(together=False),", ""),
    ("X22", "plain_state", "_dicts_are_alike", "[*one] == [*other]", "True"),
)

JUDGING = [
    *mutants_of(
        "judging",
        "crashmq.models.knowledge",
        tuple(
            [
                (name, "facts", where, before, after)
                for name, where, before, after in _FACTS
            ]
        ),
    ),
    *mutants_of("judging", "crashmq.models.knowledge", _KNOWLEDGE),
    *mutants_of(
        "judging",
        "crashmq.harness.judging",
        tuple(
            [
                (name, "asked_of_starts", where, before, after)
                for name, where, before, after in _ASKED_OF_STARTS
            ]
        ),
    ),
]
EXPLORE = [
    *mutants_of("explore", "crashmq.harness.explore", _EXPLORE),
    *mutants_of("explore", "crashmq.harness.disk", _SETTLING),
    *mutants_of("explore", "crashmq.models.knowledge", _TOKENS),
    *mutants_of("explore", "crashmq.harness.judging", _AGAIN),
    *mutants_of("explore", "crashmq.models", _PLAIN_STATE),
]
