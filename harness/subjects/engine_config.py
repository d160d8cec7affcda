"""The engine's configuration for the setup of a program."""

from __future__ import annotations

from crashmq.engine.store.config import FlushDiskType, OnDamage, StoreConfig
from crashmq.engine.store.queue.cq_unit import CQ_STORE_UNIT_SIZE
from crashmq.models.program import COMMIT_THOROUGH_MS, FLUSH_THOROUGH_MS, Setup


def config_of(setup: Setup) -> StoreConfig:
    """The engine's configuration for a setup."""
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
