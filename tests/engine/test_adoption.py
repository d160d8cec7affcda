"""What a start keeps of directories that RocketMQ wrote, or wrote to after ours."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from golden_kinds import all_served, by_place, config_for, settings_of, started
from store_builder import (
    EPOCH_MS,
    LOG_FILE_SIZE,
    RECORD_SIZE,
    StoreBuilder,
    log_file,
    queue_file,
)
from test_foreign import contents, refusal_of

from crashmq.engine.store.errors import StoreCorrupted, StoreForeign
from crashmq.engine.store.message.message import Message
from crashmq.engine.store.message.message_batch import InnerMessage, encode_batch
from crashmq.engine.store.message.message_codec import PROP_CRC_NAME
from crashmq.models.files.inferred_deletions import LogAfterDeletions, infer_deletions
from crashmq.models.files.record import decode_record
from crashmq.models.files.store_image import read_store

GoldenStore = Callable[[str], tuple[Path, list[dict[str, Any]]]]
PER_FILE = LOG_FILE_SIZE // RECORD_SIZE
CHECKPOINT = 4096
LEVELS = "3s 4s 5s"


def as_of_rocketmq(store: StoreBuilder) -> StoreBuilder:
    """The store at rest, with a checkpoint that holds RocketMQ's fields alone."""
    fields = store.disk.files()["checkpoint"][:40]
    store.disk.replace_file("checkpoint", fields.ljust(CHECKPOINT, b"\0"))
    return store


def at_rest(store: StoreBuilder, count: int, **fields: Any) -> StoreBuilder:
    assert store.put(count, **fields).make_all_durable().stop()
    return store


def unchanged(store: StoreBuilder, *folders: str) -> dict[str, bytes]:
    files = store.disk.files()
    return {path: data for path, data in files.items() if path.startswith(folders)}


def refused(store: StoreBuilder, error: type[StoreCorrupted] = StoreForeign) -> str:
    before = dict(store.disk.files())
    with pytest.raises(error) as caught:
        store.restart()
    after = dict(store.disk.files())
    assert after.pop("lock", None) == before.pop("lock", None)
    assert after == before
    return str(caught.value)


@pytest.mark.parametrize("at", [4, 89])
def test_damage_before_the_last_three_log_files_is_served_around(
    store: StoreBuilder, at: int
) -> None:
    count = 5 * PER_FILE + 2
    as_of_rocketmq(at_rest(store, count))
    store.damage(log_file(), 3 * RECORD_SIZE + at, b"\xff\x33")
    before = unchanged(store, "commitlog/", "consumequeue/")
    whole = [number for number in range(count) if number != 3]

    assert store.restart().reput().served() == whole

    assert store.live.damaged_ranges
    assert unchanged(store, "commitlog/", "consumequeue/") == before
    assert store.put().reput().stop()
    assert store.restart().reput().served() == [*whole, count]
    assert store.stop()


def test_of_what_was_whole_then_damage_is_refused_as_ever(store: StoreBuilder) -> None:
    as_of_rocketmq(at_rest(store, 5 * PER_FILE + 2))
    store.damage(log_file(), 3 * RECORD_SIZE + 90, b"\x33").restart().reput()
    assert store.stop()
    store.damage(log_file(3 * LOG_FILE_SIZE), 3 * RECORD_SIZE + 90, b"\x33")

    assert "durable up to" in refused(store, StoreCorrupted)


def test_a_file_that_goes_later_is_no_damage_of_before(store: StoreBuilder) -> None:
    as_of_rocketmq(at_rest(store, 6 * PER_FILE))
    store.damage(log_file(2 * LOG_FILE_SIZE), 90, b"\x33").restart().reput()
    assert store.stop()
    store.remove(log_file(LOG_FILE_SIZE))

    assert "a missing file" in refused(store, StoreCorrupted)


def with_nul(store: StoreBuilder, number: int, count: int) -> StoreBuilder:
    """The store at rest; a property of message ``number`` holds a NUL."""
    at_rest(store, count, properties={"a": "xxxx"})
    size = store.results[0].size
    base, at = divmod(number, LOG_FILE_SIZE // size)
    return store.damage(log_file(base * LOG_FILE_SIZE), (at + 1) * size - 4, b"\0")


@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize("number", [0, 5, 19])
def test_a_nul_in_a_property_is_rocketmqs_to_take(
    store: StoreBuilder, number: int, killed: bool
) -> None:
    as_of_rocketmq(with_nul(store, number, 20))
    if killed:
        store.disk.replace_file("abort", b"")

    assert store.restart().reput().served() == list(range(20))

    assert store.put(3).reput().stop()
    assert store.restart().reput().served() == list(range(23))
    assert store.live.look_message_by_offset(store.results[number].phy_offset)
    assert store.stop()


def gone_on_by_rocketmq(store: StoreBuilder, count: int, **fields: Any) -> StoreBuilder:
    """The store at rest, as if RocketMQ had put ``count`` behind the mark."""
    marked = dict(store.disk.files())["checkpoint"]
    at_rest(store.restart(), count, **fields)
    store.disk.replace_file("checkpoint", marked)
    return store


@pytest.mark.parametrize("killed", [False, True])
def test_a_nul_behind_the_mark_is_rocketmqs_too(
    store: StoreBuilder, killed: bool
) -> None:
    at_rest(store, 12, properties={"a": "xxxx"})
    gone_on_by_rocketmq(store, 8, properties={"a": "xxxx"})
    last = store.results[14]
    store.damage(log_file(1024), last.phy_offset % 1024 + last.size - 4, b"\0")
    if killed:
        store.disk.replace_file("abort", b"")

    for _ in range(2):
        assert store.restart().reput().served() == list(range(20))
        assert store.stop()


@pytest.mark.parametrize("read_window", [64, 4096])
def test_a_lost_end_is_seen_wherever_a_read_ends(read_window: int) -> None:
    store = StoreBuilder().configured(read_window_size=read_window)
    store.put(3, properties={"a": "x" * 40}).kill()
    last = store.results[-1]
    store.damage(log_file(), last.phy_offset + last.size - 12, bytes(12))

    assert store.restart().reput().served() == [0, 1]


def test_what_rocketmq_left_behind_the_mark_is_not_cut(store: StoreBuilder) -> None:
    gone_on_by_rocketmq(at_rest(store, 12), 8)
    store.damage(log_file(1024), 5 * RECORD_SIZE + 4, b"\x33")

    assert "whole records" in refused(store)

    store.kill().configured(adopt=True).restart().reput()
    assert store.served() == list(range(15))
    assert store.live.losses.records == 4


BEHIND = range(12, 19)


def confirmed(store: StoreBuilder) -> None:
    """The store was killed under RocketMQ, whose checkpoint has a confirmed offset."""
    data = dict(store.disk.files())["checkpoint"]
    place = store.results[11].phy_offset.to_bytes(8, "big")
    store.disk.replace_file("checkpoint", data[:32] + place + data[40:])
    store.disk.replace_file("abort", b"")


@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize("number", BEHIND)
def test_no_record_behind_the_mark_takes_those_behind_it_along(
    store: StoreBuilder, number: int, killed: bool
) -> None:
    gone_on_by_rocketmq(at_rest(store, 12), 8)
    if killed:
        confirmed(store)
    at = store.results[number].phy_offset
    store.damage(log_file(at // 1024 * 1024), at % 1024 + 4, bytes(4))

    assert "whole records" in refused(store)


def test_once_it_has_started_a_store_is_its_own_again(store: StoreBuilder) -> None:
    gone_on_by_rocketmq(at_rest(store, 12), 8)
    confirmed(store)
    store.restart().reput().make_all_durable().put(4).kill()
    at = store.results[20].phy_offset
    store.damage(log_file(at // 1024 * 1024), at % 1024 + 4, bytes(4))

    assert store.restart().reput().served() == list(range(20))


def test_of_two_records_with_one_number_none_takes_the_others_unit(
    store: StoreBuilder,
) -> None:
    as_of_rocketmq(at_rest(store, 6))
    at = store.results[2].phy_offset
    store.damage(log_file(), at + 27, b"\x03")

    assert "a unit of" in refused(store)


TOPICS = ("a.b", "with blank", "é", "主题", "a:b", ".hidden", "tab\there", "%LMQ%a.b:c")


@pytest.mark.parametrize("topic", TOPICS)
@pytest.mark.parametrize("killed", [False, True])
def test_topics_of_any_name_keep_their_queues(
    store: StoreBuilder, topic: str, killed: bool
) -> None:
    as_of_rocketmq(at_rest(store, 12, topic=topic, body_size=5))
    if killed:
        store.disk.replace_file("abort", b"4711")
    before = unchanged(store, "consumequeue/")

    assert store.restart().reput().served(topic) == list(range(12))

    assert unchanged(store, "consumequeue/") == before
    assert store.put(2, topic=topic, body_size=5).reput().served(topic) == [*range(14)]


@pytest.mark.parametrize("light", ["%LMQ%a.b:c", "%LMQ%温度", "%LMQ%x y"])
def test_light_queues_of_any_name_list_messages(
    store: StoreBuilder, light: str
) -> None:
    store.configured(enable_multi_dispatch=True)
    as_of_rocketmq(at_rest(store, 4, properties={"INNER_MULTI_DISPATCH": light}))

    assert store.restart().reput().served(light) == [0, 1, 2, 3]
    assert len(store.put(properties={"INNER_MULTI_DISPATCH": light}).results) == 5
    assert store.reput().served(light) == [0, 1, 2, 3, 4]


def test_times_of_other_delay_levels_are_not_mended(store: StoreBuilder) -> None:
    store.configured(message_delay_level=LEVELS)
    topic = "SCHEDULE_TOPIC_XXXX"
    as_of_rocketmq(at_rest(store, 3, topic=topic, properties={"DELAY": "2"}))
    before = unchanged(store, "consumequeue/")

    store.configured(message_delay_level="1s 5s")
    assert "message_delay_level" in refused(store)

    store.kill().configured(message_delay_level=LEVELS).restart().reput()
    assert unchanged(store, "consumequeue/") == before


@pytest.mark.parametrize("is_empty_left", [False, True])
def test_a_topic_that_rocketmq_deleted_stays_so(
    golden_store: GoldenStore, is_empty_left: bool
) -> None:
    root, rows = golden_store("rolled-clean")
    config, folder = config_for(settings_of(root)), root / "consumequeue" / "payments"
    shutil.rmtree(folder)
    if is_empty_left:
        folder.mkdir()
    kept = [row for row in rows if row["topic"] != "payments"]

    for _ in range(2):
        store = started(root, config)
        assert all_served(store, rows) == by_place(kept)
        assert not folder.exists() or not any(folder.iterdir())
        assert store.shutdown()


def test_a_topic_that_its_broker_still_has_was_not_deleted(
    golden_store: GoldenStore,
) -> None:
    root, rows = golden_store("rolled-clean")
    shutil.rmtree(root / "consumequeue" / "payments")
    (root / "config").mkdir(exist_ok=True)
    (root / "config" / "topics.json").write_text(
        '{"topicConfigTable":{"orders":{},"payments":{},"audit-log":{}}}'
    )

    store = started(root, config_for(settings_of(root)))

    assert all_served(store, rows) == by_place(rows)
    assert store.shutdown()


@pytest.mark.parametrize(
    ("left", "is_deleted"),
    [
        ("config/delayOffset.json", True),
        ("config/timermetrics", True),
        ("config/consumerOffset.json", False),
        ("config/topics.json.bak", False),
        ("config/rocksdb/CURRENT", False),
    ],
)
def test_a_folder_that_is_gone_is_a_deletion_if_no_broker_has_lost_its_list(
    golden_store: GoldenStore, left: str, is_deleted: bool
) -> None:
    root, rows = golden_store("rolled-clean")
    shutil.rmtree(root / "consumequeue" / "payments")
    (root / left).parent.mkdir(parents=True, exist_ok=True)
    (root / left).write_text("{}")
    files = {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file()
    }
    folders = [path.name for path in (root / "consumequeue").iterdir()]
    told = infer_deletions(read_store(files), folders).image.commit_log

    store = started(root, config_for(settings_of(root)))

    kept = [row for row in rows if not is_deleted or row["topic"] != "payments"]
    assert all_served(store, rows) == by_place(kept)
    assert isinstance(told, LogAfterDeletions) == is_deleted  # as fsck has it
    assert store.shutdown()


@pytest.mark.parametrize("ends", ["clean", "killed"])
def test_a_topic_that_was_deleted_and_made_again_begins_anew(
    store: StoreBuilder, ends: str
) -> None:
    at_rest(store.put(6, topic="T1"), 4)
    store.restart().live.delete_topics(["T1"])
    at_rest(store, 5, topic="T1")
    as_of_rocketmq(store.remove("deletedTopics"))
    if ends == "killed":
        store.disk.replace_file("abort", b"")

    for _ in range(2):
        assert store.restart().reput().served("T1") == list(range(10, 15))
        assert store.served() == list(range(6, 10))
        assert store.stop()


def test_a_first_unit_that_leads_nowhere_is_no_deletion(store: StoreBuilder) -> None:
    as_of_rocketmq(at_rest(store, 12)).damage(queue_file(), 0, b"\x33")

    assert "12 units" in refused(store) or "units of 1 queues" in refused(store)


@pytest.mark.parametrize(
    ("path", "what"),
    [
        ("dledger-n0/data/00000000000000000000", "DLedger"),
        ("consumequeue/CURRENT", "RocksDB"),
        ("consumequeue_rocksdb/CURRENT", "RocksDB"),
        ("batchconsumequeue/T/0/00000000000000000000", "BatchConsumeQueue"),
        ("compaction/compactionLog/T/0/00000000000000000000", "CompactionLog"),
        ("compaction/compactionCq/T/0/00000000000000000000", "CompactionLog"),
    ],
)
@pytest.mark.parametrize("ends", ["clean", "killed"])
def test_a_layout_that_is_not_known_is_refused_by_its_name(
    golden_store: GoldenStore, ends: str, path: str, what: str
) -> None:
    root, _ = golden_store(f"rolled-{ends}")
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_bytes(b"\x01" * 20)

    assert what in refusal_of(root, config_for(settings_of(root)))


def test_a_record_of_an_inner_batch_is_refused(store: StoreBuilder) -> None:
    as_of_rocketmq(at_rest(store, 4))
    store.damage(log_file(), 2 * RECORD_SIZE + 36, b"\x00\x00\x00\x80")

    assert "inner batches" in refused(store)


def test_property_crcs_go_on_where_the_log_has_them(golden_store: GoldenStore) -> None:
    root, rows = golden_store("crc-clean")
    settings = {**settings_of(root), "kind": "rolled"}

    store = started(root, config_for(settings))

    assert store.commit_log.appends_prop_crc
    result = store.put_message(Message("orders", 0, b"body", {"KEYS": "k"}))
    record = store.look_message_by_offset(result.phy_offset)
    assert record is not None
    assert record[-20:-11] == PROP_CRC_NAME
    assert decode_record(record).has_property_crc
    assert len(rows) < store.reput.reput_from_offset
    assert store.shutdown()


def test_files_that_rocketmq_expired_are_no_loss(store: StoreBuilder) -> None:
    gone_on_by_rocketmq(at_rest(store, 2 * PER_FILE), 8)
    store.remove(log_file())

    for _ in range(2):
        served = store.restart().reput().served()
        assert served == list(range(PER_FILE, 2 * PER_FILE + 8))
        assert store.stop()


def test_files_that_rocketmq_of_5_expired_and_wrote_nothing(
    store: StoreBuilder,
) -> None:
    at_rest(store, 2 * PER_FILE).remove(log_file())
    assert "adopt=True" in refused(store, StoreCorrupted)

    store.kill().damage("checkpoint", 32, (2000).to_bytes(8, "big"))

    assert store.restart().reput().served() == list(range(PER_FILE, 2 * PER_FILE))


def test_whoever_adopts_takes_an_expired_front(store: StoreBuilder) -> None:
    at_rest(store, 2 * PER_FILE).remove(log_file())

    store.configured(adopt=True).restart().reput()

    assert store.served() == list(range(PER_FILE, 2 * PER_FILE))


@pytest.mark.parametrize("count", [4, 24])
@pytest.mark.parametrize("size", [240, 400, 4000])
@pytest.mark.parametrize("killed", [False, True])
def test_queue_files_of_another_size_are_not_lengthened(
    store: StoreBuilder, count: int, size: int, killed: bool
) -> None:
    as_of_rocketmq(at_rest(store, count))
    if killed:
        store.disk.replace_file("abort", b"")
    store.configured(mapped_file_size_consume_queue=size)

    for adopt in (False, True):
        store.configured(adopt=adopt)
        assert queue_file()[:-20] in refused(store, StoreCorrupted)
        store.kill()


def test_an_index_with_tags_goes_on_with_them(store: StoreBuilder) -> None:
    store.configured(message_index_enable=True, max_hash_slot_num=8, max_index_num=64)
    fields: dict[str, Any] = {"properties": {"KEYS": "k", "TAGS": "TagA"}}
    store.live._index._indexes_tags = True  # as RocketMQ does since 5.4.0
    as_of_rocketmq(at_rest(store, 10, **fields))
    before = unchanged(store, "index/")
    assert len(before) == 1

    store.restart().reput()
    assert unchanged(store, "index/") == before

    at_rest(store, 3, **fields)
    (data,) = unchanged(store, "index/").values()
    assert int.from_bytes(data[36:40], "big") == 1 + 2 * 13
    assert store.restart().reput().stop()


def test_the_checkpoints_sixth_field_stays(store: StoreBuilder) -> None:
    as_of_rocketmq(at_rest(store, 4))
    store.damage("checkpoint", 40, (300).to_bytes(8, "big"))

    assert store.restart().put(3).make_all_durable().stop()

    assert store.disk.files()["checkpoint"][40:48] == (300).to_bytes(8, "big")


ODD = (b"", b"KEYS\x01a", b"empty\x01\x02KEYS\x01b\x02", b"latin\x01caf\xe9\x02")


@pytest.mark.parametrize("prop_crc", [False, True])
def test_properties_in_a_batch_are_copied_as_they_are(
    store: StoreBuilder, prop_crc: bool
) -> None:
    store.configured(enabled_append_prop_crc=prop_crc, force_verify_prop_crc=prop_crc)
    body = encode_batch([InnerMessage(b"x", {}, 0, raw) for raw in ODD])
    batch = Message("T0", 0, body, {"CLUSTER": "c"}, EPOCH_MS)
    live = store.live

    store.runtime.run(lambda: live.put_messages(batch))

    stored = [r.properties_raw for r in store.image().commit_log.records]
    joined = [raw + b"\x02" * (raw[-5:] == b"EYS\x01a") for raw in ODD]
    assert [one[: -20 if prop_crc else None] for one in stored] == [
        raw + b"CLUSTER\x01c\x02" for raw in joined
    ]
    assert store.restart().reput().pull(max_msg_nums=9).messages


@pytest.mark.parametrize("killed", [False, True])
def test_bit_maps_of_another_program_are_kept(
    store: StoreBuilder, killed: bool
) -> None:
    store.configured(
        enable_consume_queue_ext=True, mapped_file_size_consume_queue_ext=4096
    )
    store.live.calc_bit_map(lambda request: b"\x81\x42")
    as_of_rocketmq(at_rest(store, 12))
    before = unchanged(store, "consumequeue")
    if killed:
        store.disk.replace_file("abort", b"")

    store.restart().reput()

    assert (unchanged(store, "consumequeue") == before) is not killed
    assert store.served() == list(range(12))


def test_units_with_addresses_ask_for_the_extension(store: StoreBuilder) -> None:
    store.configured(
        enable_consume_queue_ext=True, mapped_file_size_consume_queue_ext=4096
    )
    as_of_rocketmq(at_rest(store, 12))
    store.configured(enable_consume_queue_ext=False)

    assert "enable_consume_queue_ext" in refused(store)


def test_a_take_over_that_was_cut_short_is_taken_up(store: StoreBuilder) -> None:
    count = 5 * PER_FILE + 2
    as_of_rocketmq(at_rest(store, count))
    store.damage(log_file(), 3 * RECORD_SIZE + 90, b"\x33")
    whole = [number for number in range(count) if number != 3]
    files = dict(store.disk.files())
    failed = 0
    for at_action in range(1, 60):
        cut = StoreBuilder()
        for path, data in files.items():
            cut.disk.replace_file(path, data)
        cut.fail_at(at_action, "write", "sync", "create")
        try:
            cut.restart()
        except OSError:
            failed += 1
        else:
            break
        cut.disk.heal()
        cut.kill()
        assert cut.restart().reput().served() == whole, at_action
    assert failed > 10


def test_a_healthy_golden_store_loses_nothing(golden_store: GoldenStore) -> None:
    root, _ = golden_store("rolled-clean")
    before = contents(root)

    store = started(root, config_for(settings_of(root)))

    assert str(store.losses) == "nothing yet"
    assert store.shutdown()
    after = contents(root)
    assert {path for path in before if after.get(path) != before[path]} == {
        "checkpoint"
    }


def test_a_log_file_whose_name_lacks_a_digit_is_refused(store: StoreBuilder) -> None:
    """RocketMQ reads it; this store would take its messages for expired or lost."""
    as_of_rocketmq(at_rest(store, 12))
    files = store.disk.files()
    name = f"commitlog/{0:020d}"
    store.disk.replace_file(f"commitlog/{0:019d}", files[name])
    store.remove(name)

    assert "not its 20 digits" in refused(store)


def test_a_file_in_place_of_a_queue_is_refused(store: StoreBuilder) -> None:
    as_of_rocketmq(at_rest(store, 12))
    for path in store.disk.files():
        if path.startswith("consumequeue/T0/0/"):
            store.remove(path)
    store.disk.mount().remove_dir("consumequeue/T0/0")
    store.disk.unmount()
    store.disk.replace_file("consumequeue/T0/0", b"moved")

    assert "a file stands where a folder" in refused(store)
