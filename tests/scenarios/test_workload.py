from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest

from crashmq.models.ops import (
    NESTING_MAX,
    OP_CLASSES,
    Crash,
    Damage,
    DiskFault,
    During,
    Event,
    Op,
    PutMessage,
    Restart,
    RunService,
    Shutdown,
    Survivors,
    innermost,
    nesting,
    parts,
)
from crashmq.models.program_json import from_json, to_json
from crashmq.scenarios.catalogue.scenarios import SCENARIOS, Scenario
from crashmq.scenarios.programs.faulting import MENDING
from crashmq.scenarios.programs.workload import program_for

EVERY_SCENARIO = pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)


def crashes(scenario: Scenario, episodes: int) -> list[Crash]:
    return [
        op.event
        for episode in range(episodes)
        for op in program_for(scenario, 1, episode).ops
        if isinstance(op, During) and isinstance(op.event, Crash)
    ]


def test_a_program_is_a_function_of_scenario_run_and_episode() -> None:
    scenario = SCENARIOS["power_loss"]

    assert program_for(scenario, 3, 7) == program_for(scenario, 3, 7)
    assert program_for(scenario, 3, 7) != program_for(scenario, 3, 8)
    assert program_for(scenario, 3, 7) != program_for(scenario, 4, 7)


def test_the_stream_of_chance_is_the_same_on_every_machine_and_version() -> None:
    space = replace(SCENARIOS["clean_restart"].space, kinds=("look",), kept=("look",))
    scenario = replace(SCENARIOS["clean_restart"], space=space, length=(4, 4))

    looks = [op.phy_offset for op in program_for(scenario, 1, 2).ops]  # type: ignore[union-attr]

    assert looks == [-1, 262, 4096, 2035]


@pytest.mark.slow
@EVERY_SCENARIO
def test_every_program_can_be_written_to_a_case_file_and_read_back(
    scenario: Scenario,
) -> None:
    for episode in range(50):
        program = program_for(scenario, 1, episode)
        assert from_json(to_json(program)) == program


@pytest.mark.slow
@EVERY_SCENARIO
def test_programs_keep_to_the_scenarios_length_setups_and_nesting(
    scenario: Scenario,
) -> None:
    shortest, longest = scenario.length

    for episode in range(100):
        program = program_for(scenario, 1, episode)
        assert shortest <= len(program.ops) <= longest
        assert scenario.mixes or program.setup in scenario.setups
        nests = True in scenario.space.crowded or "fault" in scenario.space.kinds
        deepest = NESTING_MAX if nests or scenario.mixes else 1
        assert all(type(op) in OP_CLASSES for op in program.ops)
        assert all(nesting(op) <= deepest for op in program.ops)


@pytest.mark.slow
@EVERY_SCENARIO
def test_a_thousand_programs_take_every_setup_and_draw_every_kind(
    scenario: Scenario,
) -> None:
    programs = [program_for(scenario, 1, episode) for episode in range(1000)]

    setups = {program.setup for program in programs}
    assert scenario.mixes or setups == set(scenario.setups)
    ops = Counter(type(op) for program in programs for op in program.ops)
    assert ops[PutMessage] > 1000
    assert ops[RunService] > 100
    assert ops[Restart] > 100
    harms = not {"damage", "disown"}.isdisjoint(scenario.space.kinds)
    assert (ops[Damage] > 0) == harms
    assert (ops[During] > 0) == (
        harms or not {"crash", "interleave"}.isdisjoint(scenario.space.kinds)
    )


def test_a_store_that_went_down_is_started_by_the_same_phrase() -> None:
    for episode in range(200):
        down = False
        for op in program_for(SCENARIOS["power_loss"], 1, episode).ops:
            crashed = isinstance(op, During) and isinstance(op.event, Crash)
            assert not down or crashed or isinstance(innermost(op), Restart)
            down = crashed or isinstance(op, Shutdown)


def test_only_a_power_loss_has_survivors_to_choose() -> None:
    kinds = Counter(
        (crash.kind, crash.survivors.kind)
        for crash in crashes(SCENARIOS["power_loss"], 100)
    )

    assert {survivors for kind, survivors in kinds if kind == "process_kill"} == {
        "none"
    }
    assert {survivors for kind, survivors in kinds if kind == "power_loss"} == {
        "none",
        "all",
        "prefix",
        "hashed",
    }


def test_a_process_kill_scenario_never_loses_power() -> None:
    assert {crash.kind for crash in crashes(SCENARIOS["process_kill"], 50)} == {
        "process_kill"
    }


@pytest.mark.slow
def test_disks_fail_where_a_scenario_says_so_and_nowhere_else() -> None:
    failing = {
        name
        for name, scenario in SCENARIOS.items()
        for episode in range(100)
        for op in program_for(scenario, 1, episode).ops
        if isinstance(op, During) and isinstance(op.event, DiskFault)
    }

    kinds = {"fault", "together", "overlap", "progress", "delay", "retry", "disown"}
    kinds.add("outlive")
    assert failing == {
        name
        for name, scenario in SCENARIOS.items()
        if (scenario.space.faults and kinds & set(scenario.space.kinds))
        or name == "adopted_stores"  # the first start, of half of them
    }


def failing_syncs(op: Event) -> Iterator[DiskFault]:
    if isinstance(op, DiskFault) and op.call == "sync":
        yield op
    for part in parts(op):
        yield from failing_syncs(part)


@pytest.mark.slow
def test_of_what_failed_syncs_leave_half_is_drawn_and_a_part_nothing_or_all() -> None:
    kinds = Counter(
        fault.survivors.kind
        for name in ("power_loss", "expiry", "overlaps", "deleted_topics")
        for episode in range(800)
        for op in program_for(SCENARIOS[name], 1, episode).ops
        for fault in failing_syncs(op)
        if not any(fault is one for one in MENDING)  # of which nothing is drawn
    )

    total = kinds.total()
    assert set(kinds) == {"none", "all", "hashed"}
    assert 0.3 < kinds["none"] / total < 0.45
    assert 0.4 < kinds["hashed"] / total < 0.6


def test_what_a_failed_sync_leaves_shifts_no_other_draw(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def forget(op: Op) -> Op:
        if not isinstance(op, During) or not isinstance(op.event, DiskFault):
            return op
        return replace(op, event=replace(op.event, survivors=Survivors()))

    chosen = [program_for(SCENARIOS["power_loss"], 1, n).ops for n in range(50)]
    monkeypatch.setattr(
        "crashmq.scenarios.programs.drawn_ops.LEFT_BY_A_FAILED_SYNC", ("none",)
    )
    plain = [program_for(SCENARIOS["power_loss"], 1, n).ops for n in range(50)]

    assert chosen != plain
    assert [tuple(map(forget, ops)) for ops in chosen] == plain
