"""Probes: which branches nothing from outside can reach, and nobody asks for."""

from __future__ import annotations

import pytest

import crashmq.engine.store.message_store  # noqa: F401 - declares every probe of the store
from crashmq.engine.host.probe import declared_probes, probe, unreachable_probes
from crashmq.scenarios.catalogue.scenarios import SCENARIOS

UNREACHABLE = {
    "index_file.select.looped",
    "mapped_file.flush.gone",
    "mapped_file_queue.reset",
    "mapped_file_queue.reset.too_far",
    "reput.below_min",
}


def test_only_these_branches_are_said_to_be_out_of_reach() -> None:
    assert set(unreachable_probes()) == UNREACHABLE


def test_a_branch_out_of_reach_is_declared_and_no_scenario_requires_it() -> None:
    required = {name for one in SCENARIOS.values() for name in one.required_probes}

    assert unreachable_probes().keys() <= declared_probes().keys()
    assert not required & unreachable_probes().keys()


def test_a_name_is_declared_once() -> None:
    with pytest.raises(ValueError, match="declared twice"):
        probe("reput.below_min", "another sentence")
