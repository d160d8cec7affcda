"""What the judge excuses for a reason, and that it does so then alone."""

from __future__ import annotations

import pytest

from crashmq.harness.episodes.episode import EpisodeResult, run_program
from crashmq.models.files.store_image import read_store
from crashmq.models.knowledge.reference import ReferenceModel
from crashmq.models.knowledge.start_over import extended
from crashmq.models.knowledge.walk_start import deletions_known
from crashmq.models.ops import (
    AdvanceClock,
    Crash,
    Damage,
    DeleteManually,
    DiskFault,
    During,
    FillDisk,
    Op,
    PullMessage,
    PutMessage,
    Restart,
    RunService,
    Shutdown,
    Together,
)
from crashmq.models.program import Program, Setup

PUT, HALF = PutMessage("T0", 0, 16), PutMessage("T0", 0, 1900)  # two fill a log file
REPUT, MARK = RunService("reput"), RunService("checkpoint")
FLUSH, FLUSH_TWICE = (RunService("flush_commit_log", times) for times in (1, 2))
T0 = ("T0", 0)


def run(setup: Setup, *ops: Op) -> EpisodeResult:
    return run_program(Program(setup, ops))


@pytest.mark.parametrize("filled", [87, 95])
def test_on_a_full_disk_files_may_go_that_have_not_expired(filled: int) -> None:
    setup = Setup(
        cleans=True, cleans_forcibly=True, disk_capacity=40_000, flush_least_pages=0
    )

    result = run(
        setup,
        *(HALF, HALF, HALF, FLUSH_TWICE, REPUT),
        *(FillDisk(filled), RunService("clean_commit_log")),
    )

    assert result.law == ""
    assert max(step.positions.min_phy_offset for step in result.trace) == 4096


@pytest.mark.parametrize("cut", [5, 6, 7])
def test_a_crash_amid_a_time_of_the_checkpoint_may_leave_one_that_nobody_wrote(
    cut: int,
) -> None:
    result = run(
        Setup(flush_least_pages=0),
        # The next millisecond carries into the third byte of the clock.
        *(AdvanceClock(0x97FF), PUT, FLUSH, MARK, AdvanceClock(1), PUT, FLUSH),
        During(MARK, 1, Crash("process_kill", cut=cut)),
        Restart(),
    )

    assert result.law == ""


@pytest.mark.parametrize("at", [12, 16, 20])
def test_what_no_crc_covers_may_rot_in_a_record_that_is_served(at: int) -> None:
    result = run(
        Setup(on_damage="serve"),
        *(PUT, PUT, PUT, REPUT, Shutdown()),
        *(
            Damage("commitlog[0]", "flip", at=at),
            Damage("commitlog[0]", "flip", at=225),
        ),
        *(Restart(), PullMessage("T0", 0, 0)),
    )

    assert result.law == ""


@pytest.mark.parametrize(("log_min", "remembered"), [(0, {}), (600, {T0: 500})])
def test_a_deletion_is_remembered_for_the_store_only_if_all_dead_has_expired(
    log_min: int, remembered: dict[tuple[str, int], int]
) -> None:
    """The first one was lost with the end of the log, the second one forgotten."""
    model = ReferenceModel("ASYNC_FLUSH")
    model.deleted = {T0: 500}

    adopted = deletions_known(model, {}, {}, log_min, log_min)

    assert adopted.places == remembered


def test_what_short_log_files_lack_is_read_as_zeros() -> None:
    first, second = (f"commitlog/{base:020d}" for base in (0, 4096))
    short = read_store({first: b"a" * 100, second: b"b" * 4096})

    read = extended(short, 4096)

    assert bytes(read.commit_log.files[0].data) == b"a" * 100 + bytes(3996)
    assert bytes(read.commit_log.files[1].data) == b"b" * 4096
    assert extended(read, 4096) is read


def test_the_row_of_an_episode_counts_each_excuse_by_law_and_fact() -> None:
    # What a read finds that runs beside a put, nobody can say of it alone.
    beside = During(PUT, 1, PullMessage("T0", 0, 0))

    result = run(Setup(), PUT, REPUT, beside)

    excuses = result.record.excuses
    assert result.law == ""
    assert ("RD-2", "alone", 1) in [(e.law, e.fact, e.times) for e in excuses]
    keys = [(each.law, each.fact) for each in excuses]
    assert keys == sorted(set(keys))


def test_what_is_asked_each_time_has_no_excuse_in_the_row() -> None:
    result = run(Setup(), PUT, REPUT, PullMessage("T0", 0, 0))

    assert "RD-2" in {each.law for each in result.record.verdicts}
    assert "RD-2" not in {each.law for each in result.record.excuses}


def test_after_a_failed_flush_of_a_queue_the_cleaner_may_leave_what_has_expired() -> (
    None
):
    fails = DiskFault("sync", "EIO", path="consumequeue")

    result = run(
        Setup(cleans=True, flush_least_pages=0, reserved_hours=1),
        *(HALF, HALF, HALF, FLUSH_TWICE, REPUT, AdvanceClock(7_200_000)),
        During(RunService("flush_consume_queue", 1), 0, fails),
        *(DeleteManually(), RunService("clean_commit_log")),
    )

    assert result.law == ""
    excuses = {(each.law, each.fact) for each in result.record.excuses}
    assert ("DEL-4", "queues_worked") in excuses


@pytest.mark.slow
@pytest.mark.parametrize("at_action", range(1, 30))
def test_a_stop_whose_table_could_not_be_synced_owes_no_durable_table(
    at_action: int,
) -> None:
    setup = Setup(disk_profile="posix_min", keeps_progress=True, delivers_delayed=True)
    fault = DiskFault("sync", "EIO", path="config")

    result = run(setup, PUT, Restart(), During(Shutdown(), at_action, fault))

    assert result.law == "", result.message


DELAYED = PutMessage("T0", 0, 1900, delay_level=1)
DELIVER, SECOND = RunService("deliver_delayed"), AdvanceClock(1000)


def test_a_topics_first_put_may_take_longer_than_the_store_counts() -> None:
    waits = During(PutMessage("T0", 0, 1), 1, AdvanceClock(1))

    assert run(Setup(delivers_delayed=True), waits).law == ""


@pytest.mark.parametrize("puts", [1, 5, 9])
def test_deliveries_may_be_refused_once_the_disk_is_full(puts: int) -> None:
    setup = Setup(disk_capacity=62_000, delivers_delayed=True)
    messages = [DELAYED] * puts

    result = run(setup, *messages, SECOND, FLUSH_TWICE, REPUT, DELIVER, DELIVER)

    assert result.law == ""
    hits = {one.probe for one in result.record.probes}
    assert ("schedule.failed" in hits) is (puts == 9)


def test_what_expired_before_it_was_due_counts_as_passed() -> None:
    setup = Setup(cleans=True, reserved_hours=2, delivers_delayed=True)
    expires = (AdvanceClock(7_200_000), DeleteManually())
    cleans, persists = (
        RunService("clean_commit_log"),
        RunService("persist_delay_offset"),
    )
    before = (DELAYED, DELAYED, DELAYED, FLUSH_TWICE, FLUSH_TWICE, REPUT, *expires)

    after = run(setup, *before, cleans, DELIVER, persists)
    beside = run(setup, *before, Together((cleans, DELIVER)), persists)

    assert (after.law, beside.law) == ("", "")


def test_what_is_delivered_at_the_end_is_confirmed_too() -> None:
    setup = Setup(duplicates=True, delivers_delayed=True)

    assert run(setup, DELAYED).law == ""
