"""Our engine goes on with a store of RocketMQ, RocketMQ with that, and ours again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from corpus_store import MADE, TESTED, feature_of, real_store
from corpus_work import Work
from expected_today import ENGINE, ROUND_TRIP, marked, right_today
from our_answers import LATER_MS, answer_of, newest_ms
from our_stores import config_of, put_mixed, started
from rocketmq import Brokers, Row, Server

PUT = 30
VERSION = "5.3.0"
SAMPLE = 10
SERVED = [name for name in TESTED if feature_of(name).takes == "serves"]
TAKEN = right_today(SERVED, ENGINE)


def sampled(names: list[str]) -> list[str]:
    """Ten directories of one version, as different as they can be.

    Each starts a JVM twice, and each version has jars of its own to be fetched first;
    ``$CRASHMQ_CORPUS`` tries every directory that was made, of each version.
    """
    of_version = [name for name in names if name.startswith(f"{VERSION}-")]
    return of_version[:: max(1, len(of_version) // SAMPLE)][:SAMPLE]


@pytest.mark.slow
@pytest.mark.rocketmq
@pytest.mark.parametrize("name", marked(TAKEN if MADE else sampled(TAKEN), ROUND_TRIP))
def test_engine_rocketmq_engine(name: str, brokers: Brokers, tmp_path: Path) -> None:
    real = real_store(name, tmp_path)
    config = config_of(real.settings)

    store = started(real.root, config, newest_ms(real) + LATER_MS)
    ours = put_mixed(store, 1_000, PUT, 100)
    assert store.shutdown()
    work = Work(real.version, real.home, real.settings, brokers)
    with work.life():
        work.mixed(2_000, PUT)
    copy = tmp_path / "copy"
    copy.mkdir()
    told = Server(real.version, brokers).served(real.root, real.settings, copy)

    assert (told["outcome"], told["why"]) == ("served", None)
    before = places_of(real.manifest)
    assert places_of(told) == before | places(ours) | places(work.acknowledged)
    assert len(places_of(told)) == len(before) + 2 * PUT
    answer = answer_of(replace(real, manifest=real.manifest | told), config)
    assert answer.outcome == "serves", answer.why


def places_of(manifest: Row) -> set[tuple[str, int, int, int, int]]:
    """(topic, queue_id, queue_offset, phy_offset, size) of all that is served."""
    return {
        place
        for queue in manifest["queues"]
        for place in places(
            [{**message, **_key(queue)} for message in queue["messages"]]
        )
    }


def _key(queue: Row) -> Row:
    return {"topic": queue["topic"], "queue_id": queue["queue_id"]}


def places(rows: list[Row]) -> set[tuple[str, int, int, int, int]]:
    names = ("topic", "queue_id", "queue_offset", "phy_offset", "size")
    return {tuple(row[name] for name in names) for row in rows}
