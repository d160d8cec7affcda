"""Edits of the reference model and of what decodes the files."""

from __future__ import annotations

from harness_mutant import mutants_of

_MODEL = (
    (
        "M01",
        *("knowledge.reference", "ReferenceModel.put"),
        *("self.floor_kill = appended.end", "pass"),
    ),
    (
        "M02",
        *("knowledge.reference", "ReferenceModel.put"),
        *("self.floor_power = max(self.floor_power, appended.end)", "pass"),
    ),
    (
        "M03",
        *("knowledge.reference", "ReferenceModel.put"),
        *("if not self.buffers_appends:", "if True:"),
    ),
    (
        "M04",
        *("knowledge.reference", "ReferenceModel.saw_positions"),
        "self.floor_power = max(self.floor_power, positions.flushed_where)",
        "pass",
    ),
    (
        "M05",
        *("knowledge.reference", "ReferenceModel.saw_positions"),
        *("max(positions.flushed_where, positions.committed_where)", "0"),
    ),
    (
        "M06",
        *("knowledge.reference", "ReferenceModel.next_queue_offset"),
        *("queue[-1].queue_offset + 1 if queue else 0", "len(queue)"),
    ),
    (
        "M07",
        *("knowledge.reference", "ReferenceModel.empty"),
        *("self.built.pop(key, None)", "pass"),
    ),
    (
        "M08",
        *("knowledge.reference", "ReferenceModel.delete"),
        *("if queue_id == ALL_QUEUES:", "if False:"),
    ),
    (
        "M09",
        *("knowledge.reference", "ReferenceModel.is_unsettled"),
        "key in unknown or (key[0], ALL_QUEUES) in unknown",
        "key in unknown",
    ),
    (
        "M10",
        *("knowledge.reference", "ReferenceModel.dead_below"),
        *("max(of_topic, self.deleted.get(key, 0))", "self.deleted.get(key, 0)"),
    ),
    (
        "M11",
        *("knowledge.reference", "ReferenceModel._expire"),
        *("queue[expired - 1].queue_offset + 1", "queue[expired - 1].queue_offset"),
    ),
    ("M12", "knowledge.reference", "ReferenceModel.stopped", "if clean:", "if False:"),
    (
        "M13",
        *("knowledge.reference", "ReferenceModel.crashed"),
        *('kind == "process_kill"', "True"),
    ),
    (
        "M14",
        *("knowledge.reference", "ReferenceModel.crashed"),
        *('kind == "process_kill"', "False"),
    ),
    (
        "M15",
        *("knowledge.reference", "ReferenceModel.crashed"),
        *("self.in_flight += in_flight", "pass"),
    ),
    (
        "M16",
        *("knowledge.reference", "ReferenceModel.lose_what_was_not_synced"),
        *("self.memory_reverted = True", "pass"),
    ),
    (
        "M17",
        *("knowledge.reference", "ReferenceModel._lower_floor"),
        *("min(self.floor, survives)", "max(self.floor, survives)"),
    ),
    (
        "M18",
        *("knowledge.reference", "ReferenceModel.expirable_until"),
        *("return until - until % file_size", "return 0"),
    ),
    (
        "M19",
        *("knowledge.reference", "ReferenceModel.ends_of_empty_queues"),
        *("queue[-1].phy_offset < log_min", "False"),
    ),
    (
        "M20",
        *("knowledge.reference", "ReferenceModel.adopt"),
        *("self.floor_power = min(self.floor_power, self.end)", "pass"),
    ),
    (
        "M21",
        "knowledge.reference",
        "ReferenceModel.adopt",
        "self.built = built",
        "self.built = {}",
    ),
    (
        "M22",
        *("knowledge.reference", "ReferenceModel.adopt"),
        *("self.floor_kill = self.end", "self.floor_kill = 0"),
    ),
    (
        "M23",
        *("knowledge.reference", "ReferenceModel.visible"),
        "if queue[end - 1].end <= self.reput_from_offset:",
        "if queue[end - 1].end < self.reput_from_offset:",
    ),
    (
        "M24",
        *("knowledge.reference", "ReferenceModel.visible"),
        *("bisect_left(queue, self.log_min, hi=end, key=_phy_offset)", "0"),
    ),
    (
        "M25",
        *("appended", "differs"),
        *("record.queue_offset != appended.queue_offset", "False"),
    ),
    ("M26", "appended", "differs", "light_offsets != appended.light_offsets", "False"),
    (
        "M27",
        *("appended", "differs_from_message"),
        *("record.body != message.body", "False"),
    ),
    (
        "M28",
        *("appended", "differs_from_message"),
        *("getattr(record, name) != getattr(message, name)", "False"),
    ),
    (
        "M29",
        *("appended", "differs_from_message"),
        *("if properties != message.properties:", "if False:"),
    ),
    (
        "M30",
        *("knowledge.reference", "ReferenceModel.put"),
        "message.batch is None or message.batch.number == 0",
        "True",
    ),
    (
        "M31",
        *("knowledge.reference", "ReferenceModel.begin_life"),
        *("self.put_by_topic, self.puts, self.put_times_ms = {}, 0, {}", "pass"),
    ),
)

_IMAGE = (
    (
        "I01",
        *("record", "parse_record"),
        *("topic_at > body_at and crc32(body) & 0x7FFFFFFF != head[2]", "False"),
    ),
    (
        "I02",
        *("record", "_prove_place"),
        *("seen != phy_offset and phy_offset is not None", "False"),
    ),
    ("I31", "record", "_prove_place", "not store_timestamp", "False"),
    (
        "I03",
        *("record", "parse_record"),
        "0 in raw and not (takes_nul and _is_kept(raw, data, end, head[6] + size))",
        "False",
    ),
    (
        "I04",
        *("record", "parse_record"),
        *("raw[-_CRC_PROPERTY_SIZE:-11] == _CRC_PROPERTY", "False"),
    ),
    (
        "I05",
        *("record", "parse_record"),
        *("properties_at + 2 + length != end", "properties_at + 2 + length > end"),
    ),
    ("I06", "log", "_judge_filler", "signed=True) == left", "signed=True) <= left"),
    ("I07", "log", "_chain_end", "files[number + 1].base != end_phy", "False"),
    ("I08", "log", "common_size", "if distance in lengths:", "if False:"),
    (
        "I09",
        *("log", "LogImage._written_past_stop"),
        *("if written < len(file.data):", "if False:"),
    ),
    (
        "I10",
        *("log", "_read_file"),
        *("data[: known.end] == known.data[: known.end]", "True"),
    ),
    (
        "I11",
        *("log", "LogImage._without_dead"),
        *("r.phy_offset >= dead_below", "r.phy_offset >= 0"),
    ),
    ("I12", "queue", "_read_file", "if size <= 0:", "if size < 0:"),
    (
        "I13",
        *("queue", "_chain"),
        *("if not file.is_full or len(file.data) % UNIT_SIZE:", "if False:"),
    ),
    (
        "I14",
        *("queue", "QueueImage.strays"),
        *("first + len(file.data) // UNIT_SIZE > end", "False"),
    ),
    (
        "I15",
        *("checkpoint", "read_checkpoint"),
        *("slot.sequence > mark.sequence", "slot.sequence < mark.sequence"),
    ),
    (
        "I16",
        *("checkpoint", "_read_slot"),
        'raw[end : end + 4] != crc32(raw[:end]).to_bytes(4, "big")',
        "False",
    ),
    (
        "I17",
        *("checkpoint", "Mark.sum_of"),
        *("(last - base) // self.log_file_size", "0"),
    ),
    ("I18", "checkpoint", "read_checkpoint", 'raw.strip(b"\\0")', "False"),
    ("I19", "deleted", "read_deleted", 'crc != b"%08x\\n" % crc32(text)', "False"),
    (
        "I20",
        *("index", "IndexFileImage.recounted"),
        *("newest[slot] = number", "newest.setdefault(slot, number)"),
    ),
    (
        "I21",
        *("index", "_decode"),
        *(
            "min(header.index_count, index_num)",
            "min(header.index_count + 1, index_num)",
        ),
    ),
    ("I22", "index", "keys_of_log", 'record.transaction_type != "rollback"', "True"),
    (
        "I23",
        *("index", "IndexFileImage.is_full"),
        "self.index_num <= self.header.index_count",
        "self.index_num < self.header.index_count",
    ),
    ("I24", "oddity", "is_odd", "record.queue_offset < 0", "False"),
    ("I25", "rot", "rotten_records", "start < record.end", "start < record.phy_offset"),
    ("I26", "record", "tags_code", "31 * code + unit", "33 * code + unit"),
    ("I27", "queue_ext", "ext_place", "address + (1 << 63)", "0"),
)

_STORE_IMAGE = (
    ("I28", "store_image", "_has_expired", "0 <= unit.phy_offset < minimum", "False"),
    (
        "I29",
        *("store_image", "StoreImage.suspect_queues"),
        "asked.get(queue.key, ())[: len(live)] != live",
        "len(asked.get(queue.key, ())) < len(live)",
    ),
    ("I30", "store_image", "StoreImage.unlisted_records", "if missing:", "if False:"),
)

MODEL = mutants_of("model", "crashmq.models", _MODEL)
IMAGE = [
    *mutants_of("image", "crashmq.models.files", _IMAGE),
    *mutants_of("image", "crashmq.models.files", _STORE_IMAGE),
]
