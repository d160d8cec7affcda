from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

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
