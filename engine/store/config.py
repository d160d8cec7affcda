"""MessageStoreConfig, the part this store honours, with RocketMQ's defaults.

Sizes are bytes, intervals milliseconds, ratios percents of the disk in use, and
``file_reserved_time`` hours. Not in RocketMQ: ``on_damage``, ``adopt``,
``start_window``, and turning ``allocate_ahead`` off. Every size may be tiny: a 4 KiB
log file and a queue file of ten units make rolls and deletions happen in short
histories.

Source: org.apache.rocketmq.store.config.MessageStoreConfig, RocketMQ 5.3.0.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from crashmq.engine.store.message.delay_level import DEFAULT_LEVELS, DelayLevels


class OnDamage(Enum):
    """What a start does about damage in data that was durable: refuse or serve."""

    REFUSE = "refuse"
    SERVE = "serve"


class FlushDiskType(Enum):
    """ASYNC_FLUSH acknowledges a put after its append, SYNC_FLUSH after its sync."""

    ASYNC_FLUSH = "ASYNC_FLUSH"
    SYNC_FLUSH = "SYNC_FLUSH"


class BrokerRole(Enum):
    """Whether a store takes puts, or receives its log from a master."""

    ASYNC_MASTER = "ASYNC_MASTER"
    SYNC_MASTER = "SYNC_MASTER"
    SLAVE = "SLAVE"


@dataclass(frozen=True, slots=True)
class StoreConfig:
    """The configuration of one store, frozen: its files depend on it."""

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
    max_transfer_bytes_on_message_in_disk: int = 65_536
    max_transfer_count_on_message_in_disk: int = 8
    access_message_in_memory_max_size: int = 24 * 1024**3 * 40 // 100
    check_crc_on_read: bool = False
    read_window_size: int = 4 * 1024 * 1024  # of the log, by dispatch and by a start
    max_filter_message_size: int = 16_000
    enable_consume_queue_ext: bool = False
    mapped_file_size_consume_queue_ext: int = 48 * 1024 * 1024
    message_index_enable: bool = False  # RocketMQ's default is True, 420 MB a file
    max_hash_slot_num: int = 5_000_000
    max_index_num: int = 20_000_000
    max_msgs_num_batch: int = 64
    start_window: int = 1024 * 1024 * 1024
    on_damage: OnDamage = OnDamage.REFUSE
    adopt: bool = False  # a directory without a mark, whatever its start would lose
    enabled_append_prop_crc: bool = False
    force_verify_prop_crc: bool = False
    enable_multi_dispatch: bool = False
    broker_role: BrokerRole = BrokerRole.ASYNC_MASTER
    duplication_enable: bool = False  # dispatch what replicas have confirmed alone
    offset_check_in_slave: bool = False
    process_id: int = 1
    clean_resource_interval: int = 10_000
    file_reserved_time: int = 72
    delete_when: str = "04"
    delete_commit_log_files_interval: int = 100
    delete_consume_queue_files_interval: int = 100
    delete_file_batch_max: int = 10
    clean_file_forcibly_enable: bool = False
    disk_max_used_space_ratio: int = 75
    disk_space_clean_forcibly_ratio: int = 85
    disk_space_warning_level_ratio: int = 90
    message_delay_level: str = DEFAULT_LEVELS

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

        if self.mapped_file_size_consume_queue_ext < 24:
            raise ValueError(
                f"mapped_file_size_consume_queue_ext is "
                f"{self.mapped_file_size_consume_queue_ext}: a file must hold at least "
                f"one unit of 20 bytes and the four that are never used."
            )
        if self.max_hash_slot_num < 1 or self.max_index_num < 2:
            raise ValueError(
                f"max_hash_slot_num is {self.max_hash_slot_num} and max_index_num "
                f"{self.max_index_num}: an index file needs at least one slot and two "
                f"entries, of which the first is never used."
            )

        DelayLevels.parse(self.message_delay_level)  # or it says why it cannot

        for hour in self.delete_when.split(";"):
            if not (hour.isascii() and hour.isdigit() and int(hour) < 24):
                raise ValueError(
                    f"delete_when is {self.delete_when!r}: give the hours of the day "
                    f"in UTC, 00 to 23, with a semicolon between two."
                )
        ratios = (
            self.disk_max_used_space_ratio,
            self.disk_space_clean_forcibly_ratio,
            self.disk_space_warning_level_ratio,
        )
        if not 0 < ratios[0] <= ratios[1] <= ratios[2] <= 100:
            raise ValueError(
                f"the shares of the disk at which to delete, to delete by force and to "
                f"stop puts are {ratios}: give percents that do not fall."
            )
        if self.delete_file_batch_max < 1 or self.file_reserved_time < 0:
            raise ValueError(
                f"delete_file_batch_max is {self.delete_file_batch_max} and "
                f"file_reserved_time {self.file_reserved_time}: at least one file must "
                f"go in a round, and files are kept for 0 hours or more."
            )

    @property
    def delay_levels(self) -> DelayLevels:
        """``message_delay_level`` as milliseconds."""
        return DelayLevels.parse(self.message_delay_level)

    @property
    def delete_hours(self) -> tuple[int, ...]:
        """``delete_when`` as numbers: the hours at which files may be deleted."""
        return tuple(int(hour) for hour in self.delete_when.split(";"))

    @property
    def is_slave(self) -> bool:
        """Whether the store receives its log from a master, and takes no puts."""
        return self.broker_role is BrokerRole.SLAVE

    @property
    def queue_file_size(self) -> int:
        """Bytes of a queue file: the configured size rounded up to whole units."""
        return -(-self.mapped_file_size_consume_queue // 20) * 20
