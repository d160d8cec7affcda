"""Program: a setup and a list of ops, immutable. As text: ``program_json``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

from crashmq.models.files.message_delay_level import (
    DEFAULT_TEXT,
    DelayLevels,
    parse_delay_levels,
)
from crashmq.models.files.record import RETRY_PREFIX
from crashmq.models.limits import SHORT_POLLING_MS, SUSPEND_MS
from crashmq.models.ops import (
    ChangeConfig,
    Op,
    ServiceName,
)

FlushMode = Literal["ASYNC_FLUSH", "SYNC_FLUSH"]
FLUSH_MODES: tuple[FlushMode, ...] = get_args(FlushMode)
OnDamage = Literal["refuse", "serve"]
ON_DAMAGE: tuple[OnDamage, ...] = get_args(OnDamage)
FoundStore = Literal[
    "",
    "5.3.0-killed",
    "5.3.0-nul-killed",
    "5.3.0-deleted",
    "5.3.0-expired",
    "4.9.8-orderly",
    "4.9.8-nul",
    "4.9.8-four-lives",
    "5.3.0-crc",
    "5.3.0-light",
    "5.3.0-kinds",
    "5.3.0-continued",
    "5.3.0-continued-nul",
    "5.3.0-ours-expired",
    "5.5.1-orderly",
    "5.5.1-killed",
    "5.5.1-continued-killed",
]
"""A directory of ``scenarios.found``: the version that wrote it, and what is in it."""

WrongValue = Literal[
    "",
    "deleteWhen=24",
    "deleteWhen=04;99",
    "deleteWhen=-1",
    "deleteWhen=",
    "deleteWhen=4,5",
    "deleteWhen=4h",
    "deleteFileBatchMax=0",
    "deleteFileBatchMax=-1",
    "fileReservedTime=-1",
    "diskMaxUsedSpaceRatio=0",
    "diskMaxUsedSpaceRatio=86",
    "diskSpaceCleanForciblyRatio=74",
    "diskSpaceCleanForciblyRatio=91",
    "diskSpaceWarningLevelRatio=84",
    "diskSpaceWarningLevelRatio=101",
    "mappedFileSizeCommitLog=127",
    "mappedFileSizeCommitLog=0",
    "mappedFileSizeConsumeQueue=19",
    "mappedFileSizeConsumeQueue=-20",
    "mappedFileSizeConsumeQueueExt=23",
    "maxHashSlotNum=0",
    "maxIndexNum=1",
    "messageDelayLevel=",
    "messageDelayLevel=5",
    "messageDelayLevel=1x",
    "messageDelayLevel=1s  2s",
    "maxErrorRateOfBloomFilter=0",
    "maxErrorRateOfBloomFilter=-1",
    "maxErrorRateOfBloomFilter=100",
    "maxErrorRateOfBloomFilter=101",
    "expectConsumerNumUseFilter=0",
    "expectConsumerNumUseFilter=-1",
]
"""An option of a RocketMQ configuration with a value that no store can work with."""
WRONG_VALUES: tuple[WrongValue, ...] = tuple(filter(None, get_args(WrongValue)))
_OF_FILTERS = ("maxErrorRateOfBloomFilter", "expectConsumerNumUseFilter")

QUEUE_EXT_SIZE_MIN = 24
HOUR_MS = 3_600_000
FLUSH_THOROUGH_MS = 2000
"""After so long a flush takes all there is; far below RocketMQ's, so that short
histories see many such rounds."""
COMMIT_THOROUGH_MS = 200
"""The same of a commit of write buffers; RocketMQ's own."""


class BadProgram(ValueError):
    """The JSON is no program; the error's message says where and why."""


@dataclass(frozen=True, slots=True)
class Setup:
    """The store and the disk a program runs on; sizes in bytes, except units.

    ``disk_profile`` names the rules of the simulated disk (``harness.disk.profiles``),
    which holds ``disk_capacity`` bytes; 0: no limit. If the store ``cleans``, log files
    are deleted after ``reserved_hours``, in each of the ``delete_hours`` (UTC,
    separated by semicolons), at most ``delete_batch`` a round; or sooner on a full disk
    if it ``cleans_forcibly``.

    ``queue_ext_size`` is the size of a consumequeue_ext file; 0: the extension is off.
    ``index_slots`` and ``index_entries`` are those of one index file; 0: no index.

    With ``transient_store_pool`` a log file's appends go to a write buffer first, if
    one of ``transient_store_buffers`` is free. With ``preallocate`` a service creates
    the log's next file ahead. ``flush_least_pages`` is how many dirty pages a flush or
    commit waits for.

    ``prop_crc``: every record ends with a CRC over all of it, and starts verify it.
    ``multi_dispatch``: light queues list messages of other topics.

    ``on_damage`` is what a start does about damage below the durable mark. With
    ``adopt`` a start on a store without a mark may cut what it cannot read. The log is
    read by at most ``read_window`` bytes at a time. Pulls return fewer messages that
    lie over ``in_memory_size`` bytes before the log's end, and with ``checks_crc`` only
    records whose CRC is right.

    A store that ``duplicates`` dispatches only what replicas have confirmed. With
    ``keeps_progress`` a broker runs around the store and keeps the consumer offsets of
    groups; if it also ``filters``, groups subscribe by expressions, and
    consumequeue_ext entries have bit maps of the groups that want a message. Every
    topic has ``topic_queues`` queues for consumers, spread over ``brokers`` broker
    names (``models.brokers``), and retry topics have ``retry_queues`` for them, of
    groups that are configured so. Each consumer pulls ``pull_batch`` messages at a
    time, and stops pulling a queue while more than ``pull_threshold`` of its messages
    wait, or, unless it consumes in order, some that lie more than ``max_span`` apart;
    after an answer with messages it pauses for ``pull_interval`` ms. With a
    ``topic_threshold`` of -1 that is all; else it replaces ``pull_threshold``, divided
    by the number of the consumer's queues, once the consumer has queues. Without
    ``long_polling`` no message wakes a held pull, and it is held for a second at most.
    With ``posts_subscription`` consumers' pulls carry what they subscribe. Without
    ``sends_records`` consumers send failed messages back by their phy_offset alone, and
    the broker that they got them from reads them from its log. Without ``lets_read``
    the broker refuses every pull, and without ``takes_lite_pulls`` those that say that
    they are lite.
    With ``filters_retries`` the broker filters messages of retry topics by their real
    topic. With ``delivers_delayed`` a broker keeps messages with a delay level until
    they are due, and then puts them into their queues; ``message_delay_level`` says
    how long a message of each level waits, as RocketMQ's ``messageDelayLevel``.

    With a ``wrong_value`` the store is given that value beside its options.

    The first start finds the directory written by RocketMQ that ``begins_with`` names,
    or an empty one. It is one of the program's ops if there is such a directory, or if
    the store ``begins_down``; else it comes before them.
    """

    log_file_size: int = 4096
    queue_file_units: int = 10
    flush_mode: FlushMode = "ASYNC_FLUSH"
    max_message_size: int = 4 * 1024 * 1024
    disk_profile: str = "ext4_ordered"
    start_window: int = 1024 * 1024 * 1024
    disk_capacity: int = 0
    queue_ext_size: int = 0
    cleans: bool = False
    reserved_hours: int = 72
    delete_hours: str = "04"
    delete_batch: int = 10
    cleans_forcibly: bool = False
    index_slots: int = 0
    index_entries: int = 0
    transient_store_pool: bool = False
    transient_store_buffers: int = 2
    preallocate: bool = False
    flush_least_pages: int = 4
    prop_crc: bool = False
    multi_dispatch: bool = False
    on_damage: OnDamage = "refuse"
    read_window: int = 4 * 1024 * 1024
    in_memory_size: int = 1 << 40
    checks_crc: bool = False
    adopt: bool = False
    keeps_progress: bool = False
    topic_queues: int = 2
    retry_queues: int = 1
    pull_batch: int = 32
    pull_threshold: int = 1000
    max_span: int = 2000
    topic_threshold: int = -1
    pull_interval: int = 0
    long_polling: bool = True
    posts_subscription: bool = False
    sends_records: bool = True
    lets_read: bool = True
    takes_lite_pulls: bool = True
    filters: bool = False
    duplicates: bool = False
    delivers_delayed: bool = False
    filters_retries: bool = False
    brokers: int = 1
    begins_with: FoundStore = ""
    begins_down: bool = False
    message_delay_level: str = DEFAULT_TEXT
    wrong_value: WrongValue = ""

    @property
    def delay_levels(self) -> DelayLevels:
        """``message_delay_level`` as milliseconds."""
        return parse_delay_levels(self.message_delay_level)

    @property
    def has_queue_ext(self) -> bool:
        """Whether queues have consumequeue_ext files that can hold an entry."""
        return self.queue_ext_size >= QUEUE_EXT_SIZE_MIN

    @property
    def has_index(self) -> bool:
        """Whether the store has an index of keys; a file's entry 0 is never used."""
        return self.index_slots > 0 and self.index_entries > 1

    @property
    def is_usable(self) -> bool:
        """Whether a store can have these options; only a broker has filters."""
        option = self.wrong_value.partition("=")[0]
        has_broker = self.keeps_progress or self.delivers_delayed
        return not option or (option in _OF_FILTERS and not has_broker)

    @property
    def patience_ms(self) -> int:
        """How long a broker holds a pull at most."""
        return SUSPEND_MS if self.long_polling else SHORT_POLLING_MS

    @property
    def services(self) -> frozenset[ServiceName]:
        """The services that a store, or the broker around it, must have.

        Source: DefaultMessageStore#start, BrokerController#startBasicService.
        """
        has: dict[ServiceName, bool] = {
            "reput": True,
            "flush_commit_log": True,
            "flush_consume_queue": True,
            "checkpoint": True,
            "flush_index": self.has_index,
            "commit": self.transient_store_pool,
            "allocate": self.preallocate,
            "clean_commit_log": self.cleans,
            "clean_consume_queue": self.cleans,
            "persist_consumer_offset": self.keeps_progress,
            "client_housekeeping": self.keeps_progress,
            "pull_request_hold": self.keeps_progress,
            "persist_consumer_filter": self.filters,
            "deliver_delayed": self.delivers_delayed,
            "persist_delay_offset": self.delivers_delayed,
        }
        return frozenset([name for name, is_needed in has.items() if is_needed])

    @property
    def starts_by_an_op(self) -> bool:
        """Whether the program's ops make the first start too."""
        return self.begins_down or bool(self.begins_with)

    def changed(self, change: ChangeConfig) -> Setup:
        """The setup with another value of one option."""
        return replace(self, **{change.option: change.value})  # type: ignore[arg-type]

    def filters_retries_of(self, topic: str) -> bool:
        """Whether pulls of a topic are filtered by what the group asks elsewhere."""
        return self.filters_retries and topic.startswith(RETRY_PREFIX)


@dataclass(frozen=True, slots=True)
class Program:
    """A setup and ops; together with the code they decide an episode."""

    setup: Setup
    ops: tuple[Op, ...]
