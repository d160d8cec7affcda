"""MessageStoreConfig, the part this store honours, with RocketMQ's defaults.

Sizes are bytes, intervals milliseconds; RocketMQ cannot turn ``allocate_ahead`` off.
Every size may be tiny: a 4 KiB log file and a queue file of ten units make rolls and
deletions happen in short histories.

Source: org.apache.rocketmq.store.config.MessageStoreConfig, RocketMQ 5.3.0.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class FlushDiskType(Enum):
    """When a put is acknowledged: after the append, or after the sync as well."""

    ASYNC_FLUSH = "ASYNC_FLUSH"
    SYNC_FLUSH = "SYNC_FLUSH"


@dataclass(frozen=True, slots=True)
class StoreConfig:
    """How one store works; frozen, since files outlive a configuration."""

    mapped_file_size_commit_log: int = 1024 * 1024 * 1024
    mapped_file_size_consume_queue: int = 300_000 * 20
    flush_disk_type: FlushDiskType = FlushDiskType.ASYNC_FLUSH
    flush_interval_commit_log: int = 500
    flush_commit_log_least_pages: int = 4
    flush_commit_log_thorough_interval: int = 10_000
    commit_interval_commit_log: int = 200
    commit_commit_log_least_pages: int = 4
    commit_commit_log_thorough_interval: int = 200
    transient_store_pool_enable: bool = False
    transient_store_pool_size: int = 5
    allocate_ahead: bool = True
    flush_interval_consume_queue: int = 1000
    flush_consume_queue_least_pages: int = 2
    flush_consume_queue_thorough_interval: int = 60_000
    flush_interval_checkpoint: int = 1000
    sync_flush_timeout: int = 5000
    shutdown_dispatch_timeout: int = 5000
    max_message_size: int = 4 * 1024 * 1024
    max_transfer_bytes_on_message_in_memory: int = 262_144
    max_transfer_count_on_message_in_memory: int = 32
    max_filter_message_size: int = 16_000
    message_index_enable: bool = False  # RocketMQ's default is True, 420 MB a file
    max_hash_slot_num: int = 5_000_000
    max_index_num: int = 20_000_000
    max_msgs_num_batch: int = 64
    process_id: int = 1

    def __post_init__(self) -> None:
        if self.mapped_file_size_commit_log < 128:
            raise ValueError(
                f"mapped_file_size_commit_log is {self.mapped_file_size_commit_log}: "
                f"a log file must hold a record and a filler, so at least 128 bytes."
            )
        if self.mapped_file_size_consume_queue < 20:
            raise ValueError(
                f"mapped_file_size_consume_queue is "
                f"{self.mapped_file_size_consume_queue}: a queue file must hold at "
                f"least one unit of 20 bytes."
            )

        if self.max_hash_slot_num < 1 or self.max_index_num < 2:
            raise ValueError(
                f"max_hash_slot_num is {self.max_hash_slot_num} and max_index_num "
                f"{self.max_index_num}: an index file needs at least one slot and two "
                f"entries, of which the first is never used."
            )

    @property
    def queue_file_size(self) -> int:
        """Bytes of a queue file: the configured size rounded up to whole units."""
        return -(-self.mapped_file_size_consume_queue // 20) * 20
