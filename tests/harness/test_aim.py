"""Aims: where a hunt looks first, from what runs the lines that a mutant changes."""

from __future__ import annotations

from collections import Counter

import pytest

from crashmq.harness.episodes.episode import run_program
from crashmq.harness.mutants import aim as aiming
from crashmq.harness.mutants.aim import ANY_OF, NO_AIM, aim_of, in_turn
from crashmq.harness.mutants.hunt import Hunt, hunt, kind_of
from crashmq.harness.mutants.mutation import Edit, Mutant
from crashmq.harness.mutants.reach import (
    SEED,
    Reach,
    functions_of,
    packaged,
    program_of,
    read,
    text_hash,
    written,
)
from crashmq.harness.mutants.search_turns import SHARES, scenario_of_turn
from crashmq.harness.mutants.search_turns import program_of as program_of_hunt
from crashmq.harness.mutants.traced import traced
from crashmq.scenarios.catalogue.scenarios import SCENARIOS


def mutant(module: str, function: str, before: str, after: str) -> Mutant:
    edit = Edit(f"crashmq.engine.{module}", function, before, after)
    return Mutant("T01", "toy", (), (edit,))


DELAYED = mutant(
    "broker.schedule.schedule_message_service",
    "ScheduleMessageService._first_of",
    "if least <= offset <= self._end_of(level):",
    "if least < offset <= self._end_of(level):",
)


def test_a_bug_of_delays_is_looked_for_where_messages_are_delayed() -> None:
    aim = aim_of(DELAYED, SHARES)

    assert "delayed" in aim.scenarios
    assert "process_kill" not in aim.scenarios
    assert aim.entries


def test_an_example_runs_the_line_that_it_is_kept_for() -> None:
    module = DELAYED.edits[0].module
    lines = packaged().functions[module][DELAYED.edits[0].function]
    runs = packaged().of_calls(lines)
    assert runs is not None
    scenario, program = program_of(runs.examples[0])
    met: set[tuple[str, int]] = set()
    with traced(met):
        run_program(program, scenario, keep_trace=False)

    assert any(name.endswith("schedule_message_service.py") for name, _ in met)


def test_three_turns_of_four_are_aimed_and_the_fourth_comes_to_every_scenario() -> None:
    aim = aim_of(DELAYED, SHARES)
    turns = [scenario_of_turn(turn, aim) for turn in range(ANY_OF * 200)]

    others = {name for turn, name in enumerate(turns) if turn % ANY_OF == ANY_OF - 1}
    assert others == {*SCENARIOS}
    aimed = {name for turn, name in enumerate(turns) if turn % ANY_OF != ANY_OF - 1}
    assert aimed <= {*aim.scenarios}
    neighbours = [program_of_hunt("neighbours", 1, n, aim)[0] for n in range(3)]
    assert {*neighbours} <= {entry.scenario for entry in aim.entries}


def test_names_come_as_often_as_their_weights_say() -> None:
    turns = in_turn({"one": 1.0, "three": 3.0}, 40)

    assert Counter(turns) == {"one": 10, "three": 30}
    assert "one" in turns[:4]
    assert in_turn({}, 40) == ()


def test_a_constant_aims_at_the_lines_that_name_it() -> None:
    changed = mutant(
        "client.impl.consumer.process_queue",
        "PULL_MAX_IDLE_TIME",
        "120_000",
        "0",
    )
    aim = aim_of(changed, SHARES)

    assert aim.scenarios
    assert not {"clean_restart", "process_kill", "bit_rot"} & {*aim.scenarios}


def test_of_a_function_that_was_rewritten_its_calls_are_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reach = packaged()
    (edit,) = DELAYED.edits
    lines = reach.functions[edit.module][edit.function]
    monkeypatch.setattr(aiming, "text_hash", lambda _: "another")

    scenarios = {*aim_of(DELAYED, SHARES).scenarios}

    calls = reach.of_calls(lines)
    assert calls is not None
    assert scenarios <= {*calls.counts}


def test_what_nobody_counted_has_no_aim(monkeypatch: pytest.MonkeyPatch) -> None:
    outside = Mutant("T02", "toy", (), (Edit("crashmq.models.limits", "", "1", "2"),))

    assert aim_of(outside, SHARES) is not None
    assert aim_of(outside, SHARES) == NO_AIM
    monkeypatch.setattr(aiming, "packaged", lambda: Reach(0, ""))
    assert aim_of(DELAYED, SHARES) == NO_AIM
    assert Hunt(DELAYED, 1, 1.0, policy="ours").aim == NO_AIM
    assert Hunt(None, 1, 1.0).aim == NO_AIM


def test_sweeps_of_stops_are_left_out_where_they_run_nothing_of_it() -> None:
    aim = aim_of(DELAYED, SHARES)
    (stops,) = [n for n in range(3) if kind_of(n) == "stops"]

    assert kind_of(stops, aim) == "soak"


@pytest.mark.slow
def test_an_aimed_hunt_is_a_function_of_its_seed() -> None:
    one, other = (hunt(Hunt(DELAYED, 3, 0.3, in_cpu_time=True)) for _ in range(2))

    slices = min(one.slices, other.slices)
    assert slices
    if one.slices == other.slices:
        assert (one.histories, one.states) == (other.histories, other.states)


def test_counts_are_read_as_they_were_written() -> None:
    reach = packaged()

    assert read(written(reach)) == reach


def test_functions_have_their_first_line_and_their_whole_text() -> None:
    method = "    @p\n    def f(self):\n        return 1\n"
    source = f"class A:\n{method}\n\ndef g():\n    pass\n"

    assert list(functions_of(source)) == [
        ("A.f", 2, method),
        ("g", 7, "def g():\n    pass\n"),
    ]
    assert text_hash("a") != text_hash("b")
    assert SEED


def test_most_of_the_engine_is_counted_as_it_is_today() -> None:
    """Count again where it is not: crashmq corpus --reach."""
    known = fresh = 0
    for module, functions in packaged().functions.items():
        for name, _, text in functions_of(aiming._source(module)):
            known += name in functions
            fresh += name in functions and functions[name].text_hash == text_hash(text)

    assert fresh >= 0.8 * known
