from __future__ import annotations

import pytest

from crashmq.scenarios.catalogue.scenarios import SCENARIOS, Scenario

EVERY_SCENARIO = pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)


def test_a_scenario_is_found_by_its_own_name() -> None:
    assert all(name == scenario.name for name, scenario in SCENARIOS.items())


@EVERY_SCENARIO
def test_both_flush_modes_and_several_sizes_are_in_every_scenario(
    scenario: Scenario,
) -> None:
    assert {setup.flush_mode for setup in scenario.setups} == {
        "ASYNC_FLUSH",
        "SYNC_FLUSH",
    }
    assert {setup.log_file_size for setup in scenario.setups} >= {4096, 8192, 16384}
    assert {setup.queue_file_units for setup in scenario.setups} >= {7, 10, 40}


@EVERY_SCENARIO
def test_a_burst_can_fill_more_than_one_small_log_file(scenario: Scenario) -> None:
    assert max(scenario.space.burst_sizes) * 130 > 2048


@EVERY_SCENARIO
def test_hypothesis_shrinks_towards_the_plainest_setup(scenario: Scenario) -> None:
    plainest = scenario.setups[0]

    assert plainest.log_file_size == 4096
    assert plainest.flush_mode == "ASYNC_FLUSH"
