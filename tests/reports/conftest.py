"""One Spark session for all tests of one process, and frames of a few rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from crashmq.reports.errors import EnvironmentMissing
from crashmq.reports.records import EpisodeRecord

SMALL = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.driver.memory": "512m",
    "spark.python.task.killTimeout": "100ms",
}


@pytest.fixture(scope="session")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    spark = pytest.importorskip(
        "crashmq.reports.spark", reason="pyspark is not installed"
    )
    try:
        session = spark.open_session(
            "local[1,4]", tmp_path_factory.mktemp("spark"), SMALL
        )
    except EnvironmentMissing as error:
        pytest.skip(str(error))
    yield session
    session.stop()


@pytest.fixture
def frame_of(session: Any) -> Callable[[Sequence[EpisodeRecord]], Any]:
    """Episodes as the frame that ``read_run`` would give."""
    shards = pytest.importorskip(
        "crashmq.reports.shards", reason="pyarrow is not installed"
    )
    return lambda rows: session.createDataFrame(shards.table_of(rows, EpisodeRecord))
