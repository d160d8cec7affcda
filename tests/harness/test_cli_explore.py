"""``crashmq explore``: exit codes, certificates, findings as cases, complaints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from crashmq.harness.cli import main
from crashmq.harness.disk.profiles import PROFILES
from crashmq.harness.episodes.episode import run_program
from crashmq.harness.explore.finding import fewest_lost, words_for
from crashmq.harness.failures.case_file import CaseFile
from crashmq.harness.mutants.mutants import MUTANTS
from crashmq.harness.mutants.mutation import Edit, Mutant, applied
from crashmq.models.ops import Crash, During, PutMessage, Survivors
from crashmq.models.program import Program, Setup

# RocketMQ's own: nothing vouches that a flushed message is on the medium.
NO_SYNC = Mutant(
    id="R99",
    title="flush-without-sync",
    source="a test",
    killed_by=("REC-2",),
    edits=(
        Edit(
            module="crashmq.engine.store.logfile.mapped_file",
            function="MappedFile.flush",
            before="self._open_file.sync()",
            after="pass",
        ),
    ),
    trigger=Program(Setup(), ()),
)


def crashmq(*args: object) -> Result:
    return CliRunner().invoke(main, ["explore", *map(str, args), "--workers", "1"])


def case_of_one_put(directory: Path) -> Path:
    path = directory / "put.case.json"
    program = Program(Setup(), (PutMessage("T0", 0, 16),))
    CaseFile("power_loss", program, "", -1, "", "").save(path)
    return path


def test_a_case_of_which_all_was_tried_is_closed(tmp_path: Path) -> None:
    out = tmp_path / "out"

    result = crashmq(case_of_one_put(tmp_path), "--depth", 1, "--out", out)

    assert result.exit_code == 0, result.output
    assert "CLOSED" in result.output
    summary = json.loads((out / "summary.json").read_text())
    assert summary["states"] == summary["space"]
    assert summary["is_closed"]
    assert not (out / "findings.jsonl").read_text()
    assert len((out / "classes.jsonl").read_text().splitlines()) == summary["classes"]


def test_a_crash_point_is_closed_if_it_has_few_enough_choices(tmp_path: Path) -> None:
    case = case_of_one_put(tmp_path)

    few = crashmq(case, "--depth", 1, "--choices", 2)
    enough = crashmq(case, "--depth", 1, "--choices", 1000)

    assert ": OPEN" in few.output
    assert ": CLOSED" in enough.output


def test_a_crash_point_is_closed_by_what_starts_read(tmp_path: Path) -> None:
    case = case_of_one_put(tmp_path)

    closed = crashmq(case, "--depth", 1, "--choices", 2, "--close")

    assert ": CLOSED" in closed.output


@pytest.mark.slow
def test_a_planted_bug_that_breaks_no_law_is_missed(tmp_path: Path) -> None:
    case = case_of_one_put(tmp_path)

    clean = crashmq(case, "--depth", 1, "--choices", 2)
    missed = crashmq(case, "--depth", 1, "--choices", 2, "--mutant", "E49")

    assert (clean.exit_code, missed.exit_code) == (0, 1), missed.output
    assert "MISSED: planted bug E49 (deleted-files-counted-twice)" in missed.output


@pytest.mark.slow
def test_a_planted_bug_becomes_a_case_that_replays(tmp_path: Path) -> None:
    out = tmp_path / "out"

    where = ("--profile", "kill9", "--ops", 3, "--histories", 2, "--depth", 1)
    result = crashmq("power_loss", *where, "--mutant", "R22", "--out", out)

    assert result.exit_code == 1, result.output
    rows = [
        json.loads(row) for row in (out / "findings.jsonl").read_text().splitlines()
    ]
    assert rows
    with applied(MUTANTS["R22"]):
        for row in rows:
            case = CaseFile.load(out / row["case"])
            again = run_program(case.program, case.scenario)
            assert again.law == case.violated == row["law"]
            assert again.digest == case.digest


@pytest.mark.slow
def test_a_world_is_explored_up_to_its_length() -> None:
    result = crashmq("--world", 1, "--depth", 1)

    assert result.exit_code == 0, result.output
    assert "CLOSED" in result.output
    assert "crashmq explore --world 3" in result.output


def test_a_budget_that_ends_is_told() -> None:
    result = crashmq("--world", 2, "--budget", 0.1)

    assert "STOPPED EARLY" in result.output


def test_what_cannot_be_used_is_said_in_a_sentence(tmp_path: Path) -> None:
    for args, said in (
        ((), "name a SCENARIO"),
        (("power_los",), "did you mean 'power_loss'"),
        (("power_loss", "--world", 1), "name a SCENARIO"),
        (("power_loss", "--profile", "ext9"), "no disk profile 'ext9'"),
        ((tmp_path / "no.case.json",), "cannot be read"),
    ):
        result = crashmq(*args)
        assert result.exit_code == 2
        assert said in result.stderr


def test_a_directory_with_anything_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("keep")

    result = crashmq("power_loss", "--out", tmp_path)

    assert result.exit_code == 2
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_a_power_loss_is_left_with_the_fewest_pieces_that_are_enough() -> None:
    lost = Crash("power_loss", Survivors("none"))
    program = Program(
        Setup(flush_mode="SYNC_FLUSH"),
        # Right after the answer: later FL-9 would speak first.
        (During(PutMessage("T0", 0, 1200), 1000, lost),),
    )
    with applied(NO_SYNC):
        assert run_program(program).law == "REC-2"
        small = fewest_lost(program, "", "REC-2")

        assert run_program(small).law == "REC-2"
        words = words_for(small, "")

    assert words.startswith("one sector of commitlog/")
    assert words.endswith("is enough")


@pytest.mark.slow
def test_all_disks_have_a_certificate_each_and_their_sum_is_the_whole(
    tmp_path: Path,
) -> None:
    out = tmp_path / "out"
    case = case_of_one_put(tmp_path)

    result = crashmq(case, "--depth", 1, "--profile", "all", "--out", out)

    assert result.exit_code == 0, result.output
    summary = json.loads((out / "summary.json").read_text())
    each = summary["per_profile"]
    assert sorted(each) == sorted(PROFILES)
    assert sum(one["states"] for one in each.values()) == summary["states"]
    assert each["kill9"]["states"] < each["posix_min"]["states"]
    assert all(f"{profile} " in result.output for profile in PROFILES)


@pytest.mark.slow
def test_histories_are_dealt_to_all_disks_in_turn(tmp_path: Path) -> None:
    out = tmp_path / "out"
    some = ("--profile", "all", "--histories", 8, "--ops", 2, "--depth", 1)

    result = crashmq("power_loss", *some, "--out", out)

    assert result.exit_code == 0, result.output
    summary = json.loads((out / "summary.json").read_text())
    assert [one["histories"] for one in summary["per_profile"].values()] == [1] * 8
