from __future__ import annotations

import unittest

import pytest

from crashmq.harness.searches.machine import machine_for
from crashmq.harness.searches.search_settings import search_settings
from crashmq.scenarios.catalogue.scenarios import SCENARIOS

CASES = 12


def machine_test(scenario_name: str) -> type[unittest.TestCase]:
    """The scenario's machine as a test of a size for every commit."""
    machine = machine_for(scenario_name)
    test_case = machine.TestCase
    test_case.settings = search_settings(
        "ci",
        max_examples=CASES,
        steps=machine.scenario.machine_steps,
        shrinks=False,
    )
    marked: type[unittest.TestCase] = pytest.mark.slow(test_case)
    return marked


TestCleanRestart = machine_test("clean_restart")
TestProcessKill = machine_test("process_kill")
TestPowerLoss = machine_test("power_loss")
TestTruncatedFiles = machine_test("truncated_files")
TestReputBehind = machine_test("reput_behind")
TestCrashInRecovery = machine_test("crash_in_recovery")
TestCheckpointWindow = machine_test("checkpoint_window")
TestWindowDamage = machine_test("window_damage")
TestFlushModes = machine_test("flush_modes")
TestTransientPool = machine_test("transient_pool")
TestIndex = machine_test("index")
TestBitRot = machine_test("bit_rot")
TestClockJumps = machine_test("clock_jumps")
TestExpiry = machine_test("expiry")
TestDiskFull = machine_test("disk_full")
TestDeletedTopics = machine_test("deleted_topics")
TestForeignFiles = machine_test("foreign_files")
TestLatentErrors = machine_test("latent_errors")
TestFailingCalls = machine_test("failing_calls")
TestLostWrites = machine_test("lost_writes")
TestTransactions = machine_test("transactions")
TestBatchAndLmq = machine_test("batch_and_lmq")
TestLargePulls = machine_test("large_pulls")
TestInterleavings = machine_test("interleavings")
TestInterleavedDeletion = machine_test("interleaved_deletion")
TestContention = machine_test("contention")
TestOverlaps = machine_test("overlaps")
TestMixtures = machine_test("mixtures")
TestBrokerMixtures = machine_test("broker_mixtures")
TestConsumerMixtures = machine_test("consumer_mixtures")
TestTornBlocks = machine_test("torn_blocks")
TestGroupProgress = machine_test("group_progress")
TestOffsetFiles = machine_test("offset_files")
TestLongPolling = machine_test("long_polling")
TestFilters = machine_test("filters")
TestFilterFiles = machine_test("filter_files")
TestAdoptedStores = machine_test("adopted_stores")
TestUnmarkedStores = machine_test("unmarked_stores")
TestDelayed = machine_test("delayed")
TestEditedTables = machine_test("edited_tables")


def test_every_scenario_has_its_machine_here() -> None:
    here = [
        name for name in globals() if name.startswith("Test") and name != "TestCase"
    ]

    assert len(here) == len(SCENARIOS)


TestRebalance = machine_test("rebalance")
TestSubscriptions = machine_test("subscriptions")
TestBroadcast = machine_test("broadcast")
TestConsumerCrash = machine_test("consumer_crash")
TestConsumersAmongOthers = machine_test("consumers_among_others")
TestRetries = machine_test("retries")
