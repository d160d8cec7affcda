"""Options that searched programs get beside those of their scenario."""

from __future__ import annotations

from dataclasses import replace

import pytest

from crashmq.harness.episodes.episode import run_program
from crashmq.models.messages import TOPIC_SIZE_MAX, TOPIC_SIZE_MAX_V1
from crashmq.models.ops import (
    ConfirmLog,
    DeleteTopic,
    During,
    FillDisk,
    PutMessage,
    Restart,
    RunService,
    Session,
    StartConsumer,
    Together,
    innermost,
)
from crashmq.models.program import Program, Setup
from crashmq.models.verdict import Outcome
from crashmq.scenarios.catalogue.scenarios import SCENARIOS
from crashmq.scenarios.programs.brims import OFF
from crashmq.scenarios.programs.chance import SeededChance
from crashmq.scenarios.programs.options import (
    BROKER_TOPICS,
    FULL_PERCENTS,
    ODD_TOPICS,
    renamed,
    with_ops_for,
    with_options,
)
from crashmq.scenarios.programs.searching import (
    DOWN,
    MIXED,
    VARIED,
    mix_of,
    searched_program,
)

AT_A_LIMIT = {
    "t" * (most + off) for most in (TOPIC_SIZE_MAX_V1, TOPIC_SIZE_MAX) for off in OFF
}
COUNT = 200
PLAIN = (PutMessage("T0", 0, 16), RunService("reput"), PutMessage("T1", 0, 16))


def test_one_program_of_so_many_has_other_options_and_always_the_same() -> None:
    scenario = SCENARIOS["window_damage"]  # which is mixed with no other
    found = [searched_program(scenario, 5, number) for number in range(COUNT)]
    setups = [replace(one.setup, begins_down=False) for one in found]
    others = [setup for setup in setups if setup not in scenario.setups]

    assert [searched_program(scenario, 5, number) for number in range(COUNT)] == found
    assert COUNT / VARIED / 2 < len(others) < COUNT / VARIED * 2


def test_one_program_of_so_many_makes_the_first_start_itself() -> None:
    scenario = SCENARIOS["power_loss"]
    found = [searched_program(scenario, 5, number) for number in range(COUNT)]
    down = [one for one in found if one.setup.begins_down]
    begins = [innermost(one.ops[0]) for one in down if one.ops]

    assert COUNT / DOWN / 2 < len(down) < COUNT / DOWN * 2
    starts = [one for one in begins if isinstance(one, Restart)]
    assert len(starts) > len(begins) / 2  # the others are twists
    assert any(isinstance(one.ops[0], During) for one in down)


def test_a_store_that_begins_down_is_started_by_an_op() -> None:
    put = PutMessage("T0", 0, 16)
    program = Program(Setup(begins_down=True), (put, Restart(), put))

    result = run_program(program)

    assert result.outcome is Outcome.PASSED
    told = [type(step.observation).__name__ for step in result.trace[:3]]
    assert told == ["Skipped", "Started", "Put"]


def test_one_program_of_so_many_is_mixed_with_another_scenario() -> None:
    scenario = SCENARIOS["clean_restart"]
    mixes = [mix_of(scenario, 5, number) for number in range(COUNT)]
    kinds = {
        kind
        for mix in mixes
        if mix is not None
        for kind in mix(scenario.space, scenario.setups[0])[0].kinds
    }

    assert COUNT / MIXED / 2 < COUNT - mixes.count(None) < COUNT / MIXED * 2
    assert {"crash", "expire", "progress", "send"} <= kinds


def test_what_damages_files_and_what_is_a_mixture_is_mixed_with_no_other() -> None:
    for name in ("bit_rot", "mixtures", "adopted_stores"):
        assert not any(mix_of(SCENARIOS[name], 5, number) for number in range(50))


def test_a_found_store_keeps_its_setup() -> None:
    setup = Setup(begins_with="5.3.0-kinds")

    for seed in range(20):
        assert with_options(setup, SeededChance(seed, 0)) == setup


def test_a_broker_with_filters_keeps_the_files_of_their_bit_maps() -> None:
    setup = Setup(keeps_progress=True, filters=True, queue_ext_size=200)

    for seed in range(100):
        assert with_options(setup, SeededChance(seed, 0)).queue_ext_size == 200


def test_no_broker_has_a_disk_that_others_fill() -> None:
    broker = Setup(keeps_progress=True)
    setups = [with_options(broker, SeededChance(seed, 0)) for seed in range(200)]

    assert not any(setup.disk_capacity for setup in setups)


def test_a_disk_with_an_end_has_room_for_some_files() -> None:
    setups = [with_options(Setup(), SeededChance(seed, 0)) for seed in range(200)]
    ends = [setup for setup in setups if setup.disk_capacity]

    assert ends
    assert all(one.disk_capacity >= 16 * one.log_file_size for one in ends)


def test_replicas_confirm_before_most_rounds_of_dispatch() -> None:
    ops = with_ops_for(Setup(duplicates=True), PLAIN * 20, SeededChance(1, 0))
    confirms = [at for at, op in enumerate(ops) if isinstance(op, ConfirmLog)]

    assert 10 <= len(confirms) < 20
    assert all(ops[at + 1] == RunService("reput") for at in confirms)


def test_others_fill_a_disk_and_free_it_and_a_cleaner_looks() -> None:
    setup = Setup(disk_capacity=65536, cleans=True)
    for seed in range(50):
        ops = with_ops_for(setup, PLAIN, SeededChance(seed, 0))
        filled, freed = [op for op in ops if isinstance(op, FillDisk)]

        assert filled.percent in FULL_PERCENTS
        assert freed.percent == 0
        assert ops[ops.index(filled) + 1] == RunService("clean_commit_log")


def test_who_fills_the_disk_anyway_goes_on_doing_so() -> None:
    ops = (*PLAIN, FillDisk(96))

    for seed in range(20):
        found = with_ops_for(Setup(disk_capacity=65536), ops, SeededChance(seed, 0))
        assert sum(isinstance(op, FillDisk) for op in found) == 1


def test_a_topic_has_its_other_name_wherever_it_is_named() -> None:
    put, deletion = PutMessage("T0", 0, 16, tags="T0x"), DeleteTopic("T0")
    both = Together((Session((put, deletion)), PutMessage("T1", 0, 1)))
    consumer = StartConsumer("c", "g", "T0,T1")

    found = [renamed(op, "a b") for op in (both, During(put, 1, Restart()), consumer)]

    put, deletion = PutMessage("a b", 0, 16, tags="T0x"), DeleteTopic("a b")
    assert found == [
        Together((Session((put, deletion)), PutMessage("T1", 0, 1))),
        During(put, 1, Restart()),
        StartConsumer("c", "g", "a b,T1"),
    ]


def test_a_broker_is_given_names_that_it_takes() -> None:
    usual = {
        address.topic
        for scenario in SCENARIOS.values()
        for address in scenario.space.addresses
    }
    for name in ("power_loss", "group_progress"):
        found = [searched_program(SCENARIOS[name], 5, number) for number in range(300)]
        for keeps_progress, names in ((False, ODD_TOPICS), (True, BROKER_TOPICS)):
            topics = {
                op.topic
                for program in found
                if program.setup.keeps_progress is keeps_progress
                for op in program.ops
                if isinstance(op, PutMessage)
            }
            odd = {one for one in topics - usual if not one.startswith("%RETRY%")}
            odd -= AT_A_LIMIT
            assert odd <= {*names}
            assert odd or keeps_progress != (name == "group_progress")


@pytest.mark.slow
def test_programs_with_other_options_pass_on_the_shipped_engine() -> None:
    names = [name for name in SCENARIOS if name != "adopted_stores"]
    for number, name in enumerate(names * 4):
        program = searched_program(SCENARIOS[name], 7, number)
        result = run_program(program, name, keep_trace=False)
        assert result.outcome is Outcome.PASSED, (name, number, result.message)
