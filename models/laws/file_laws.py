"""The laws that need one image of the files and nothing else, by id."""

from __future__ import annotations

from typing import TypeAlias

from crashmq.models.laws import (
    checkpoint,
    commit_log,
    config_files,
    consume_queue,
    index,
    offsets,
    queue_ext,
    topic_deletion,
)
from crashmq.models.laws.judged import Judged
from crashmq.models.laws.registry import Law

Laws: TypeAlias = tuple[Law[[Judged]], ...]

LOG_LAWS: Laws = (
    commit_log.every_record_is_whole,
    commit_log.log_files_fit_together,
    commit_log.closed_files_end_with_a_filler,
    commit_log.store_timestamps_never_decrease,
    commit_log.fields_are_in_range,
)
QUEUE_LAWS: Laws = (
    consume_queue.units_point_at_their_records,
    consume_queue.units_are_contiguous,
    consume_queue.no_unit_past_the_log,
    consume_queue.every_record_has_its_unit,
    consume_queue.queue_files_fit_together,
    queue_ext.addresses_lead_to_their_records,
    queue_ext.files_beside_queues_fit_together,
    queue_ext.units_lead_to_their_bit_maps,
    queue_ext.files_beside_queues_are_filled,
    queue_ext.nothing_lies_behind_the_last_address,
    queue_ext.bit_maps_name_no_group_in_vain,
    offsets.queue_offsets_rise_by_one,
)
CONFIG_LAWS: Laws = (
    config_files.config_files_are_whole,
    config_files.no_offset_is_past_its_queue,
    config_files.filters_are_in_their_place,
    config_files.bits_are_those_of_their_group,
)
"""Of a broker's config files; fsck asks them, the judge of episodes does not."""

CHECKPOINT_LAWS: Laws = (
    checkpoint.durable_mark_is_in_the_log,
    checkpoint.flushed_time_is_in_the_log,
    checkpoint.dispatched_time_is_in_the_queues,
    checkpoint.checkpoint_is_in_range,
    checkpoint.dispatched_offset_is_in_the_queues,
    checkpoint.marked_bytes_are_unchanged,
)
INDEX_LAWS: Laws = (
    index.headers_are_recounts,
    index.entries_are_the_keys_of_the_log,
    index.chains_lead_back,
    index.every_key_is_listed,
    index.index_files_fit_together,
    index.ended_files_are_whole,
    index.full_files_alone_are_left,
)
DELETION_LAWS: Laws = (
    topic_deletion.record_of_deletions_is_whole,
    topic_deletion.no_unit_points_at_the_dead,
)
FILE_LAWS: Laws = (
    *LOG_LAWS,
    *QUEUE_LAWS,
    *CHECKPOINT_LAWS,
    *INDEX_LAWS,
    *DELETION_LAWS,
)

DISPATCH_LAWS: Laws = (
    consume_queue.units_point_at_their_records,
    consume_queue.units_are_contiguous,
    consume_queue.no_unit_past_the_log,
    consume_queue.every_record_has_its_unit,
    queue_ext.addresses_lead_to_their_records,
    queue_ext.units_lead_to_their_bit_maps,
    queue_ext.bit_maps_name_no_group_in_vain,
    index.headers_are_recounts,
    index.entries_are_the_keys_of_the_log,
    index.chains_lead_back,
    index.every_key_is_listed,
    topic_deletion.no_unit_points_at_the_dead,
)
"""Those that a round of dispatch must keep that succeeds after the disk has failed."""
