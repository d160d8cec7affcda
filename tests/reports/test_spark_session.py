from __future__ import annotations

import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from crashmq.harness.mutants.operators.generate import Drawing, sample
from crashmq.harness.mutants.operators.operator_campaign import Drawn
from crashmq.harness.mutants.operators.operator_hunt import OperatorHunt, search
from crashmq.reports.errors import BadMaster

spark = pytest.importorskip("crashmq.reports.spark", reason="pyspark is not installed")


def test_a_master_that_is_not_there_is_told_before_anything_is_written(
    tmp_path: Path,
) -> None:
    with pytest.raises(BadMaster):
        spark.open_session("here", tmp_path)

    assert list(tmp_path.iterdir()) == []


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_the_session_is_quiet_local_and_in_utc(session: Any) -> None:
    conf = session.conf

    assert conf.get("spark.ui.enabled") == "false"
    assert conf.get("spark.sql.session.timeZone") == "UTC"
    assert conf.get("spark.sql.shuffle.partitions") == "1"
    assert conf.get("spark.driver.host") == "127.0.0.1"


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_a_second_call_joins_the_context_there_is(session: Any, tmp_path: Path) -> None:
    again = spark.open_session(None, tmp_path)

    assert again.sparkContext is session.sparkContext


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_starting_spark_leaves_the_environment_as_it_was(
    session: Any, tmp_path: Path
) -> None:
    before = dict(os.environ)

    spark.open_session(None, tmp_path)

    assert dict(os.environ) == before


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_results_come_as_they_are_done_and_who_leaves_cancels_the_rest(
    session: Any,
) -> None:
    assert sorted(spark.mapped_as_done(session, str, [3, 1, 2])) == ["1", "2", "3"]

    some = spark.mapped_as_done(session, str, list(range(200)))
    next(some)
    some.close()

    tracker = session.sparkContext.statusTracker()
    done = len(tracker.getJobIdsForGroup("crashmq one by one"))
    assert done < 200


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_who_leaves_cancels_a_job_that_spark_has_not_received_yet(
    session: Any, tmp_path: Path
) -> None:
    def work(number: int, ended: str = str(tmp_path / "ended")) -> int:
        if number:
            threading.Event().wait(10)
            Path(ended).touch()
        return number

    some = spark.mapped_as_done(session, work, [0, 1])
    next(some)  # so that its thread has begun with the other one
    some.close()

    assert not (tmp_path / "ended").exists()


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_a_hunt_by_a_task_of_spark_has_the_row_of_a_process(session: Any) -> None:
    (drawn,) = [Drawn.of(made) for made in sample(3, 1, Drawing(), ("store.flush",))]
    task = OperatorHunt(drawn.mutant(), drawn.operator, drawn.line, 3, 0.2)

    (there,) = spark.mapped_as_done(session, search, [task])
    here = search(task)

    assert replace(there, cpu_us=0) == replace(here, cpu_us=0)
    assert here.is_killed
