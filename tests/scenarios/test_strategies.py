from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, assume, find, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from crashmq.models.ops import (
    Crash,
    Damage,
    DiskFault,
    During,
    Op,
    PutMessage,
    Restart,
    Shutdown,
    SurvivorKind,
    Survivors,
    innermost,
)
from crashmq.models.program import Program, Setup
from crashmq.models.program_json import from_json, to_json
from crashmq.scenarios.catalogue.scenarios import SCENARIOS, Scenario
from crashmq.scenarios.programs.chance import Chance, SeededChance
from crashmq.scenarios.programs.draft import Draft
from crashmq.scenarios.programs.drawn_ops import fault_by
from crashmq.scenarios.programs.space import Kind, Label, Numbers, record_overhead
from crashmq.scenarios.programs.strategies import BLOCK_BYTES, HypothesisChance, phrases
from crashmq.scenarios.programs.workload import (
    RULES_MAX,
    program_by,
    rules_of,
    write_one_of,
)

EVERY_SCENARIO = pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
FEW = settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


def drawn_block(value: int) -> Chance:
    """The choices of one block of bytes that are the digits of ``value``, and zeros."""
    blocks = iter([value.to_bytes(BLOCK_BYTES, "big")])
    return HypothesisChance(lambda strategy: next(blocks, bytes(BLOCK_BYTES)))


def chosen(choose: Callable[[Chance], object]) -> st.SearchStrategy[object]:
    """What a function chooses when Hypothesis is its chance."""

    @st.composite
    def choice(draw: DrawFn) -> object:
        return choose(HypothesisChance(draw))

    return choice()


@pytest.mark.slow
@EVERY_SCENARIO
def test_phrases_are_ops_that_a_case_file_can_hold(scenario: Scenario) -> None:
    kinds = dict.fromkeys(scenario.space.kinds)

    @FEW
    @given(st.one_of(*(phrases(scenario, kind) for kind in kinds)))
    def holds(phrase: tuple[Setup, tuple[Op, ...]]) -> None:
        program = Program(*phrase)
        assert from_json(to_json(program)) == program

    holds()


@pytest.mark.slow
@EVERY_SCENARIO
def test_hypothesis_and_seeds_write_programs_of_one_kind(scenario: Scenario) -> None:
    """The generator asks both for the same things, and takes any answers."""

    @FEW
    @given(chosen(lambda chance: program_by(scenario, chance)))
    def is_a_program(program: Program) -> None:
        shortest, longest = scenario.length
        assert shortest <= len(program.ops) <= longest
        assert scenario.mixes or program.setup in scenario.setups
        assert from_json(to_json(program)) == program

    is_a_program()


@EVERY_SCENARIO
def test_a_machine_has_at_most_nine_rules_and_all_its_space_lists(
    scenario: Scenario,
) -> None:
    rules = rules_of(scenario.space)
    taken = {kind for kinds in rules.values() for kind in kinds}

    assert len(rules) <= RULES_MAX or scenario.mixes  # those have all there are
    assert taken >= set(scenario.space.kinds)
    assert ("crash" in rules) == ("crash" in scenario.space.kinds)
    harms = {"damage", "disown"} & set(scenario.space.kinds)
    assert ("damage" in rules) == bool(harms)


def test_a_rule_of_a_mixture_takes_what_its_two_scenarios_have() -> None:
    mixtures = SCENARIOS["mixtures"]

    for episode in range(60):
        chance = SeededChance(1, episode)
        draft = Draft(*mixtures.drawn(chance), chance)
        for kinds in rules_of(mixtures.space).values():
            assert write_one_of(kinds, draft)
            assert not draft.ops


@pytest.mark.parametrize("kind", ["damage", "restart", "crash"])
def test_no_phrase_that_stops_the_store_leaves_it_down(kind: Kind) -> None:
    scenario = SCENARIOS["truncated_files"]

    @FEW
    @given(phrases(scenario, kind))
    def ends_up(phrase: tuple[Setup, tuple[Op, ...]]) -> None:
        is_down, was_down = False, False
        for op in phrase[1]:
            crashed = isinstance(op, During) and isinstance(op.event, Crash)
            if crashed or isinstance(op, Shutdown):
                is_down = was_down = True
            elif isinstance(innermost(op), Restart):
                is_down = False
        assume(was_down or kind == "restart")
        assert not is_down

    ends_up()


def test_a_put_is_sized_to_the_log_files_of_the_same_test_case() -> None:
    scenario = SCENARIOS["clean_restart"]

    @FEW
    @given(phrases(scenario, "put"))
    def fits(phrase: tuple[Setup, tuple[Op, ...]]) -> None:
        setup, (put,) = phrase
        assert isinstance(put, PutMessage)
        label = Label(put.tags, put.keys, put.wait_store_ok)
        record_size = put.body_size + record_overhead(put.topic, label)
        assert record_size <= setup.log_file_size - 8 + 1

    fits()


def test_a_number_shrinks_to_the_first_special_one() -> None:
    number = chosen(lambda chance: chance.number(Numbers((5, 9), 100)))

    assert find(number, lambda _: True, settings=FEW) == 5


def test_a_crash_shrinks_to_the_first_action_and_nothing_surviving() -> None:
    crashes = phrases(SCENARIOS["power_loss"], "crash")

    _, (crashed, restart) = find(crashes, lambda _: True, settings=FEW)

    assert isinstance(crashed, During)
    assert (crashed.at_action, crashed.event) == (1, Crash("power_loss"))
    assert restart == Restart()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["none", "all", "hashed"])
def test_hypothesis_draws_what_a_failed_sync_leaves(kind: SurvivorKind) -> None:
    faults = (DiskFault("read", "EIO"), DiskFault("sync", "EIO"))

    def is_sought(fault: object) -> bool:
        assert isinstance(fault, DiskFault)
        return fault.call == "sync" and fault.survivors.kind == kind

    found = find(
        chosen(lambda chance: fault_by(chance, faults)), is_sought, settings=FEW
    )

    assert found == DiskFault("sync", "EIO", survivors=Survivors(kind))


@pytest.mark.slow
def test_a_deleted_file_has_no_offset_to_draw() -> None:
    def deletes(phrase: tuple[Setup, tuple[Op, ...]]) -> bool:
        return any(isinstance(op, Damage) and op.kind == "delete" for op in phrase[1])

    drawn = phrases(SCENARIOS["truncated_files"], "damage")
    _, ops = find(drawn, deletes, settings=FEW)

    deleted = [op for op in ops if isinstance(op, Damage) and op.kind == "delete"]
    assert all(op == Damage(op.file, "delete") for op in deleted)


def test_choices_are_the_digits_of_the_bytes_that_were_drawn() -> None:
    chance = drawn_block(3 + 10 * (1 + 2 * (4 + 5 * 2)))

    assert chance.below(10) == 3
    assert chance.coin()
    assert chance.pick("abcde") == "e"
    assert chance.integer(7, 9) == 9
    assert not chance.one_in(3)
    assert chance.word() == 0


def test_when_a_block_is_used_up_another_is_drawn() -> None:
    drawn: list[bytes] = []

    def draw(strategy: object) -> bytes:
        drawn.append(bytes([255]) * BLOCK_BYTES)
        return drawn[-1]

    chance = HypothesisChance(draw)
    words = [chance.word() for _ in range(BLOCK_BYTES // 4)]

    assert set(words) == {(1 << 32) - 1}
    assert len(drawn) == 2


def test_every_choice_is_met_about_as_often_as_it_is_listed() -> None:
    chance = SeededChance(1, 1)
    picked = [chance.pick("aaab") for _ in range(4000)]
    once = sum(chance.one_in(4) for _ in range(4000))

    assert 800 < picked.count("b") < 1200
    assert 800 < once < 1200
