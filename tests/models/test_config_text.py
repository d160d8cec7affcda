from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from crashmq.models.files.config_files import TABLES, TOPICS_PATH
from crashmq.models.files.config_text import flaws_of_text
from crashmq.models.files.delays import DELAYS_PATH
from crashmq.models.files.filters import FILTERS_PATH
from crashmq.models.files.offsets import OFFSETS_PATH

GOLDEN = Path(__file__).parents[1] / "golden"
OFFSETS = (
    b'{\n\t"dataVersion":{\n\t\t"counter":0,\n\t\t"stateVersion":0,'
    b'\n\t\t"timestamp":1\n\t},\n\t"groupTopicMap":{\n\t\t"g":["T0","T1"]\n\t},'
    b'\n\t"offsetTable":{\n\t\t"T0@g":{0:3,1:5\n\t\t},\n\t\t"T1@g":{0:1\n\t\t}'
    b"\n\t}\n}"
)


def test_what_rocketmq_wrote_has_no_flaw() -> None:
    written: list[tuple[str, bytes]] = []
    with tarfile.open(GOLDEN / "rocketmq-5.3.0-config.tar.xz") as packed:
        for one in packed:
            path = one.name.removeprefix("store/").removesuffix(".bak")
            file = packed.extractfile(one) if path in TABLES else None
            if file is not None:
                written.append((path, file.read()))

    assert len(written) == 6
    for path, data in written:
        assert not flaws_of_text(path, data), path


def test_nor_have_its_filters() -> None:
    data = (GOLDEN / "rocketmq-5.3.0-consumerFilter.json").read_bytes()

    assert not flaws_of_text(FILTERS_PATH, data)


@pytest.mark.parametrize(
    ("before", "after", "where"),
    [
        (b'"T0@g":{0:3,1:5', b'"T0@g":{1:5,0:3', "T0@g"),
        (b'["T0","T1"]', b'["T1","T0"]', "groupTopicMap of g"),
        (
            b'"counter":0,\n\t\t"stateVersion":0',
            b'"stateVersion":0,\n\t\t"counter":0',
            "",
        ),
        (b'"timestamp":1', b'"timestamp": 1', "character 68"),
        (b"{0:1\n\t\t}", b'{"0":1\n\t\t}', "character 165"),
    ],
)
def test_another_order_or_space_is_a_flaw(
    before: bytes, after: bytes, where: str
) -> None:
    assert not flaws_of_text(OFFSETS_PATH, OFFSETS)
    changed = OFFSETS.replace(before, after)
    assert changed != OFFSETS

    flaws = flaws_of_text(OFFSETS_PATH, changed)

    assert [flaw.where for flaw in flaws] == [where or "dataVersion"]


def test_rows_may_come_as_any_hash_table_has_them() -> None:
    text = '{\n\t"dataVersion":{},\n\t"topicConfigTable":{\n\t\t%s\n\t}\n}'
    few, many = '"b":{},\n\t\t"r":{}', '"r":{},\n\t\t"b":{}'

    assert not flaws_of_text(TOPICS_PATH, (text % few).encode())
    assert not flaws_of_text(TOPICS_PATH, (text % many).encode())


def test_levels_are_numbers() -> None:
    data = b'{\n\t"dataVersion":{},\n\t"offsetTable":{1:2,3:4\n\t}\n}'

    assert not flaws_of_text(DELAYS_PATH, data)
    assert flaws_of_text(DELAYS_PATH, data.replace(b"1:2,3:4", b"3:4,1:2"))


def test_of_a_torn_text_nothing_is_said() -> None:
    assert not flaws_of_text(OFFSETS_PATH, OFFSETS[:40])
