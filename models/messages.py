"""The message of a put, derived from its step without randomness.

A body repeats the run, the step and the place in the step. So no record equals a
leftover of an earlier one, a torn body is visible, and a hex dump is readable. Times
and hosts repeat them too, since no CRC covers these by default.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from crashmq.models.files.message_delay_level import DEFAULT_LEVELS, DelayLevels
from crashmq.models.files.record import (
    RETRY_PREFIX,
    SCHEDULE_TOPIC,
    is_light_queue,
)
from crashmq.models.ops import (
    PROPERTY_END,
    BatchLength,
    PutBatch,
    PutMessage,
    TransactionType,
)
from crashmq.models.quickly_made import quickly_made

RECORD_OVERHEAD = 91
HOST_V6_EXTRA = 12
PROP_CRC_SIZE = 20
FILLER_SIZE_MIN = 8
_BIT_MAP_SIZE_MAX = 0x7FFF - 20
"""An entry has 20 bytes beside its bit map, and a length of 16 bits with a sign."""
TOPIC_SIZE_MAX_V1 = 127
TOPIC_SIZE_MAX = 255
PROPERTIES_SIZE_MAX = 32767
MULTI_DISPATCH = "INNER_MULTI_DISPATCH"
MULTI_QUEUE_OFFSET = "INNER_MULTI_QUEUE_OFFSET"
OWN_WAIT = "WAIT\x01true\x02"
BATCH_CUT_MAX = 21  # a message of a batch has 22 bytes beside its body and properties
FIRST_BORN_MS = 1_600_000_000_000

_TRANSACTION_BITS: dict[TransactionType, int] = {
    "none": 0x0,
    "prepared": 0x4,
    "commit": 0x8,
    "rollback": 0xC,
}
# Their messages are handled once more before anybody reads them.
_NEVER_LIGHT = (RETRY_PREFIX, "rmq_sys_", SCHEDULE_TOPIC)
_FRAME_SIZE = 22  # of a message in a batch, besides its body and its properties
_STORE_V4 = bytes((127, 0, 0, 1)) + (10912).to_bytes(4, "big")
_STORE_V6 = bytes(15) + b"\x01" + (10912).to_bytes(4, "big")


@dataclass(frozen=True, slots=True)
class BatchPlace:
    """The position of a message in its batch; sizes are in bytes of records.

    Attributes:
        number: how many messages of the batch come before.
        before: the total size of those.
        total: the total size of the batch.
        cut: how many bytes the batch's body lacks at the end.
        wrong: which length before its last message is wrong, and ``off_by`` how much.
    """

    number: int
    before: int
    total: int
    cut: int = 0
    wrong: BatchLength = "none"
    off_by: int = 1

    def told(self, which: BatchLength, length: int, size: int) -> bytes:
        """A length before the last message, as much off as fits ``size`` bytes."""
        if which == self.wrong:
            most = (1 << 8 * size - 1) - 1
            length = max(-most - 1, min(most, length + self.off_by))
        return length.to_bytes(size, "big", signed=True)


@quickly_made
@dataclass(frozen=True, slots=True)
class MessageToPut:
    """A message as a producer puts it.

    Attributes:
        born_host: a host as in a record: its address, and a port of four bytes;
            likewise ``store_host``.
        batch: its place in a batch; None if it is put alone.
        user_properties: properties beside RocketMQ's own, as ``a=1;b=x``.
        real_topic: for a delayed message in its level's queue, the topic to deliver it
            to; likewise ``real_queue_id``.
        is_delivered: its delay is over, and the broker puts it into its real topic.
        says_wait_twice: its batch has WAIT=false and it has WAIT=true, so that the
            properties have both, its own first.
        properties_end: what follows the last value of its own properties, in a batch.
        properties: by RocketMQ's names, computed from the other fields.
        properties_size: bytes of the properties in its record, but for those that the
            store adds.
    """

    topic: str
    queue_id: int
    body: bytes
    tags: str
    keys: str
    unique_key: str
    wait_store_ok: bool
    flag: int = 0
    sys_flag: int = 0
    born_timestamp: int = FIRST_BORN_MS
    born_host: bytes = _STORE_V4
    store_host: bytes = _STORE_V4
    reconsume_times: int = 0
    prepared_transaction_offset: int = 0
    multi_dispatch: str = ""
    delay_level: int = 0
    batch: BatchPlace | None = None
    user_properties: str = ""
    real_topic: str = ""
    real_queue_id: int = 0
    is_delivered: bool = False
    says_wait_twice: bool = False
    properties_end: str = PROPERTY_END
    properties: dict[str, str] = field(init=False, compare=False)
    properties_size: int = field(init=False, compare=False)

    def __post_init__(self) -> None:
        """Compute the properties under RocketMQ's names."""
        properties = {"UNIQ_KEY": self.unique_key} if self.unique_key else {}
        if self.tags:
            properties["TAGS"] = self.tags
        if self.keys:
            properties["KEYS"] = self.keys
        if not self.wait_store_ok:
            properties["WAIT"] = "false"
        if self.multi_dispatch:
            properties[MULTI_DISPATCH] = self.multi_dispatch
        if self.delay_level:
            properties["DELAY"] = str(self.delay_level)
        if self.user_properties:
            properties |= _pairs_in(self.user_properties)
        if self.real_topic:
            properties["REAL_TOPIC"] = self.real_topic
            properties["REAL_QID"] = str(self.real_queue_id)
        object.__setattr__(self, "properties", properties)
        size = properties_size_of(properties)
        size += len(OWN_WAIT) if self.says_wait_twice else 0
        size += len(self.properties_end) - len(PROPERTY_END)
        size += self.says_wait_twice and self.lacks_separator
        object.__setattr__(self, "properties_size", size)

    @property
    def has_place(self) -> bool:
        """Whether queues list it; prepared and rolled-back messages are not listed."""
        return self.sys_flag & 0x4 == 0

    @property
    def destination(self) -> tuple[str, int]:
        """The topic and queue_id where consumers find it, after any delay."""
        if self.topic == SCHEDULE_TOPIC:
            return self.real_topic, self.real_queue_id
        return self.topic, self.queue_id

    @property
    def lacks_separator(self) -> bool:
        """Whether its last own property is not ended, so that whoever adds one must."""
        return not self.properties_end.endswith(PROPERTY_END)

    @property
    def prop_crc_size(self) -> int:
        """The bytes that a CRC over all of its record takes among its properties."""
        return PROP_CRC_SIZE + (self.lacks_separator and not self.says_wait_twice)

    @property
    def own_properties(self) -> bytes:
        """Its properties as the body of a batch holds them, where its own WAIT counts.

        Source: Message#setWaitStoreMsgOK, which clients call for each message.
        """
        own = dict(self.properties)
        if self.says_wait_twice:
            own["WAIT"] = "true"
        pairs = [f"{name}\x01{value}" for name, value in own.items()]
        return (PROPERTY_END.join(pairs) + self.properties_end).encode()

    def framed(self, batch: BatchPlace) -> bytes:
        """The last message of a batch as its body holds it, with a wrong length if any.

        Source: MessageDecoder#encodeMessage.
        """
        own = self.own_properties
        whole = _FRAME_SIZE + len(self.body) + len(own)
        return b"".join(
            [
                batch.told("message", whole, 4),
                bytes(8),  # magic and CRC, which nobody reads
                self.flag.to_bytes(4, "big", signed=True),
                batch.told("body", len(self.body), 4),
                self.body,
                batch.told("properties", len(own), 2),
                own,
            ]
        )

    @property
    def waits_for_sync(self) -> bool:
        """Whether a put of it is answered after the sync; never for a delivered one."""
        return self.wait_store_ok and not self.is_delivered

    def scheduled(self, levels: DelayLevels = DEFAULT_LEVELS) -> MessageToPut:
        """The message as a broker with these delay levels stores it first.

        Source: HookUtils#handleScheduleMessage.
        """
        is_final = self.sys_flag & 0xC in (0x0, 0x8)
        is_a_level = 0 < self.delay_level < 1 << 31  # else Integer#parseInt fails
        if self.topic == SCHEDULE_TOPIC or not (is_a_level and is_final):
            return self
        level = levels.level_of(self.delay_level)
        return replace(
            self,
            topic=SCHEDULE_TOPIC,
            queue_id=level - 1,
            delay_level=level,
            real_topic=self.topic,
            real_queue_id=self.queue_id,
        )

    def delivered(self) -> MessageToPut:
        """The message as a broker puts it after its delay. Source: #messageTimeUp."""
        assert self.real_topic, self
        return replace(
            self,
            topic=self.real_topic,
            queue_id=self.real_queue_id,
            prepared_transaction_offset=0,
            is_delivered=True,
        )

    @property
    def light_queues(self) -> tuple[str, ...]:
        """The light queues (LMQ) that it names, if the store has them on."""
        if not (self.multi_dispatch and self.has_place):
            return ()
        if self.topic.startswith(_NEVER_LIGHT):
            return ()
        return tuple(self.multi_dispatch.split(","))

    @property
    def asks_for_no_light_queue(self) -> bool:
        """Whether its list of light queues is invalid: a bad name, or one twice."""
        names = (self.topic, *self.light_queues)
        return len({*names}) < len(names) or not all(map(is_light_queue, names[1:]))

    @property
    def record_size(self) -> int:
        """Bytes of its record, without properties that the store itself adds."""
        topic_size = len(self.topic.encode())
        return (
            RECORD_OVERHEAD
            + (topic_size > TOPIC_SIZE_MAX_V1)
            + (len(self.born_host) - 8)
            + (len(self.store_host) - 8)
            + topic_size
            + len(self.body)
            + self.properties_size
        )


def properties_size_of(properties: Mapping[str, str]) -> int:
    """The size in bytes of properties in a record, each with its two separators."""
    text = "".join([*properties, *properties.values()])
    return len(text.encode()) + 2 * len(properties)


def message_for(
    op: PutMessage, life: int, step: int, place: int, prepared_offset: int = 0
) -> MessageToPut:
    """The message of one put.

    Args:
        op: the put.
        life: how often the store was started before.
        step: number of the op in its program.
        place: how many puts of this step came before.
        prepared_offset: the phy_offset of the prepared message that a commit ends.
    """
    ends = op.transaction in ("commit", "rollback")
    return MessageToPut(
        op.topic,
        op.queue_id,
        _body(op.body_size, life, step, place),
        op.tags,
        op.keys,
        _unique_key(life, step, place),
        op.wait_store_ok,
        op.flag,
        _sys_flag(op),
        _born_timestamp(life, step, place),
        _born_host(life, step, v6=op.ipv6 in ("born", "both")),
        _STORE_V6 if op.ipv6 in ("store", "both") else _STORE_V4,
        op.reconsume_times,
        prepared_offset if ends else 0,
        op.multi_dispatch,
        op.delay_level,
        user_properties=_said_last(op.properties),
    )


def _said_last(text: str) -> str:
    """Without what has no value; of two of a name the last one counts."""
    return ";".join([f"{name}={value}" for name, value in _pairs_in(text).items()])


def _pairs_in(text: str) -> dict[str, str]:
    """Names with values of ``a=1;b=x``. Source: #string2messageProperties."""
    pairs = (one.partition("=") for one in text.split(";"))
    return {name: value for name, _, value in pairs if name and value}


def batch_for(
    op: PutBatch, life: int, step: int, place: int, *, prop_crc: bool = False
) -> list[MessageToPut]:
    """The messages of one batch; arguments as for ``message_for``.

    ``prop_crc``: the store ends each record with a CRC over all of it.
    """
    messages = [
        MessageToPut(
            op.topic,
            op.queue_id,
            _body(size, life, step, place + number),
            op.tags,
            op.keys,
            _unique_key(life, step, place + number),
            op.wait_store_ok,
            flag=number,
            says_wait_twice=not op.wait_store_ok,
            born_timestamp=_born_timestamp(life, step, place),
            born_host=_born_host(life, step, v6=False),
            multi_dispatch=op.multi_dispatch,
            user_properties=_said_last(op.properties),
            properties_end=op.properties_end,
        )
        for number, size in enumerate(op.body_sizes)
    ]
    sizes = [
        message.record_size + (message.prop_crc_size if prop_crc else 0)
        for message in messages
    ]
    total = sum(sizes)
    flaws = (op.cut, op.wrong, op.off_by)
    return [
        replace(message, batch=BatchPlace(number, sum(sizes[:number]), total, *flaws))
        for number, message in enumerate(messages)
    ]


def adds_up(batch: Sequence[MessageToPut]) -> bool:
    """Whether the lengths in the body of a batch are right."""
    last, place = batch[-1], batch[-1].batch
    if place is None or (place.wrong == "none" and not place.cut):
        return True
    told = last.framed(place)
    whole, body_size = _int(told, 0, 4), _int(told, 16, 4)
    properties_at = _FRAME_SIZE + body_size
    if place.cut or whole != len(told) or body_size < 0 or properties_at > whole:
        return False
    return properties_at + _int(told, properties_at - 2, 2) == whole


def _int(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "big", signed=True)


def bit_map_at(phy_offset: int, record_size: int) -> bytes:
    """The bit map that the filter computes for the record at ``phy_offset``.

    Mostly 0 to 10 bytes, different for neighbouring records; now and then empty, too
    large for a small consumequeue_ext file, or as large as any entry may be, or a byte
    too large for that.
    """
    rounds, size = divmod(record_size, 13)
    size = {11: 700, 12: _BIT_MAP_SIZE_MAX + rounds % 2}.get(size, size)
    part = bytes((phy_offset + 7 * n & 0x7F) + 1 for n in range(13))
    return (part * (size // len(part) + 1))[:size]


def _body(size: int, life: int, step: int, place: int) -> bytes:
    word = f"{life}.{step}.{place};".encode()
    return (word * (size // len(word) + 1))[:size]


def _unique_key(life: int, step: int, place: int) -> str:
    return f"{life:04X}{step:06X}{place:02X}"


def _born_timestamp(life: int, step: int, place: int) -> int:
    return FIRST_BORN_MS + life * 100_000_000 + step * 100 + place


def _born_host(life: int, step: int, *, v6: bool) -> bytes:
    """A host whose last address bytes are run and step, and whose port is the step."""
    ip = bytes((10, life & 0xFF, step >> 8 & 0xFF, step & 0xFF))
    port = (1024 + step % 60_000).to_bytes(4, "big")
    return (b"\x20\x01" + bytes(10) if v6 else b"") + ip + port


def _sys_flag(op: PutMessage) -> int:
    hosts = {"none": 0, "born": 0x10, "store": 0x20, "both": 0x30}[op.ipv6]
    return op.sys_flag & ~0x3C | hosts | _TRANSACTION_BITS[op.transaction]
