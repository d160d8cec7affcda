"""What fsck says of a broker's table of filters, whole, changed by hand and torn."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from golden_store import golden
from unpacking import unpacked

from crashmq.engine.filter.bloom_filter import BloomFilter
from crashmq.harness.fsck.fsck import FsckReport, fsck
from crashmq.models.files.bloom_bits import bits_of
from crashmq.models.files.filters import filter_entries

GOLDEN = Path(__file__).parents[1] / "golden"
CONFIG = GOLDEN / "rocketmq-5.3.0-config.tar.xz"
BY_ROCKETMQ = GOLDEN / "rocketmq-5.3.0-consumerFilter.json"
FILTERS = "config/consumerFilter.json"
BACKUP = f"{FILTERS}.bak"
Table: TypeAlias = dict[str, Any]


def filter_of(group: str, topic: str, expression: str = "a > 5") -> Table:
    return {
        "bloomFilterData": {
            "bitNum": 112,
            "bitPos": [*BloomFilter().calc_bit_positions(f"{group}#{topic}")],
        },
        "bornTime": 1_700_000_000_000,
        "clientVersion": 7,
        "consumerGroup": group,
        "dead": False,
        "deadTime": 0,
        "expression": expression,
        "expressionType": "SQL92",
        "topic": topic,
    }


def table_of(*filters: Table) -> Table:
    """A table of filters, each under the names that it says."""
    by_topic: Table = {}
    for one in filters:
        empty = {"groupFilterData": {}, "topic": one["topic"]}
        of_topic = by_topic.setdefault(one["topic"], empty)
        of_topic["groupFilterData"][one["consumerGroup"]] = one
    return {"filterDataByTopic": by_topic}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return a_store("clean", tmp_path)


def a_store(name: str, tmp_path: Path) -> Path:
    """A store of RocketMQ with a broker's config files."""
    root = golden(name).unpack(tmp_path / "store")
    source = unpacked(CONFIG, tmp_path / "broker") / "store" / "config"
    shutil.copytree(source, root / "config")
    return root


def put(root: Path, table: Table, path: str = FILTERS) -> None:
    (root / path).write_text(json.dumps(table))


def about_filters(report: FsckReport) -> list[str]:
    return [note for note in report.notes if "consumerFilter" in note]


def next_start(report: FsckReport) -> list[str]:
    told = (FILTERS, "filters")
    return [line for line in report.next_start if any(word in line for word in told)]


WHOLE = table_of(filter_of("billing", "orders"), filter_of("shipping", "orders"))


def test_a_healthy_table_is_clean(root: Path) -> None:
    put(root, WHOLE)
    put(root, WHOLE, BACKUP)

    report = fsck(root)

    assert report.is_clean, report.violations
    assert (about_filters(report), next_start(report)) == ([], [])


def test_the_table_of_rocketmq_breaks_no_law(root: Path) -> None:
    shutil.copy(BY_ROCKETMQ, root / FILTERS)

    report = fsck(root)

    assert report.is_clean, report.violations
    entries = filter_entries(BY_ROCKETMQ.read_bytes())
    assert entries is not None
    assert len(entries) == 46
    assert all("that there is not." in note for note in about_filters(report))
    assert next_start(report) == []


@pytest.mark.parametrize("shape", [(3, 112), (1, 8), (7, 4096)])
@pytest.mark.parametrize("length", [0, 1, 7, 8, 9, 14, 15, 16, 31, 40])
def test_bits_are_reckoned_twice_and_are_the_same(
    length: int, shape: tuple[int, int]
) -> None:
    group = ("group-\u00e4-%RETRY%" * 3)[:length]
    by_engine = BloomFilter()
    for name, value in zip("km", shape, strict=True):
        object.__setattr__(by_engine, name, value)

    expected = by_engine.calc_bit_positions(f"{group}#orders")

    assert bits_of(group, "orders", *shape) == expected


def otherwise(**fields: object) -> Callable[[], Table]:
    """A table of which one filter has other fields than it should."""
    return lambda: {
        "filterDataByTopic": {
            "orders": {
                "groupFilterData": {
                    "billing": filter_of("billing", "orders"),
                    "shipping": {**filter_of("shipping", "orders"), **fields},
                },
                "topic": "orders",
            }
        }
    }


def bits(positions: list[int], bit_num: int = 112) -> Table:
    return {"bitPos": positions, "bitNum": bit_num}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "law"),
    [
        (otherwise(consumerGroup="billing"), "CFG-3"),
        (otherwise(topic="payments"), "CFG-3"),
        (otherwise(topic=None), "CFG-3"),
        (otherwise(bloomFilterData=bits([1, 2, 3])), "CFG-4"),
        (otherwise(bloomFilterData=bits([1, 2])), "CFG-4"),
        (otherwise(bloomFilterData=bits([1, 2, 3], 120)), "CFG-4"),
        (otherwise(bloomFilterData=bits([1, 2, 3], 0)), "CFG-4"),
        (otherwise(bloomFilterData=bits([])), "CFG-4"),
        (otherwise(bloomFilterData={}), "CFG-4"),
    ],
)
@pytest.mark.parametrize("path", [FILTERS, BACKUP])
def test_a_filter_that_contradicts_its_place_is_a_violation(
    root: Path, path: str, table: Callable[[], Table], law: str
) -> None:
    put(root, WHOLE)
    put(root, table(), path)

    (found,) = fsck(root).violations

    assert (found.law, found.path) == (law, path)
    assert "shipping" in found.seen + found.expected


@pytest.mark.slow
@pytest.mark.parametrize(
    "table",
    [
        otherwise(expression=None),
        otherwise(expressionType="TAG"),
        otherwise(clientVersion="7"),
        otherwise(bornTime=None),
        otherwise(bloomFilterData=[]),
        otherwise(bloomFilterData=bits([True, 1, 2])),
        lambda: {"filterDataByTopic": {"orders": []}},
        lambda: {"filterDataByTopic": []},
    ],
)
def test_a_filter_that_no_load_can_read_makes_its_file_torn(
    root: Path, table: Callable[[], Table]
) -> None:
    put(root, table())
    report = fsck(root)
    assert [found.law for found in report.violations] == ["CFG-1"]

    put(root, WHOLE, BACKUP)
    report = fsck(root)

    assert report.is_clean
    assert next_start(report) == [f"takes {BACKUP}, since {FILTERS} is torn."]


def test_a_crash_of_rocketmq_may_mix_two_tables(tmp_path: Path) -> None:
    killed = a_store("killed", tmp_path)
    put(killed, otherwise(bloomFilterData=bits([1, 2, 3]), topic="payments")())

    assert fsck(killed).is_clean


def test_what_there_is_not_is_named(root: Path) -> None:
    put(root, table_of(filter_of("nobody", "orders"), filter_of("billing", "nowhere")))

    report = fsck(root)

    assert report.is_clean
    what = f"{FILTERS}: the filter of"
    assert about_filters(report) == [
        f"{what} nobody on orders is of a group that there is not.",
        f"{what} billing on nowhere is of a topic that there is not.",
    ]


def test_an_expression_that_cannot_be_read_is_named(root: Path) -> None:
    put(root, table_of(filter_of("billing", "orders", "a != 1")))

    report = fsck(root)

    assert report.is_clean
    (note,) = about_filters(report)
    assert note.endswith("has an expression that cannot be read: a != 1")
    (line,) = next_start(report)
    assert line.startswith("filters nothing for billing on orders, until")


def test_a_backup_with_newer_versions_is_named(root: Path) -> None:
    put(root, WHOLE)
    newer = {**filter_of("billing", "orders"), "clientVersion": 8}
    put(root, table_of(newer, filter_of("shipping", "orders")), BACKUP)

    report = fsck(root)

    assert report.is_clean
    assert about_filters(report) == [
        f"{BACKUP}: the filter of billing on orders has version 8, newer than 7 of the "
        "file itself."
    ]


def test_bits_of_another_configuration_are_passed_over(root: Path) -> None:
    other = BloomFilter(f=10, n=64)
    positions = [*other.calc_bit_positions("billing#orders")]
    data = {
        **filter_of("billing", "orders"),
        "bloomFilterData": bits(positions, other.m),
    }
    put(root, table_of(data))

    report = fsck(root)

    assert report.is_clean
    (line,) = next_start(report)
    assert line.startswith(f"passes over all of {FILTERS}, unless each filter")
    assert f"{other.k} bits of {other.m}" in line
