from __future__ import annotations

import pytest

from crashmq.engine.common.fastjson import Json, in_hash_order, pretty, read_json
from crashmq.engine.store.message.message import java_string_hash
from crashmq.models.files.broker_json import read_table


def test_integer_keys_are_bare_and_on_one_line() -> None:
    table: Json = {"t@g": {0: 2599, 1: 2602, 6: 103}, "empty": {}, "list": ["a", "b"]}

    assert pretty({"offsetTable": table}) == (
        '{\n\t"offsetTable":{\n\t\t"t@g":{0:2599,1:2602,6:103\n\t\t},\n'
        '\t\t"empty":{},\n\t\t"list":["a","b"]\n\t}\n}'
    )


def test_an_object_as_a_key_is_indented_as_a_value() -> None:
    key = (("brokerName", "broker-a"), ("queueId", 3), ("topic", "TopicTest"))

    assert pretty({"offsetTable": {key: 250}}) == (
        '{\n\t"offsetTable":{{\n\t\t\t"brokerName":"broker-a",\n\t\t\t"queueId":3,\n'
        '\t\t\t"topic":"TopicTest"\n\t\t}:250\n\t}\n}'
    )


VALUES: list[Json] = [
    {"a": {0: 1, 2: -3}, "b": [True, False, None], "c": 'é \\ " \t'},
    {(("n", 1), ("t", "T")): 7},
    [],
    {},
    0,
]


@pytest.mark.parametrize("value", VALUES, ids=str)
def test_what_is_written_is_read_again(value: Json) -> None:
    assert read_json(pretty(value)) == value


def test_quoted_keys_and_strict_json_are_read_too() -> None:
    assert read_json(' { "t" : { "0" : 5 , 1:6 } }\n') == {"t": {"0": 5, 1: 6}}


def test_no_torn_text_is_read() -> None:
    whole = pretty({"a": {0: 10, 1: 20}, "b": {(("t", "T"),): 1}})

    for end in range(len(whole)):
        with pytest.raises(ValueError, match="character"):
            read_json(whole[:end])


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "\0\0\0\0", "{} {}", "{1.5:2}", "{[1]:2}", "{true:1}", "01"),
        *(
            '{"a":1 2}',
            '{"a" 1}',
            "{a-b:1}",
            "{a:b}",
            "# c\n{}",
            "/* {}",
            '{"a\n":1}',
            '{"\\x":1}',
            "[" * 40,
            "9" * 30,
            f"{1 << 63}",
            f"-{(1 << 63) + 1}",
            "nul",
        ),
    ],
)
def test_nothing_else_is_read(text: str) -> None:
    with pytest.raises(ValueError, match="character"):
        read_json(text)


EDITED: list[tuple[str, Json]] = [
    ('\ufeff{"a":{}}', {"a": {}}),
    ("{'a':{'it\\'s \"it\"':1}}", {"a": {'it\'s "it"': 1}}),
    ('{"a":{},,"b":[1,2,],},'.rstrip(","), {"a": {}, "b": [1, 2]}),
    ('/* by hand */{"a":{} // all\n}', {"a": {}}),
    ("{a:{b_1:true}, $c:null}", {"a": {"b_1": True}, "$c": None}),
    ("{,}", {}),
]
"""All of these fastjson 1.2.83 reads, and so."""


@pytest.mark.parametrize(("text", "value"), EDITED)
def test_what_fastjson_takes_of_an_edited_file_is_read(text: str, value: Json) -> None:
    assert read_json(text) == value
    assert read_table(text.encode()) == value


@pytest.mark.parametrize("text", [text for text, _ in EDITED])
def test_no_torn_edited_text_is_read(text: str) -> None:
    whole = text.removeprefix("\ufeff")
    for end in range(len(whole)):
        with pytest.raises(ValueError, match=r"Expecting|token"):
            read_table(whole[:end].encode())
        with pytest.raises(ValueError, match="character"):
            read_json(whole[:end])


def test_maps_come_in_the_order_that_java_walks_them() -> None:
    """Of a file that RocketMQ 5 wrote, and of small integers."""
    keys = ["%RETRY%sub_localtest@sub_localtest", "test_url@sub_localtest"]

    assert in_hash_order(keys, java_string_hash, 1024) == keys[::-1]
    assert in_hash_order([6, 64, 1, 0], lambda key: key, 64) == [64, 0, 1, 6]
    assert in_hash_order(range(49), lambda key: key + 64, 64)[0] == 0
    assert in_hash_order([64, 0, *range(1, 49)], lambda key: key, 64)[:2] == [0, 1]
