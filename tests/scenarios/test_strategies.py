from __future__ import annotations

import pytest
from hypothesis import HealthCheck, find, given, settings
from hypothesis import strategies as st

from models.ops import Crash, Damage, During, Op, PutMessage, Restart
from models.program import Program, Setup, from_json, to_json
from scenarios.catalogue import SCENARIOS, Scenario
from scenarios.space import Label, Numbers, record_overhead
from scenarios.strategies import (
    RULES_MAX,
    crashed_restarts,
    damages,
    numbers,
    phrases,
    put_messages,
    setups,
    several,
)

EVERY_SCENARIO = pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
FEW = settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@EVERY_SCENARIO
def test_phrases_are_ops_that_a_case_file_can_hold(scenario: Scenario) -> None:
    @FEW
    @given(st.one_of(*phrases(scenario).values()))
    def holds(ops: tuple[Op, ...]) -> None:
        program = Program(Setup(), ops)
        assert from_json(to_json(program)) == program

    holds()


@EVERY_SCENARIO
def test_a_machine_has_at_most_nine_phrases_and_all_its_space_lists(
    scenario: Scenario,
) -> None:
    found = phrases(scenario)

    assert len(found) <= RULES_MAX or scenario.mixes  # those have all there are
    assert ("crash" in found) == ("crash" in scenario.space.kinds)
    assert ("damage" in found) == ("damage" in scenario.space.kinds)


def test_no_phrase_that_stops_the_store_leaves_it_down() -> None:
    scenario = SCENARIOS["truncated_files"]
    found = phrases(scenario)

    @FEW
    @given(found["damage"] | found["restart"])
    def ends_up(ops: tuple[Op, ...]) -> None:
        assert ops[-1] == Restart()

    ends_up()


def test_a_put_is_sized_to_the_log_files_of_the_same_test_case() -> None:
    scenario = SCENARIOS["clean_restart"]

    @FEW
    @given(setups(scenario), put_messages(scenario))
    def fits(setup: Setup, put: PutMessage) -> None:
        label = Label(put.tags, put.keys, put.wait_store_ok)
        record_size = put.body_size + record_overhead(put.topic, label)
        assert record_size <= setup.log_file_size - 8 + 1

    fits()


def test_a_number_shrinks_to_the_first_special_one() -> None:
    assert find(numbers(Numbers((5, 9), 100)), lambda _: True, settings=FEW) == 5


def test_a_crashed_restart_shrinks_to_the_first_action_and_nothing_surviving() -> None:
    restarts = crashed_restarts(SCENARIOS["power_loss"].space)

    smallest = find(restarts, lambda _: True, settings=FEW)

    assert smallest == During(Restart(), 1, Crash("power_loss"))


def test_a_deleted_file_has_no_offset_to_draw() -> None:
    drawn = damages(SCENARIOS["truncated_files"].space)

    deleted = find(
        drawn,
        lambda op: isinstance(op, Damage) and op.kind == "delete",
        settings=FEW,
    )

    assert isinstance(deleted, Damage)
    assert deleted == Damage(deleted.file, "delete")


def test_several_draws_as_many_as_one_of_the_counts() -> None:
    @FEW
    @given(several(st.booleans(), (0, 2)))
    def counted(drawn: tuple[bool, ...]) -> None:
        assert len(drawn) in (0, 2)

    counted()
