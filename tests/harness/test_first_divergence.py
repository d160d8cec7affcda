"""Parting: one bug parts from the engine in one way, two bugs in two."""

from __future__ import annotations

import sys

import pytest

from crashmq.harness.episodes.episode import run_program
from crashmq.harness.mutants import first_divergence as parting_module
from crashmq.harness.mutants.campaign import CANARY
from crashmq.harness.mutants.examine import examine
from crashmq.harness.mutants.first_divergence import Move, first_divergence, moves_of
from crashmq.harness.mutants.hunt import Hunt
from crashmq.harness.mutants.mutants import MUTANTS
from crashmq.harness.mutants.mutation import Mutant, applied
from crashmq.models.ops import (
    Crash,
    DiskFault,
    During,
    Op,
    PutMessage,
    Restart,
    RunService,
    Survivors,
    Together,
)
from crashmq.models.program import Program, Setup

PUT = PutMessage("T0", 0, 16)
KILLED = During(PUT, 1, Crash("process_kill", cut=104))
HALF_LOST = Program(Setup(), (PUT, KILLED, Restart()))


def parts(bug: Mutant, program: Program) -> str:
    ours = moves_of(program, "")
    with applied(bug):
        return first_divergence(ours, moves_of(program, ""))


def law_of(bug: Mutant, program: Program) -> str:
    with applied(bug):
        return run_program(program, keep_trace=False).law


@pytest.mark.slow
def test_the_engine_does_not_part_from_itself() -> None:
    one, again = moves_of(HALF_LOST, ""), moves_of(HALF_LOST, "")

    assert len(one) > 500
    assert first_divergence(one, again) == ""


@pytest.mark.slow
def test_a_parting_names_who_does_what_instead_and_no_place() -> None:
    elsewhere = PutMessage("T1", 3, 700)
    other = Program(Setup(), (elsewhere, elsewhere, KILLED, Restart()))

    told = parts(MUTANTS["R01"], HALF_LOST)

    assert told == parts(MUTANTS["R01"], other)
    assert told.startswith("records_in")


@pytest.mark.slow
def test_one_bug_parts_in_one_way_whichever_law_it_breaks() -> None:
    bug, fault = MUTANTS["R35"], DiskFault("sync", "EIO")
    flush = RunService("flush_commit_log")
    failed = Program(Setup(), (PUT, During(flush, 1, fault)))
    lost = During(During(PUT, 1, fault), 2, Crash("power_loss", Survivors("none")))
    crashed = Program(Setup(flush_mode="SYNC_FLUSH"), (PUT, lost, Restart()))

    assert law_of(bug, failed) != law_of(bug, crashed) != ""
    assert parts(bug, failed) == parts(bug, crashed) != ""


@pytest.mark.slow
def test_bugs_that_break_one_law_in_one_program_part_in_their_own_ways() -> None:
    bugs = [MUTANTS[name] for name in ("E47", "E48")]
    program = Program(Setup(), (PUT,))

    assert {law_of(bug, program) for bug in bugs} == {"PUT-5"}
    assert len({parts(bug, program) for bug in bugs}) == 2


def test_what_callers_at_once_make_the_store_say_is_noted() -> None:
    def puts(*ops: Op) -> int:
        moves = moves_of(Program(Setup(), ops), "")
        return sum(move.said.endswith("calls CommitLog._append") for move in moves)

    assert puts(Together((PUT, PUT))) == puts() + 2


def test_of_what_is_said_alike_the_values_that_differ_are_named() -> None:
    one = [Move("a calls b", (("size", 1), ("at", 2)))]
    other = [Move("a calls b", (("size", 1), ("at", 3)))]

    assert first_divergence(one, other) == "a calls b | other at"


def test_who_says_more_parts_where_the_other_ended() -> None:
    assert first_divergence([Move("a ends", ())], []) == "a ends | nothing more"


def test_of_a_program_without_end_the_first_part_is_noted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(parting_module, "MOVES_MAX", 20)

    assert len(moves_of(HALF_LOST, "")) == 20
    assert sys.getprofile() is None


@pytest.mark.slow
def test_a_kill_is_signed_with_its_parting() -> None:
    row = examine(Hunt(CANARY, 0, 60.0))

    assert row.signature.startswith("records_in")
    assert row.law not in row.signature
