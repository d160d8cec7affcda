"""Oddities: fields of an intact record with values that no store writes.

Neither the body's CRC nor the inner lengths cover these fields, and recovery accepts a
record whatever their values. Each record is checked once, when its file is read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from crashmq.models.files.places import NAME_DIGITS, is_queue_id
from crashmq.models.files.properties import are_damaged, are_named
from crashmq.models.files.record import Record, written_part

_SYS_FLAG_UNKNOWN = ~0x7FF
_COMPRESSION_SHIFT = 8
_COMPRESSIONS = 4  # three ways and none
_COMPRESSION_ODD = _COMPRESSIONS << _COMPRESSION_SHIFT
_PORTS = 1 << 16


def is_odd(record: Record) -> bool:
    """Whether the record may have oddities; false for nearly every one."""
    if (
        record.sys_flag & _SYS_FLAG_UNKNOWN
        or record.prepared_transaction_offset
        or not record.topic
        or not record.body
        or record.queue_offset < 0
        or record.queue_id < 0
        or record.reconsume_times < 0
        or record.store_timestamp <= 0
    ):
        return True
    return are_odd(written_part(record.properties_raw))


def is_odd_to_rocketmq(record: Record) -> bool:
    """As ``is_odd``, for stores that RocketMQ and its clients wrote."""
    born, store = record.born_host, record.store_host
    high = born[-4] or born[-3] or store[-4] or store[-3]  # of the ports
    return bool(high or record.sys_flag & _COMPRESSION_ODD)


def are_odd(properties: bytes) -> bool:
    """Whether the properties differ from what clients write."""
    return 0 in properties or not are_named(properties)


def oddities(
    record: Record, names: Collection[bytes] | None = None
) -> Iterator[tuple[str, str]]:
    """The fields of a record that are out of range, as (seen, expected).

    ``names`` are the property names of a RocketMQ store, which accepts properties that
    no client writes; see ``property_names``.
    """
    if names is not None:
        yield from _not_of_rocketmq(record)
    for name in ("queue_offset", "queue_id", "reconsume_times"):
        if getattr(record, name) < 0:
            yield f"{name} {getattr(record, name)}", "0 or more"
    if record.store_timestamp <= 0:
        yield f"store_timestamp {record.store_timestamp}", "more than 0"
    if not record.topic:
        yield "no topic", "a topic"
    if not record.body and record.body_crc:
        yield f"body_crc {record.body_crc} of an empty body", "0"
    if record.sys_flag & _SYS_FLAG_UNKNOWN:
        yield f"sys_flag 0x{record.sys_flag & 0xFFFFFFFF:08X}", "bits 0 to 10 alone"
    half = record.prepared_transaction_offset
    if half and record.transaction_type in ("none", "prepared"):
        yield f"prepared_transaction_offset {half}", "0, as no transaction ends here"
    elif not 0 <= half <= record.phy_offset:
        yield f"prepared_transaction_offset {half}", "an earlier record's"
    properties = written_part(record.properties_raw)
    is_proven = names is not None and record.has_property_crc
    is_wrong = are_odd(properties) and not is_proven
    if is_wrong and (names is None or are_damaged(properties, names)):
        yield f"properties {properties[:60]!r}", "name 0x01 value 0x02 each"


def _not_of_rocketmq(record: Record) -> Iterator[tuple[str, str]]:
    for name, host in (("born", record.born_host), ("store", record.store_host)):
        port = int.from_bytes(host[-4:], "big")
        if port >= _PORTS:
            yield f"port {port} of {name}_host", f"below {_PORTS}"
    way = record.sys_flag >> _COMPRESSION_SHIFT & 7
    if way >= _COMPRESSIONS:
        yield f"sys_flag 0x{record.sys_flag:08X}, compression {way}", "3 at most"


def is_misnamed(path: str) -> bool:
    """Whether RocketMQ reads the file because its name is a number.

    No store of ours writes such a name: it does not have 20 digits.
    """
    match path.split("/"):
        case ["commitlog", name]:
            return _is_odd_number(name)
        case ["consumequeue", _, queue_id, name]:
            return is_queue_id(queue_id) and _is_odd_number(name)
    return False


def _is_odd_number(name: str) -> bool:
    return name.isascii() and name.isdecimal() and len(name) != NAME_DIGITS
