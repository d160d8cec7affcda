"""What a listener is shown of a message, compared with the message's record."""

from __future__ import annotations

import pytest

from crashmq.models.files.record import Record
from crashmq.models.history import OneQueue, Shown
from crashmq.models.laws.listening import (
    a_listener_in_order_has_one_batch,
    a_listener_is_shown_what_was_stored,
)

AT_C0 = OneQueue("c0", "g", "T0", 1)


def record(topic: str = "T0", properties: bytes = b"TAGS\x01a\x02") -> Record:
    host = bytes((127, 0, 0, 1, 0, 0, 42, 159))
    places = (2, 3, 0, 500, 0, b"body", properties)
    return Record(1000, 150, topic, *places, -626843481, 7, 0, 400, host, host, 1, 0)


SHOWN = Shown("T0", 2, 3, 1000, 500, b"body", {"TAGS": "a"})


def told(shown: Shown, stored: Record, tries: int = 1) -> list[str]:
    law = a_listener_is_shown_what_was_stored
    return [one.seen for one in law.violations(AT_C0, shown, stored, tries)]


def test_con_35_lets_a_message_pass_that_is_shown_as_stored() -> None:
    assert told(SHOWN, record()) == []
    assert told(SHOWN, record(), tries=4) == []


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("topic", "T1"), ("queue_id", 0), ("queue_offset", 4)),
        *(("phy_offset", 0), ("store_timestamp", 400), ("body", b"bod")),
        ("properties", {}),
    ],
)
def test_con_35_names_the_field_that_is_shown_wrong(field: str, value: object) -> None:
    (seen,) = told(SHOWN._replace(**{field: value}), record())  # type: ignore[arg-type]

    assert seen.startswith(f"its {field} is")


def test_con_35_shows_the_original_topic_of_the_groups_own_retries_alone() -> None:
    of_t1 = b"RETRY_TOPIC\x01T1\x02"
    shown = SHOWN._replace(properties={"RETRY_TOPIC": "T1"})

    assert told(shown._replace(topic="T1"), record("%RETRY%g", of_t1)) == []
    assert told(shown._replace(topic="%RETRY%g"), record("%RETRY%g", of_t1))
    assert told(shown._replace(topic="%RETRY%h"), record("%RETRY%h", of_t1)) == []
    assert told(shown, record("T0", of_t1)) == []


def test_con_35_counts_the_tries_of_the_record() -> None:
    assert told(SHOWN, record(), tries=0) == ["it is shown with 0 tries"]


def test_con_40_counts_the_batches_of_a_queue_that_a_listener_has() -> None:
    assert a_listener_in_order_has_one_batch.violations(AT_C0, 3, 0) == []
    assert len(a_listener_in_order_has_one_batch.violations(AT_C0, 3, 1)) == 1
