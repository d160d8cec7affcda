"""Config files that somebody edits, and what counts as a table all the same."""

from __future__ import annotations

import json

import pytest

from crashmq.models.files.broker_json import read_table
from crashmq.models.files.config_files import (
    ENDS_PATH,
    GROUPS_PATH,
    TOPICS_PATH,
    rows_of,
)
from crashmq.models.files.rewording import CHANGES, reworded

TEXT = '{\n\t"a":{\n\t\t"t":[1,{"b":true}]\n\t},\n\t"n":{0:5,1:"x"\n\t}\n}'
VERSION = {"counter": 1, "stateVersion": 0, "timestamp": 7}


def every_change(at: int) -> set[str]:
    return {f"{reworded(TEXT, at, change)}" for change in range(CHANGES)}


def test_each_member_can_be_changed_or_left_out() -> None:
    assert '{\n\t"a":null,\n\t"n":{0:5,1:"x"\n\t}\n}' in every_change(2)
    assert '{\n\t"a":{\n\t\t"t":[1,{"b":1}]\n\t},\n\t"n":{0:5,1:"x"\n\t}\n}' in (
        every_change(0)
    )
    assert '{\n\t"a":{\n\t\t\n\t},\n\t"n":{0:5,1:"x"\n\t}\n}' in every_change(1)
    assert '{\n\t"a":{\n\t\t"t":[1,{"b":true}]\n\t},\n\t"n":{0:-1,1:"x"\n\t}\n}' in (
        every_change(3)
    )
    assert every_change(0) == every_change(6)
    assert every_change(-1) == every_change(5)


def test_most_changes_leave_a_text_that_can_be_read() -> None:
    read = torn = 0
    for at in range(6):
        for text in every_change(at):
            try:
                read_table(text.encode())
                read += 1
            except ValueError:
                torn += 1

    assert read > 5 * torn > 0


@pytest.mark.parametrize("text", ["", "7", "[1]", "{}", '{"a":1', "}"])
def test_what_has_no_member_stays_as_it_is(text: str) -> None:
    assert reworded(text, 0, 0) is None


def rows(path: str, **fields: object) -> object:
    return rows_of(path, json.dumps(fields).encode())


def test_a_row_with_a_value_of_another_kind_makes_no_table() -> None:
    def of(**row: object) -> object:
        return rows(TOPICS_PATH, topicConfigTable={"T": row}, dataVersion=VERSION)

    assert of() == {"T": {}}
    assert of(perm=None, added=[1]) is not None
    assert of(order=True, topicName="U", attributes={"a": "b"}) is not None
    for wrong in (
        *({"perm": "6"}, {"order": 1}, {"topicName": 7}, {"attributes": {"a": 1}}),
        *({"readQueueNums": -1}, {"writeQueueNums": 1 << 31}, {"perm": True}),
    ):
        assert of(**wrong) is None, wrong
    assert rows(TOPICS_PATH, topicConfigTable={"T": None}) is None
    assert rows(TOPICS_PATH, topicConfigTable=None) is None
    assert rows(TOPICS_PATH, dataVersion=None) is None
    assert rows(TOPICS_PATH, dataVersion={"counter": True}) is None
    assert rows(TOPICS_PATH) == {}


def test_a_number_of_64_bits_belongs_where_java_has_a_long() -> None:
    def of(**row: object) -> object:
        return rows(GROUPS_PATH, subscriptionGroupTable={"g": row})

    assert of(brokerId=(1 << 63) - 1) is not None
    assert of(brokerId=1 << 63) is None
    assert of(retryMaxTimes=1 << 31) is None
    assert of(retryMaxTimes=-1) is not None
    assert rows(GROUPS_PATH, forbiddenTable=7) is None


@pytest.mark.parametrize(
    ("fields", "is_whole"),
    [
        ({}, True),
        ({"crashed": 3}, True),
        ({"crashed": 4}, False),
        ({"crashed": None}, False),
        ({"life": True}, False),
        ({"life": 0}, False),
        ({"life": 1 << 62}, False),
        ({"hasTold": 1}, False),
        ({"ends": None}, False),
        ({"ends": {"T@0": [1, 0, 3, 9]}}, True),
        ({"ends": {"T@0": [1, 0, 4, 9]}}, False),
        ({"ends": {"T@0": [1, 9, 3, 9]}}, False),
        ({"ends": {"T@0": [3, 0, 1, 9]}}, False),
        ({"ends": {"T@0": [1, -1]}}, False),
        ({"ends": {"T@0": [0, 1]}}, False),
        ({"ends": {"T@0": [1, 0, None]}}, False),
        ({"ends": {"T@0": []}}, False),
        ({"ends": {"T@x": [1, 0]}}, False),
    ],
)
def test_ends_of_lives_rise_up_to_the_present_one(
    fields: dict[str, object], *, is_whole: bool
) -> None:
    found = rows(ENDS_PATH, **{"life": 3, "hasTold": True, "ends": {}, **fields})

    assert (found is not None) is is_whole
