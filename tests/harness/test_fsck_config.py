"""What fsck says of the config files of a broker, RocketMQ's and ours."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from golden_store import golden
from unpacking import unpacked

from crashmq.engine.broker.broker_controller import BrokerController
from crashmq.engine.store.config import StoreConfig
from crashmq.engine.store.message.message import Message
from crashmq.engine.store.message_store import MessageStore
from crashmq.harness.commands.fsck import report_lines
from crashmq.harness.disk.sim_disk import SimDisk
from crashmq.harness.fsck.fsck import FsckReport, fsck, report_on
from crashmq.harness.scheduling.sim_runtime import SimRuntime
from crashmq.models.ops import Crash, Survivors

CONFIG = Path(__file__).parents[1] / "golden" / "rocketmq-5.3.0-config.tar.xz"
OFFSETS = "config/consumerOffset.json"
TOPICS = "config/topics.json"
GROUPS = "config/subscriptionGroup.json"
DELAYS = "config/delayOffset.json"
FILTERS = "config/consumerFilter.json"


def with_config(root: Path, tmp_path: Path) -> Path:
    source = unpacked(CONFIG, tmp_path / "broker") / "store" / "config"
    shutil.copytree(source, root / "config")
    return root


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A store that RocketMQ shut down in order, with a broker's config files."""
    return with_config(golden("clean").unpack(tmp_path / "store"), tmp_path)


def about_config(report: FsckReport) -> list[str]:
    return [note for note in report.notes if note.startswith("config/")]


def put(root: Path, path: str, text: str | bytes) -> None:
    data = text.encode() if isinstance(text, str) else text
    (root / path).write_bytes(data)


def with_offset(root: Path, key: str, queue_id: int, offset: int) -> None:
    put(root, OFFSETS, f'{{"offsetTable":{{"{key}":{{{queue_id}:{offset}}}}}}}')


@pytest.mark.parametrize("name", ["clean", "killed", "killed-sync"])
def test_a_healthy_broker_of_rocketmq_is_clean(name: str, tmp_path: Path) -> None:
    healthy = with_config(golden(name).unpack(tmp_path / "store"), tmp_path)

    report = fsck(healthy)

    assert report.is_clean, report.violations
    assert about_config(report) == []
    assert not [line for line in report.next_start if "config/" in line]
    states = {one.path: (one.state, one.backup) for one in report.summary.config}
    whole = ("whole", "whole")
    assert states == {TOPICS: whole, OFFSETS: whole, GROUPS: whole}


def test_text_and_json_tell_of_them(root: Path) -> None:
    report = fsck(root)

    lines = [*report_lines(report)]
    summary = report.to_json()["summary"]["config"]

    expected = "  config         consumerOffset.json whole, backup whole, 6 rows"
    assert expected in lines
    assert json.loads(json.dumps(summary))[1] == {
        "path": OFFSETS,
        "state": "whole",
        "backup": "whole",
        "rows": 6,
    }


@pytest.mark.parametrize(
    ("data", "state"), [(b"", "empty"), (b"\0" * 99, "torn"), (b'{"offsetT', "torn")]
)
def test_a_backup_that_is_whole_is_named(root: Path, data: bytes, state: str) -> None:
    put(root, OFFSETS, data)

    report = fsck(root)

    assert report.is_clean
    says = f"{OFFSETS} is {state}; its backup is whole, with 6 rows."
    assert about_config(report) == [says]
    assert f"takes {OFFSETS}.bak, since {OFFSETS} is {state}." in report.next_start


@pytest.mark.parametrize("path", [OFFSETS, TOPICS, GROUPS, DELAYS, FILTERS])
def test_two_copies_that_are_torn_are_a_violation(root: Path, path: str) -> None:
    put(root, path, b'{"torn')
    put(root, f"{path}.bak", b"\0\0")

    report = fsck(root)

    assert [(found.law, found.path) for found in report.violations] == [("CFG-1", path)]
    assert any(line.startswith("refuses: neither") for line in report.next_start)


def test_rocketmq_begins_anew_with_two_empty_files(root: Path) -> None:
    put(root, OFFSETS, b"")
    put(root, f"{OFFSETS}.bak", b"")

    report = fsck(root)

    assert {found.law for found in report.violations} == {"CFG-1"}
    says = f"begins without any row of {OFFSETS}, and says nothing."
    assert says in report.next_start


def test_a_kill_of_rocketmq_may_leave_both_torn(tmp_path: Path) -> None:
    killed = with_config(golden("killed").unpack(tmp_path / "store"), tmp_path)
    put(killed, OFFSETS, b"")
    put(killed, f"{OFFSETS}.bak", b"")

    report = fsck(killed)

    assert report.is_clean
    assert about_config(report) == [f"{OFFSETS} is empty, and its backup empty."]


def test_an_empty_table_beside_a_backup_with_rows_is_named(root: Path) -> None:
    put(root, OFFSETS, '{"offsetTable":{}}')

    report = fsck(root)

    assert report.is_clean
    (note,) = about_config(report)
    assert note.startswith(f"{OFFSETS} has no row, and its backup 6: a start that")


def test_an_offset_past_its_queue_is_a_violation_at_rest(root: Path) -> None:
    with_offset(root, "orders@billing", 0, 102)

    report = fsck(root)

    (found,) = report.violations
    assert (found.law, found.path) == ("CFG-2", OFFSETS)
    assert found.seen == "offset 102 of billing on orders/0"
    assert "keeps billing on orders/0 at 102, past" in " ".join(report.next_start)


@pytest.mark.parametrize("offset", [100, 101])
def test_a_reset_may_lie_one_past_the_end(root: Path, offset: int) -> None:
    with_offset(root, "orders@billing", 0, offset)

    report = fsck(root)

    assert report.is_clean
    is_noted = any("past the queue's end, 100" in note for note in report.notes)
    assert is_noted is (offset == 101)


def test_after_a_crash_an_offset_past_its_queue_is_a_note(tmp_path: Path) -> None:
    killed = with_config(golden("killed").unpack(tmp_path / "store"), tmp_path)
    with_offset(killed, "orders@billing", 0, 500)

    report = fsck(killed)

    assert report.is_clean
    says = f"{OFFSETS}: offset 500 of billing on orders/0 is past the queue's end, 100."
    assert says in report.notes


def test_an_offset_below_the_first_message_is_named(tmp_path: Path) -> None:
    expired = with_config(golden("expired-clean").unpack(tmp_path / "store"), tmp_path)
    with_offset(expired, "audit-log@sub_localtest", 0, 1)

    notes = about_config(fsck(expired))

    assert any("is below the queue's first message" in note for note in notes)


def test_topics_and_groups_without_each_other_are_named(root: Path) -> None:
    table = json.loads((root / TOPICS).read_text())
    del table["topicConfigTable"]["payments"]
    put(root, TOPICS, json.dumps(table))
    put(
        root,
        OFFSETS,
        '{"offsetTable":{"gone@billing":{0:5},"orders@billing":{9:5},'
        '"orders@shipping":{0:0}}}',
    )

    notes = about_config(fsck(root))

    assert notes == [
        f"{OFFSETS}: offset 5 of billing on gone/0 is of a topic that there is not.",
        f"{OFFSETS}: offset 5 of billing on orders/9 is of a queue without a message.",
        f"{GROUPS}: group sub_localtest has consumed of no topic.",
        f"{TOPICS}: topic payments has messages, and is not there.",
    ]


def test_delay_levels_past_their_queues_are_named(root: Path) -> None:
    put(root, DELAYS, '{"offsetTable":{1:0,3:7\n\t}\n}')

    report = fsck(root)

    assert about_config(report) == [
        f"{DELAYS}: offset 7 of delay level 3 is past its queue's end, 0."
    ]


@pytest.mark.parametrize("text", ['{"offsetTable":{"x":7}}', '{"offsetTable":{1:"7"}}'])
def test_a_table_of_delays_has_numbers(root: Path, text: str) -> None:
    put(root, DELAYS, text)

    assert {found.law for found in fsck(root).violations} == {"CFG-1"}


def ours_after_a_power_loss() -> dict[str, bytes]:
    """A store of ours that lost messages which a group had committed."""
    disk, runtime = SimDisk(), SimRuntime(1_700_000_000_000)
    config = StoreConfig(
        mapped_file_size_commit_log=4096, mapped_file_size_consume_queue=200
    )
    mount = disk.mount()
    broker = BrokerController(MessageStore(config, mount, runtime), mount, runtime)
    broker.load()
    broker.start()
    for _ in range(4):
        broker.message_store.put_message(Message("T0", 0, b"body"))
    broker.consumer_offset_manager.commit_offset("g", "T0", 0, 4)
    broker.consumer_offset_manager.persist()
    disk.crash(Crash("power_loss", Survivors("none")))
    return disk.files()


def test_our_next_start_lowers_what_a_power_loss_left_too_high() -> None:
    report = report_on("ours", ours_after_a_power_loss(), ())

    assert report.is_clean, report.violations
    assert report.mode == "crashed"
    assert "lowers g on T0/0 from 4 to 0, the queue's end." in report.next_start


def test_our_next_start_refuses_what_it_cannot_read() -> None:
    files = {**ours_after_a_power_loss(), OFFSETS: b"", f"{OFFSETS}.bak": b"\0"}

    report = report_on("ours", files, ())

    assert {found.law for found in report.violations} == {"CFG-1"}
    assert report.next_start[-1].startswith(f"refuses: neither {OFFSETS} nor")
