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
    Reach,
    functions_of,
    packaged,
    program_of,
    read,
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


@pytest.mark.slow
def test_examples_run_the_line_that_they_are_kept_for() -> None:
    """Most of them do: scenarios have changed since the lines were counted."""
    module = DELAYED.edits[0].module
    lines = packaged().functions[module][DELAYED.edits[0].function]
    runs = packaged().of_calls(lines)
    assert runs is not None
    stale = 0
    for example in runs.examples:
        scenario, program = program_of(example)
        met: set[tuple[str, int]] = set()
        with traced(met):
            run_program(program, scenario, keep_trace=False)
        stale += not any(
            name.endswith("schedule_message_service.py") for name, _ in met
        )

    assert stale <= len(runs.examples) // 4


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


@pytest.mark.slow
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
    functions = [
        one._replace(text_hash="another")
        for one in functions_of(aiming._source(edit.module))
    ]
    monkeypatch.setattr(aiming, "functions_of", lambda _: functions)

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


def test_an_edit_outside_the_engine_beside_one_of_it_leaves_the_aim() -> None:
    outside = Edit("crashmq.models.limits", "", "1", "2")
    both = Mutant("T03", "toy", (), (*DELAYED.edits, outside))

    aim = aim_of(both, SHARES)

    assert aim.scenarios == aim_of(DELAYED, SHARES).scenarios
    assert aim_of(DELAYED, SHARES).is_in_code
    assert not aim.is_in_code


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


def test_lines_of_a_function_are_numbered_without_what_says_it_in_words() -> None:
    source = "class A:\n    @p\n    def f(self):\n        return 1\n"
    reworded = (
        'class A:\n    @p\n    def f(self):\n        """Said\n\n        at length."""\n'
        "\n        # why\n        return 1\n"
    )

    (plain,), (same,) = functions_of(source), functions_of(reworded)

    assert (plain.name, plain.span, plain.numbers) == (
        "A.f",
        range(2, 5),
        {2: 0, 3: 1, 4: 2},
    )
    assert (same.span, same.numbers) == (range(2, 10), {2: 0, 3: 1, 9: 2})
    assert same.text_hash == plain.text_hash


def test_a_function_whose_code_was_changed_is_another() -> None:
    (one,), (other,) = (functions_of(f"def g():\n    {s}\n") for s in ("pass", "1"))

    assert one.text_hash != other.text_hash


@pytest.mark.slow
def test_most_of_the_engine_is_counted_as_it_is_today() -> None:
    """Count again where it is not: crashmq corpus --reach."""
    known = fresh = 0
    for module, functions in packaged().functions.items():
        for code in functions_of(aiming._source(module)):
            counted = functions.get(code.name)
            known += counted is not None
            fresh += counted is not None and counted.text_hash == code.text_hash

    assert fresh >= 0.8 * known
