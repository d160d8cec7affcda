from __future__ import annotations

import pytest

from crashmq.engine.client.impl.consumer.subscription_table import SubscriptionTable
from crashmq.engine.remoting.subscription_data import SubscriptionData
from crashmq.harness.scheduling.sim_runtime import SimRuntime


@pytest.fixture
def runtime() -> SimRuntime:
    return SimRuntime(10_000_000)


@pytest.fixture
def table(runtime: SimRuntime) -> SubscriptionTable:
    return SubscriptionTable(runtime)


def subscribed(table: SubscriptionTable, expression: str) -> SubscriptionData:
    table.subscribe("T", expression)
    data = table.get("T")
    assert data is not None
    return data


@pytest.mark.parametrize("passed_ms", [0, 1, -3_600_000])
@pytest.mark.parametrize("is_unsubscribed", [False, True])
def test_each_version_is_newer_than_the_one_before(
    table: SubscriptionTable, runtime: SimRuntime, passed_ms: int, is_unsubscribed: bool
) -> None:
    before = subscribed(table, "A")
    runtime.advance(passed_ms)
    if is_unsubscribed:
        table.unsubscribe("T")

    assert subscribed(table, "B").sub_version > before.sub_version


def test_a_bumped_subscription_is_still_asked(table: SubscriptionTable) -> None:
    before = subscribed(table, "A")
    table.bump("T")
    after = table.get("T")

    assert after is not None
    assert after.sub_version > before.sub_version
    assert table.is_still_asked(before)
    assert table.is_still_asked(after)


@pytest.mark.parametrize("last", ["A", "B"])
def test_what_was_subscribed_before_something_else_is_asked_no_more(
    table: SubscriptionTable, last: str
) -> None:
    before = subscribed(table, "A")
    subscribed(table, "B")

    assert table.is_still_asked(subscribed(table, last))
    assert not table.is_still_asked(before)


def test_of_an_unsubscribed_topic_nothing_is_asked(table: SubscriptionTable) -> None:
    before = subscribed(table, "A")
    table.unsubscribe("T")

    table.bump("T")

    assert table.get("T") is None
    assert not table.is_still_asked(before)
