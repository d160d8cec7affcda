"""What the engine is configured with for a program's setup: options, time and files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, replace
from functools import cache, cached_property
from typing import Any, Final, TypeVar

from crashmq.engine.broker.broker_config import BrokerConfig
from crashmq.engine.store.config import FlushDiskType, OnDamage, StoreConfig
from crashmq.engine.store.queue.cq_unit import CQ_STORE_UNIT_SIZE
from crashmq.harness.subjects.configured import told_fields
from crashmq.harness.subjects.damage import Placed
from crashmq.models.files.store_image import read_store
from crashmq.models.observations import EPOCH_MS
from crashmq.models.program import (
    COMMIT_THOROUGH_MS,
    FLUSH_THOROUGH_MS,
    FoundStore,
    Setup,
)
from crashmq.scenarios.catalogue.found_stores import files_found

_LATER_MS = 1000
_CAPITAL = re.compile("[A-Z]")

ConfigT = TypeVar("ConfigT", StoreConfig, BrokerConfig)

_OF_BROKER: Final[Mapping[str, tuple[str, ...]]] = {
    "lets_read": ("is_readable",),
    "takes_lite_pulls": ("lite_pull_message_enable",),
    "long_polling": ("long_polling_enable",),
    "filters": ("enable_property_filter", "enable_calc_filter_bit_map"),
    "filters_retries": ("filter_support_retry",),
}
"""The options of a setup that are fields of a broker's configuration."""


class Configured:
    """A setup, and what the engine is configured with for it."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup

    @cached_property
    def config(self) -> StoreConfig:
        """Made by the first start, whose error it is if the engine refuses it."""
        return config_of(self.setup)


def config_of(setup: Setup) -> StoreConfig:
    """The engine's configuration for a setup.

    Raises:
        ValueError: the setup has a wrong value that it refuses.
    """
    return _with_wrong_value(_config_of(setup), setup)


def broker_config_of(setup: Setup) -> BrokerConfig:
    """The configuration of the broker for a setup.

    Raises:
        ValueError: the setup has a wrong value that it refuses.
    """
    return _with_wrong_value(BrokerConfig(**told_fields(setup, _OF_BROKER)), setup)


def _with_wrong_value(config: ConfigT, setup: Setup) -> ConfigT:
    """A configuration of the engine with the setup's wrong value, if it is one of its.

    Raises:
        ValueError: the value is refused.
    """
    option, _, value = setup.wrong_value.partition("=")
    name = _CAPITAL.sub(lambda found: f"_{found[0].lower()}", option)
    if name not in {field.name for field in fields(config)}:
        return config
    is_number = isinstance(getattr(config, name), int)
    changed: dict[str, Any] = {name: int(value) if is_number else value}
    return replace(config, **changed)


def _config_of(setup: Setup) -> StoreConfig:
    return StoreConfig(
        mapped_file_size_commit_log=setup.log_file_size,
        # A store rounds this up to whole units, as RocketMQ does.
        mapped_file_size_consume_queue=max(
            CQ_STORE_UNIT_SIZE, setup.queue_file_units * CQ_STORE_UNIT_SIZE - 1
        ),
        flush_disk_type=FlushDiskType[setup.flush_mode],
        max_message_size=setup.max_message_size,
        start_window=setup.start_window,
        read_window_size=setup.read_window,
        access_message_in_memory_max_size=setup.in_memory_size,
        check_crc_on_read=setup.checks_crc,
        on_damage=OnDamage(setup.on_damage),
        adopt=setup.adopt,
        message_delay_level=setup.message_delay_level,
        enable_consume_queue_ext=setup.has_queue_ext,
        mapped_file_size_consume_queue_ext=max(24, setup.queue_ext_size),
        message_index_enable=setup.has_index,
        max_hash_slot_num=setup.index_slots or 1,
        max_index_num=max(2, setup.index_entries),
        flush_commit_log_thorough_interval=FLUSH_THOROUGH_MS,
        flush_consume_queue_thorough_interval=FLUSH_THOROUGH_MS,
        commit_commit_log_thorough_interval=COMMIT_THOROUGH_MS,
        flush_commit_log_least_pages=setup.flush_least_pages,
        commit_commit_log_least_pages=setup.flush_least_pages,
        transient_store_pool_enable=setup.transient_store_pool,
        transient_store_pool_size=setup.transient_store_buffers,
        allocate_ahead=setup.preallocate,
        enabled_append_prop_crc=setup.prop_crc,
        force_verify_prop_crc=setup.prop_crc,
        enable_multi_dispatch=setup.multi_dispatch,
        duplication_enable=setup.duplicates,
        file_reserved_time=setup.reserved_hours,
        delete_when=setup.delete_hours,
        delete_file_batch_max=setup.delete_batch,
        clean_file_forcibly_enable=setup.cleans_forcibly,
    )


def epoch_of(setup: Setup) -> int:
    """The time at which a store's wall clock starts, in milliseconds since the epoch.

    It is after the store time of every record in the files that the store begins with.
    """
    return _epoch_after(setup.begins_with) if setup.begins_with else EPOCH_MS


def place_found(disk: Placed, setup: Setup) -> None:
    """Put the files that a store begins with on its disk."""
    for path, data in files_found(setup.begins_with).items():
        disk.place_new(path, data)


def adds_crc(setup: Setup) -> bool:
    """Whether records end with a CRC: as configured, or as all records found do."""
    return setup.prop_crc or (bool(setup.begins_with) and _has_crcs(setup.begins_with))


@cache
def _has_crcs(name: FoundStore) -> bool:
    records = read_store(files_found(name)).commit_log.records
    return all(record.has_property_crc for record in records)


@cache
def _epoch_after(name: FoundStore) -> int:
    return read_store(files_found(name)).newest_store_timestamp + _LATER_MS
