"""inspect and diff: every message is found in every way, and differences are told."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from golden_store import golden

from crashmq.harness.cli import main

ROWS = golden("clean").manifest
ROW = ROWS[500]


def run(*args: object) -> Result:
    return CliRunner().invoke(main, [str(arg) for arg in args])


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return golden("clean").unpack(tmp_path_factory.mktemp("reading") / "store")


def found(store: Path, *args: object) -> list[tuple[str, int, int]]:
    result = run("inspect", store, "--jsonl", *args)
    said = [json.loads(line) for line in result.stdout.splitlines()]
    assert result.exit_code == (0 if said else 1), result.output
    return [(one["topic"], one["queue_id"], one["queue_offset"]) for one in said]


def place(row: dict[str, object]) -> tuple[object, object, object]:
    return row["topic"], row["queue_id"], row["queue_offset"]


def test_each_queue_has_a_row_with_its_offsets_and_bytes(store: Path) -> None:
    result = run("inspect", store)

    rows = {line.split()[0]: line.split() for line in result.stdout.splitlines()}
    of_log = [row for row in ROWS if place(row)[:2] == ("audit-log", 0)]
    size = sum(row["size"] for row in of_log)
    assert rows["audit-log/0"][1:5] == ["400", f"{size:,}", "0..399", "[0,"]
    assert result.exit_code == 0
    assert "next: crashmq inspect" in result.stdout


@pytest.mark.parametrize("number", [0, 500, 1199])
def test_a_message_is_found_by_its_place_and_its_ids(store: Path, number: int) -> None:
    row = ROWS[number]
    topic, queue_id, offset = place(row)
    (said,) = run(
        "inspect", store, "--jsonl", "--phy-offset", row["phy_offset"]
    ).stdout.splitlines()
    message_id = json.loads(said)["message_id"]

    by_offset = found(store, "--topic", topic, "--queue", queue_id, "--offset", offset)

    assert by_offset == [place(row)]
    assert found(store, "--id", message_id) == [place(row)]
    assert json.loads(said)["size"] == row["size"]


@pytest.mark.parametrize("extra", [(), ("--no-index",)])
def test_a_key_finds_its_messages_with_and_without_the_index(
    store: Path, extra: tuple[str, ...]
) -> None:
    key = ROW["keys"].split()[0]
    same = [row for row in ROWS if key in (row["keys"] or "").split()]

    assert found(store, "--topic", ROW["topic"], "--key", key, *extra) == [
        place(row) for row in same if row["topic"] == ROW["topic"]
    ]
    assert found(store, "--key", key) == [place(row) for row in same]


def test_a_key_is_found_where_the_index_is_gone(store: Path, tmp_path: Path) -> None:
    root = shutil.copytree(store, tmp_path / "copy")
    shutil.rmtree(root / "index")

    key = ROW["keys"].split()[0]

    assert place(ROW) in found(root, "--topic", ROW["topic"], "--key", key)


def test_times_bound_what_is_shown(store: Path) -> None:
    since, until = ROWS[300]["store_timestamp"], ROWS[900]["store_timestamp"]

    shown = found(store, "--from", since, "--to", until)

    assert shown == [
        place(row) for row in ROWS if since <= row["store_timestamp"] < until
    ]


def test_every_message_is_streamed_with_its_whole_body(store: Path) -> None:
    lines = run("inspect", store, "--jsonl").stdout.splitlines()

    said = [json.loads(line) for line in lines]
    bodies = [
        bytes.fromhex(one["body_hex"]) if "body_hex" in one else one["body"].encode()
        for one in said
    ]
    assert [hashlib.sha1(body).hexdigest() for body in bodies] == [
        row["body_sha1"] for row in ROWS
    ]


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (("--offset", "3"), 2),
        (("--from", "yesterday"), 2),
        (("--id", "no such id"), 1),
        (("--phy-offset", "7"), 1),
        (("--topic", "orders", "--queue", "0", "--offset", "9999"), 1),
    ],
)
def test_what_is_not_there_is_not_found(
    store: Path, args: tuple[str, ...], code: int
) -> None:
    assert run("inspect", store, *args).exit_code == code


def test_a_message_is_told_to_people_field_by_field(store: Path) -> None:
    result = run("inspect", store, "--phy-offset", ROW["phy_offset"])

    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["phy_offset", str(ROW["phy_offset"])] in lines
    assert any(line[:2] == ["property", "KEYS"] for line in lines)


def test_a_store_differs_not_from_its_copy(store: Path) -> None:
    result = run("diff", store, store)

    assert (result.exit_code, result.stdout) == (
        0,
        "0 messages differ, and 0 offsets of groups\n",
    )


def test_what_one_serves_alone_is_told_in_runs(store: Path, tmp_path: Path) -> None:
    root = shutil.copytree(store, tmp_path / "copy")
    unit = root / "consumequeue/orders/0/00000000000000000000"
    data = unit.read_bytes()
    unit.write_bytes(data[:1200] + bytes(len(data) - 1200))
    (root / "config").mkdir()
    table = {"offsetTable": {"orders@g": {"0": 7}}}
    (root / "config/consumerOffset.json").write_text(json.dumps(table))

    result = run("diff", store, root)

    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "orders/0[60..99]: 40 messages only in A",
        "offset of g on orders/0: A nothing, B 7",
        "40 messages differ, and 1 offsets of groups",
    ]
