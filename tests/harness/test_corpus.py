"""The corpus: what is kept of many programs, how small it gets, and its file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from crashmq.harness.cli import main
from crashmq.harness.episodes.episode import run_program
from crashmq.harness.mutants.corpus import (
    PACKAGED,
    BadCorpus,
    Entry,
    Seen,
    chosen_of,
    cut_down,
    gather,
    neighbour,
    packaged,
    reached_by,
    read,
    run_episodes,
    written,
)
from crashmq.models.ops import PutMessage, Restart, RunService
from crashmq.models.program import Program, Setup
from crashmq.models.verdict import Outcome

PUT = PutMessage("T0", 0, 16)
ROLL = "commit_log.roll"


def crashmq(*args: object) -> Result:
    return CliRunner().invoke(main, [str(arg) for arg in args])


def test_of_episodes_the_fewest_are_kept_that_reach_what_is_rare() -> None:
    common = [frozenset({"a"})] * 600
    rare = [frozenset({"a", "b"}), frozenset({"a", "b", "c"}), frozenset({"c"})]

    chosen = chosen_of([*common, *rare])

    assert chosen == [(601, frozenset({("b",), ("c",), ("b", "c")}))]
    assert chosen_of(common) == []


def test_two_rare_things_apart_are_not_two_in_one_program() -> None:
    common = [frozenset[str]()] * 600

    chosen = chosen_of([*common, frozenset("b"), frozenset("c"), frozenset("bc")])

    assert [number for number, _ in chosen] == [602]
    apart = chosen_of([*common, frozenset("b"), frozenset("c")])
    assert [number for number, _ in apart] == [600, 601]


def test_a_program_is_cut_down_to_what_it_takes() -> None:
    setup = Setup(log_file_size=4096)
    big = replace(PUT, body_size=3000)
    ops = (PUT, RunService("reput"), big, big, RunService("reput"), Restart(), PUT)

    short = cut_down(Program(setup, ops), "process_kill", frozenset({ROLL}))

    assert short.ops == (big, big)
    assert ROLL in reached_by(short, "process_kill")


@pytest.fixture(scope="module")
def seen() -> list[Seen]:
    """Episodes in each of which something is rare, and one that saw what is gone."""
    episodes = run_episodes(3, 24)
    common = [replace(episodes[0], reached=frozenset[str]())] * 100
    return [*episodes, *common, replace(episodes[0], reached=frozenset({"made.up"}))]


@pytest.fixture(scope="module")
def kept(seen: list[Seen]) -> list[Entry]:
    return gather(seen)


@pytest.mark.slow
@pytest.mark.xdist_group("gathered")
def test_gathering_keeps_programs_that_reach_what_they_are_kept_for(
    seen: list[Seen], kept: list[Entry]
) -> None:
    assert kept
    for entry in kept:
        assert {*entry.reached} <= reached_by(entry.program, entry.scenario)
    chosen = chosen_of([one.reached for one in seen])
    before = [len(seen[number].program.ops) for number, _ in chosen]
    assert sum(len(entry.program.ops) for entry in kept) < sum(before) / 2


@pytest.mark.slow
@pytest.mark.xdist_group("gathered")
def test_what_a_run_saw_is_left_out_if_it_is_seen_no_more(
    seen: list[Seen], kept: list[Entry]
) -> None:
    chosen = chosen_of([one.reached for one in seen])

    assert ("made.up",) in frozenset().union(*(goals for _, goals in chosen))
    assert len(kept) == len(chosen) - 1
    assert not [entry for entry in kept if "made.up" in entry.reached]


def test_a_corpus_is_read_as_it_was_written(tmp_path: Path) -> None:
    file = tmp_path / "corpus.jsonl"
    entries = [Entry("index", Program(Setup(), (PUT, Restart())), (ROLL,))]

    file.write_text(written(entries))

    assert list(read(file)) == entries
    file.write_text(file.read_text() + '{"scenario": "index"}\n')
    with pytest.raises(BadCorpus, match=r"corpus\.jsonl:2: no entry"):
        list(read(file))
    file.write_text(written([Entry("nowhere", entries[0].program)]))
    with pytest.raises(BadCorpus, match="no scenario 'nowhere'"):
        list(read(file))


@pytest.mark.slow
def test_the_packaged_corpus_stays_silent_and_reaches_what_it_is_kept_for() -> None:
    """Gather it anew where it does not: crashmq corpus --out scenarios/corpus.jsonl."""
    entries = packaged()

    assert len(entries) >= 40
    reached = 0
    for entry in entries:
        result = run_program(entry.program, entry.scenario, keep_trace=False)
        assert result.outcome is Outcome.PASSED, result.message
        hits = {hit.probe for hit in result.record.probes}
        reached += {*entry.reached} <= hits
    assert reached >= len(entries) * 9 // 10


def test_neighbours_come_from_every_entry() -> None:
    entries = packaged()
    numbers = range(len(entries))

    found = [neighbour(entries, 1, number) for number in numbers]

    assert [scenario for scenario, _ in found] == [entry.scenario for entry in entries]
    assert found == [neighbour(entries, 1, number) for number in numbers]
    assert found != [neighbour(entries, 2, number) for number in numbers]


@pytest.mark.slow
def test_the_command_gathers_the_same_twice_and_spares_what_is_no_corpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crashmq.harness.mutants.corpus.RARE", 0.1)
    out, again = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    asked = ("corpus", "--episodes", 10, "--seed", 5, "--out")

    told = crashmq(*asked, out)

    assert told.exit_code == 0, told.output
    assert "kept of 10 for" in told.stdout
    assert crashmq(*asked, again).exit_code == 0
    assert out.read_text() == again.read_text() != ""
    note = tmp_path / "note.txt"
    note.write_text("mine")
    refused = crashmq("corpus", "--episodes", 1, "--out", note)
    assert refused.exit_code == 2
    assert "is no corpus, and is left as it is" in refused.stderr
    assert note.read_text() == "mine"
    nowhere = crashmq("corpus", "--episodes", 1, "--out", tmp_path / "no" / "c.jsonl")
    assert nowhere.exit_code == 2
    assert "make it first" in nowhere.stderr


def test_what_to_type_next_follows_from_where_the_corpus_lies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "c.jsonl"

    aside = crashmq("corpus", "--episodes", 5, "--out", out)
    monkeypatch.setattr("crashmq.harness.commands.corpus.PACKAGED", out)
    packaged_at_once = crashmq("corpus", "--episodes", 5, "--out", out)

    assert f"  next    cp {out} {PACKAGED}\n          crashmq mutants" in aside.stdout
    assert "  next    crashmq mutants" in packaged_at_once.stdout


def test_without_a_file_the_packaged_corpus_is_told() -> None:
    told = crashmq("corpus")

    assert told.exit_code == 0
    assert str(PACKAGED) in told.stdout
