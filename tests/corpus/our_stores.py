"""A store of our engine, in the sizes of a corpus store, for RocketMQ to go on with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from corpus_work import body_of, place_of, properties_of
from rocketmq import Row, Settings

from crashmq.engine.host.real_disk import RealDisk
from crashmq.engine.store.config import FlushDiskType, StoreConfig
from crashmq.engine.store.message.message import Host, Message
from crashmq.engine.store.message_store import MessageStore
from crashmq.harness.scheduling.sim_runtime import SimRuntime

NOW_MS = 1_750_000_000_000
LOCAL = Host(b"\x7f\x00\x00\x01", 10911)

_SIZES = {
    "mappedFileSizeCommitLog": "mapped_file_size_commit_log",
    "mappedFileSizeConsumeQueue": "mapped_file_size_consume_queue",
    "mappedFileSizeConsumeQueueExt": "mapped_file_size_consume_queue_ext",
    "maxHashSlotNum": "max_hash_slot_num",
    "maxIndexNum": "max_index_num",
}
_SWITCHES = {
    "enableConsumeQueueExt": "enable_consume_queue_ext",
    "enabledAppendPropCRC": "enabled_append_prop_crc",
    "forceVerifyPropCRC": "force_verify_prop_crc",
    "enableMultiDispatch": "enable_multi_dispatch",
    "transientStorePoolEnable": "transient_store_pool_enable",
}


def config_of(settings: Settings) -> StoreConfig:
    """Our configuration of what RocketMQ's settings say, as far as ours has it."""
    told = settings.store
    ours: dict[str, Any] = {}
    ours |= {our: int(told[name]) for name, our in _SIZES.items() if name in told}
    ours |= {
        our: told[name] == "true" for name, our in _SWITCHES.items() if name in told
    }
    if "messageDelayLevel" in told:
        ours["message_delay_level"] = told["messageDelayLevel"]
    is_sync = told.get("flushDiskType") == "SYNC_FLUSH"
    flush = FlushDiskType.SYNC_FLUSH if is_sync else FlushDiskType.ASYNC_FLUSH
    return StoreConfig(**ours, message_index_enable=True, flush_disk_type=flush)


def started(root: Path, config: StoreConfig, now_ms: int = NOW_MS) -> MessageStore:
    """Our store, loaded and started on a directory, all of its log dispatched."""
    runtime = SimRuntime(now_ms)
    store = MessageStore(config, RealDisk(root), runtime)
    store.load()
    store.start()
    runtime.serve(store.services)
    dispatched(store)
    return store


def dispatched(store: MessageStore) -> None:
    while store.reput.behind > 0:
        assert store.reput.run_once(), "dispatch stands still"


def put_mixed(store: MessageStore, first: int, count: int, size: int) -> list[Row]:
    """The messages that ``Work.mixed`` puts, and a row of each."""
    rows = []
    for number in range(first, first + count):
        topic, queue_id = place_of(number)
        properties = properties_of(number)
        message = Message(
            topic=topic,
            queue_id=queue_id,
            body=body_of(number, size),
            properties=properties,
            born_timestamp=NOW_MS,
            born_host=LOCAL,
            store_host=LOCAL,
        )
        result = store.put_message(message)
        assert result.is_appended, (number, result)
        rows.append(
            {
                "topic": topic,
                "queue_id": queue_id,
                "keys": properties.get("KEYS"),
                "phy_offset": result.phy_offset,
                "size": result.size,
                "queue_offset": result.queue_offset,
            }
        )
    dispatched(store)
    return rows


def write_with_our_engine(
    root: Path, settings: Settings, count: int, size: int = 300
) -> list[Row]:
    """A new store of ours with ``count`` messages, shut down in order."""
    root.mkdir(parents=True)
    store = started(root, config_of(settings))
    rows = put_mixed(store, 0, count, size)
    assert store.shutdown()
    return rows
