"""ConsumerFilterManager: who filters, what its bit maps cover, and its file."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from store_builder import StoreBuilder

from crashmq.engine.broker.broker_config import BrokerConfig
from crashmq.engine.broker.filter.consumer_filter_data import (
    NOTHING_COVERED,
    ConsumerFilterData,
)
from crashmq.engine.broker.filter.consumer_filter_manager import (
    PATH,
    ConsumerFilterManager,
)
from crashmq.engine.broker.filter.filter_table import decode_table, encode_table
from crashmq.engine.remoting.filter_api import build_subscription_data
from crashmq.engine.remoting.subscription_data import SubscriptionData
from crashmq.engine.store.errors import StoreCorrupted
from crashmq.models.files.filters import read_filters, whole_filters

AskFilters = Callable[[Sequence[Mapping[str, Any]]], list[Any]]

FIXTURE = Path(__file__).parents[1] / "golden" / "rocketmq-5.3.0-consumerFilter.json"
DAY_MS = 24 * 3600 * 1000
CONFIG = BrokerConfig(enable_property_filter=True)


def manager_on(store: StoreBuilder, config: BrokerConfig = CONFIG) -> Any:
    manager = ConsumerFilterManager(config, store.mount, store.runtime)
    manager.load()
    return manager


def opened_on(store: StoreBuilder, newest: int = 5) -> ConsumerFilterManager:
    manager: ConsumerFilterManager = manager_on(store)
    manager.open(lambda: newest)
    return manager


def asked(expression: str, version: int = 1, topic: str = "T0") -> SubscriptionData:
    return build_subscription_data(topic, expression, "SQL92", version)


def known(manager: ConsumerFilterManager) -> ConsumerFilterData:
    found = manager.get("T0", "g")
    assert found is not None
    return found


def test_a_filter_covers_what_is_stored_after_the_newest_message(
    store: StoreBuilder,
) -> None:
    manager = opened_on(store, newest=1000)

    assert manager.register_one("g", asked("a > 5"))

    assert [known(manager).covers(at) for at in (999, 1000, 1001)] == [0, 0, 1]
    assert manager.is_registered(known(manager))


def test_what_is_no_expression_is_not_registered(store: StoreBuilder) -> None:
    manager = opened_on(store)

    assert not manager.register_one("g", asked("a > 'x'"))
    assert not manager.register_one("g", SubscriptionData("T0", ""))
    assert manager.get("T0", "g") is None


def test_tags_are_no_matter_of_filters(store: StoreBuilder) -> None:
    manager = opened_on(store)

    manager.register("g", [build_subscription_data("T0", "A || B")])

    assert manager.get_all() == []


def test_an_older_subscription_changes_nothing(store: StoreBuilder) -> None:
    manager = opened_on(store)
    manager.register_one("g", asked("a > 5", version=7))

    assert not manager.register_one("g", asked("b = 'x'", version=7))
    assert not manager.register_one("g", asked("b = 'x'", version=6))

    assert known(manager).expression == "a > 5"


def test_the_same_subscription_revives_a_group_with_what_it_covers(
    store: StoreBuilder,
) -> None:
    manager = opened_on(store)
    manager.register_one("g", asked("a > 5", version=7))
    before = known(manager)

    manager.unregister("g")
    assert known(manager).is_dead
    assert manager.register_one("g", asked("b = 'x'", version=7))

    assert known(manager) == before


def test_a_newer_version_of_the_same_keeps_what_it_covers(store: StoreBuilder) -> None:
    manager = opened_on(store, newest=3)
    manager.register_one("g", asked("a > 5", version=7))
    manager.open(lambda: 3)

    assert manager.register_one("g", asked("a > 5", version=8))

    assert (known(manager).client_version, known(manager).covers_after) == (8, 3)


def test_a_changed_expression_begins_anew(store: StoreBuilder) -> None:
    times = [3, 9]
    manager = manager_on(store)
    manager.open(lambda: times.pop(0))
    manager.register_one("g", asked("a > 5", version=7))
    before = known(manager)

    assert manager.register_one("g", asked("b = 'x'", version=8))

    assert known(manager).covers_after == 9
    assert not manager.is_registered(before)
    assert not manager.register_one("g", asked("= 5", version=9))
    assert manager.get("T0", "g") is None


def test_a_topic_that_a_group_names_no_more_dies(store: StoreBuilder) -> None:
    manager = opened_on(store)
    manager.register("g", [asked("a > 5"), asked("a > 5", topic="T1")])

    manager.register("g", [asked("a > 5")])

    dead = {data.topic: data.is_dead for data in manager.get_all()}
    assert dead == {"T0": False, "T1": True}


@pytest.mark.parametrize(("version", "is_dead"), [(1, False), (2, False), (3, True)])
def test_newer_tags_end_an_expression_and_older_ones_do_not(
    store: StoreBuilder, version: int, is_dead: bool
) -> None:
    manager = opened_on(store)
    manager.register("g", [asked("a > 5", version=2)])

    manager.register("g", [build_subscription_data("T0", "TagA", "TAG", version)])

    assert known(manager).is_dead is is_dead


def test_a_group_that_is_gone_is_forgotten_after_a_day(store: StoreBuilder) -> None:
    manager = opened_on(store)
    manager.register_one("g", asked("a > 5"))
    manager.unregister("g")

    store.runtime.advance(DAY_MS - 1)
    manager.encode()
    assert manager.get_by_topic("T0")
    store.runtime.advance(1)

    assert json.loads(manager.encode()) == {"filterDataByTopic": {}}


def loaded_with(store: StoreBuilder, written: dict[str, int]) -> ConsumerFilterManager:
    """A manager that has loaded a filter of g with such fields."""
    manager = opened_on(store)
    manager.register_one("g", asked("a > 5"))
    table = json.loads(manager.encode())
    table["filterDataByTopic"]["T0"]["groupFilterData"]["g"].update(written)
    manager.decode(json.dumps(table))
    return manager


@pytest.mark.parametrize(
    "written",
    [{"deadTime": -1}, {"bornTime": 1 << 60}, {"deadTime": 1 << 60}, {"bornTime": -1}],
)
def test_a_loaded_filter_is_gone_whatever_its_times_say(
    store: StoreBuilder, written: dict[str, int]
) -> None:
    manager = loaded_with(store, written)

    assert known(manager).is_dead
    store.runtime.advance(DAY_MS)
    assert json.loads(manager.encode()) == {"filterDataByTopic": {}}


@pytest.mark.parametrize("written", [{"bornTime": -1}, {"bornTime": 0}])
def test_a_loaded_filter_lives_again_whatever_its_birth(
    store: StoreBuilder, written: dict[str, int]
) -> None:
    manager = loaded_with(store, written)

    manager.register_one("g", asked("a > 5", version=9))

    assert not known(manager).is_dead


def test_a_load_finds_consumers_gone_and_covers_nothing_yet(
    store: StoreBuilder,
) -> None:
    manager = opened_on(store)
    manager.register_one("g", asked("a > 5", version=7))
    store.runtime.advance(100_000)
    manager.persist()

    again = manager_on(store)

    found = known(again)
    assert found.dead_time == store.runtime.now_ms() - 30_000
    assert found.covers_after == NOTHING_COVERED
    again.open(lambda: 77)
    assert known(again).covers_after == 77


def test_a_table_of_another_bloom_filter_is_passed_over(store: StoreBuilder) -> None:
    opened_on(store).persist()
    manager = opened_on(store)
    manager.register_one("g", asked("a > 5"))
    manager.persist()

    other = BrokerConfig(enable_property_filter=True, expect_consumer_num_use_filter=64)

    assert manager_on(store, other).get_all() == []


@pytest.mark.parametrize("text", ["", "{", '{"filterDataByTopic":{"T0":{"x":1}}}x'])
def test_a_table_that_nobody_can_read_refuses_the_start(
    store: StoreBuilder, text: str
) -> None:
    store.disk.load({PATH: text.encode(), f"{PATH}.bak": b"\0"})

    with pytest.raises(StoreCorrupted, match="neither it nor"):
        manager_on(store)


def test_the_file_of_rocketmq_is_read_and_written_byte_for_byte() -> None:
    text = FIXTURE.read_bytes().decode()

    found = decode_table(text)

    assert len(found) == 46
    assert all(data.condition is not None for data in found)
    assert sum(data.is_dead for data in found) == 1
    assert encode_table(found) == text
    rows = read_filters(text.encode())
    assert rows is not None
    assert {key[0] for key, _ in rows} == {data.consumer_group for data in found}


@pytest.mark.slow
@pytest.mark.rocketmq
def test_rocketmq_reads_what_we_write_and_we_what_it_writes(
    store: StoreBuilder, tmp_path: Path, rocketmq_filters: AskFilters
) -> None:
    manager = opened_on(store)
    for n, data in enumerate(decode_table(FIXTURE.read_bytes().decode())):
        told = asked(data.expression, n + 1, data.topic)
        assert manager.register_one(data.consumer_group, told)
    manager.persist()
    ours = store.disk.files()[PATH]
    (tmp_path / "config").mkdir()
    (tmp_path / PATH).write_bytes(ours)

    (told,) = rocketmq_filters([{"verb": "load", "root": str(tmp_path)}])

    seen = {(row[0], row[1]): row for row in told["rows"]}
    assert told["loaded"] is True
    assert len(seen) == len(manager.get_all())
    for data in manager.get_all():
        row = seen[data.topic, data.consumer_group]
        assert row[2:5] == [data.expression, "SQL92", data.born_time]
        assert row[6:] == [
            data.client_version,
            [*data.bloom_filter_data.bit_pos],
            data.bloom_filter_data.bit_num,
            True,
        ]
    again = decode_table(told["text"])
    assert {(one.topic, one.consumer_group) for one in again} == {*seen}
    # It has loaded its maps into smaller ones, whose order is another.
    assert json.loads(encode_table(again)) == json.loads(told["text"])
    assert read_filters(ours) == whole_filters({PATH: told["text"].encode()})
