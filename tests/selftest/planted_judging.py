"""Edits of the judge, of what it excuses, and of what the explorer takes for equal."""

from __future__ import annotations

from harness_mutant import mutants_of

_JUDGING = (
    ("J01", "judge", "Judge._judge_found", "if not self._damaged:", "if False:"),
    (
        "J02",
        "judge",
        "Judge._judge_found",
        "self._end is End.ORDERLY and ",
        "False and ",
    ),
    ("J03", "judge", "Judge._lose_promises", 'if crash == "power_loss":', "if True:"),
    (
        "J04",
        *("judge", "Judge._lose_promises"),
        *("self._promises.is_broken_by(crash)", "True"),
    ),
    (
        "J05",
        *("judge", "Judge._judge_start"),
        *("if is_damaged and isinstance(start, Started):", "if False:"),
    ),
    (
        "J06",
        *("judge", "Judge._adopt"),
        *("model.floor if model.floor is not None else model.floor_kill", "0"),
    ),
    (
        "J07",
        *("judge", "Judge._judge_running"),
        *("was = None if report.starts else self._positions", "was = None"),
    ),
    (
        "J08",
        *("judge", "Judge._judge_step"),
        *("self._judge_reads(report, before)", "pass"),
    ),
    (
        "J08B",
        *("judge", "Judge.judge"),
        *("None if self.disk_failed else (self._promises, self._subject)", "None"),
    ),
    ("J09", "ends", "judge_next_start", "left is not None and ", "False and "),
    ("J10", "puts", "judge_puts", "in_flight.append(message)", "pass"),
    ("J11", "puts", "_place_of", "total + FILLER_SIZE_MIN <= left", "total <= left"),
    (
        "J12",
        *("promises", "Promises.is_broken_by"),
        *("self.has_lied or not self.profile.keeps_promises", "self.has_lied"),
    ),
    (
        "J13",
        *("promises", "Promises.saw_fault"),
        *('self.reverts or self.profile.sync_failure == "revert"', "self.reverts"),
    ),
    (
        "J14",
        *("promises", "Promises.saw_fault"),
        *('self.profile.sync_failure == "late"', "False"),
    ),
    (
        "J15",
        *("promises", "Promises.saw_fault"),
        *("self.hides_a_failed_sync = True", "pass"),
    ),
    (
        "J16",
        *("promises", "Promises.renewed"),
        *("self.errors_come_late = self.reverts = False", "pass"),
    ),
    (
        "J17",
        "ends",
        "judge_stop",
        "if promises.keeps_what_is_synced and",
        "if False and",
    ),
    ("J18", "ends", "takes_abort", "taken and end is not End.ORDERLY", "False"),
    ("J19", "ends", "judge_start", "if end is not End.UNKNOWN:", "if False:"),
    ("J20", "damage", "judge_refusal", "if isinstance(start, Refused):", "if False:"),
    ("J21", "damage", "takes_rot", "if not rotten:", "if True:"),
    ("J22", "damage", "extended", 'log_file_size, b"\\0"', '0, b"\\0"'),
    (
        "J23",
        *("deletion", "DeletionState.is_due"),
        *("self._is_hour(world.now_ms) or is_full", "is_full"),
    ),
    (
        "J24",
        *("deletion", "DeletionState.end_step"),
        "min(before, self.percent) > least",
        "False",
    ),
    (
        "J25",
        *("deletion", "judge_cut_short"),
        *("if not is_whole and ", "if False and "),
    ),
    (
        "J26",
        *("deletion", "DeletionState.may_go_until"),
        *("None if self._may_force(op, world) else ", ""),
    ),
    ("J27", "queries", "is_indexed", "record.end <= reput", "record.end < reput"),
    ("J28", "lookups", "judge_searches", "if is_unsettled(key):", "if True:"),
    ("J29", "pulls", "judge_pull", "if setup is not None:", "if False:"),
    ("J30", "topics", "judge_deletions", "if seen is None:", "if False:"),
    ("J31", "topics", "judge_memory", "0 < min(at, log_end) <= log_min", "True"),
    ("J32", "claims", "judge_claims", "_CLAIMS_BUT_TIMES if torn", "CLAIMS if torn"),
    (
        "J33",
        *("around", "adopts_around"),
        *("spoilt.touches(r.phy_offset, r.end)", "False"),
    ),
    (
        "J33B",
        *("around", "adopts_around"),
        *("if is_listed and report.reads_failed:", "if False:"),
    ),
    (
        "J33C",
        *("around", "adopts_around"),
        *("if is_listed and report.reads_failed:", "if report.reads_failed:"),
    ),
    (
        "J33D",
        *("around", "adopts_around"),
        *("if is_listed and report.reads_failed:", "if is_listed:"),
    ),
)

_FOUND_AGAIN = ("judge", "Judge.judge_found_again")
_AGAIN = (
    (
        *("J34", *_FOUND_AGAIN),
        *("found = self._judge_found(files)", "found = self._read(files, None)"),
    ),
    (
        *("J35", *_FOUND_AGAIN),
        *("self._judge_refusal(start, found, report, 0)", "found"),
    ),
    (
        *("J36", *_FOUND_AGAIN),
        *("judge_start(self.checks, ", "(lambda *_: None)(self.checks, "),
    ),
    (
        *("J37", *_FOUND_AGAIN),
        *("judge_next_start(self.checks, ", "(lambda *_, ended: 0)(self.checks, "),
    ),
    ("J38", *_FOUND_AGAIN, "if self._damaged:", "if False:"),
)

_EXPLORE = (
    (
        "X01",
        *("explorer", "Explorer._explore"),
        *("self._kill(moment, kill, cut, disk, depth)", "pass"),
    ),
    ("X02", "explorer", "Explorer._decide", "view, one.number,", "view, 0,"),
    (
        "X03",
        *("explorer", "Explorer._decide"),
        *("view, one.number,", "view[1:], one.number,"),
    ),
    (
        "X04",
        *("recovery", "Recoveries.outcome"),
        *("if known is not None:", "if True:"),
    ),
    ("X05", "spread", "Spread.all", "range(unit.versions)", "range(unit.versions - 1)"),
    (
        "X06",
        *("moment", "Watcher._look_between"),
        *("self._keep(1, _NO_REPORT)", "pass"),
    ),
    ("X07", "fall", "fall", "report.interrupted = True", "pass"),
    (
        "X08",
        *("explorer", "Explorer._note"),
        *("elif depth < self._limits.depth:", "elif False:"),
    ),
    (
        "X09",
        *("views", "Views.of"),
        *("(tuple(known_by), inode.mtime_ms, ", "(tuple(known_by), 0, "),
    ),
    ("X10", "explorer", "Explorer._disks", "self._limits.cuts and ", "False and "),
    ("X11", "views", "Views.content", "paths[0] in NEVER_READ", "True"),
    (
        "X12",
        *("judges", "Judges.number"),
        *("self._views.number(token(state))", "0"),
    ),
    ("X16", "judges", "Judges.number", "is_alike(known[0], state)", "True"),
    ("X23", "fall", "_are_alike", "and one.report is other.report", ""),
    ("X28", "fall", "Falls.at", "cut > 0 and ", "False and "),
    ("X24", "fall", "_are_alike", "one.judge is other.judge", "True"),
    (
        "X25",
        "reads",
        "Reads.find",
        "self._roots.get(root)",
        "[*self._roots.values()][0]",
    ),
    (
        "X27",
        *("recovery", "Recoveries._end"),
        *("(left.number, fall.number, found)", "(left.number, 0, found)"),
    ),
    ("X38", "recovery", "Recoveries.outcome", "fall.kind)", '"power_loss")'),
    ("X39", "recovery", "_root", "fall.kind, ", ""),
    ("X29", "recovery", "Recoveries._left", "positions, numbers, view", "numbers"),
    (
        "X30",
        *("recovery", "Recoveries.outcome"),
        *("files = left.report.found[0]", "pass"),
    ),
    ("X31", "views", "Views.content", "(content, bad) if bad else content", "content"),
    ("X32", "views", "Views.frame", "foreign_size, has_bad", "has_bad"),
    ("X17", "judges", "Judges.number", "forked(state), number", "state, number"),
)

_SETTLING = (
    ("X18", "settling", "_settled", "bad=inode.still_bad(content)", "bad=inode.bad"),
    ("X19", "settling", "_settled", "if file.is_certain:", "if False:"),
    ("X33", "noting", "Asked.all", "self._kept.get(number, 0)", "0"),
    ("X34", "noting", "Asked.note", "begin <= start and end <= until", "True"),
    (
        "X26",
        "noting",
        "Read.answer",
        "self.start : self.end",
        "self.start : self.start",
    ),
    ("X35", "noting", "Read.answer", "type(error), data", "type(error)"),
    (
        "X36",
        *("noting", "Asked.note"),
        *("of is None or not self._is_as_found(number)", "of is None"),
    ),
    ("X37", "noting", "Read.answer", "of(data, *terms)", "of, *terms"),
    ("X20", "settling", "Settling.disk", "contents.items()", "()"),
)

_TOKENS = (
    (
        "X13",
        *("judging.judge", "_SHARED"),
        *('"checks",', '"checks", "_end",'),
    ),
    (
        "X14",
        *("judging.judge", "_SHARED"),
        *('"checks",', '"checks", "_promises",'),
    ),
)

_PLAIN_STATE = (
    (
        "X15",
        *("plain_state", "_compared_parts"),
        *("if field.compare", "if not field.compare"),
    ),
    ("X21", "plain_state", "is_alike", "type(one) is not type(other)", "False"),
    ("X22", "plain_state", "_dicts_are_alike", "[*one] == [*other]", "True"),
)

JUDGING = mutants_of("judging", "harness.judging", _JUDGING)
EXPLORE = [
    *mutants_of("explore", "harness.explore", _EXPLORE),
    *mutants_of("explore", "harness.disk", _SETTLING),
    *mutants_of("explore", "harness", _TOKENS),
    *mutants_of("explore", "harness.judging", _AGAIN),
    *mutants_of("explore", "models", _PLAIN_STATE),
]
