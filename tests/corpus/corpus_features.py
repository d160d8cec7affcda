"""What the corpus has stores of: a feature a function, which fills a directory.

``expected_today.py`` says which of them our engine or ``fsck`` gets wrong today; what a
healthy engine refuses by name (``Feature.refused_as``) is no defect.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from corpus_work import (
    COMMIT,
    PREPARED,
    ROLLBACK,
    TIMER_TOPIC,
    Work,
    body_of,
    inner_message,
    place_of,
    properties_of,
    properties_text,
)
from our_stores import write_with_our_engine
from rocketmq import VERSIONS, Settings

LOG_FILE_SIZE = 65_536
SMALL: Mapping[str, str] = {
    "mappedFileSizeCommitLog": str(LOG_FILE_SIZE),
    "mappedFileSizeConsumeQueue": "1200",
    "maxHashSlotNum": "64",
    "maxIndexNum": "256",
}
"""Sizes of every store of the corpus, but where a feature is about them."""

PLAIN = Settings(SMALL)

SINCE_5 = VERSIONS[1:]
SINCE_5_3 = VERSIONS[2:]
LARGE = 2_600  # a body's mean size for a log of six files

Write: TypeAlias = Callable[[Work], None]


Takes: TypeAlias = Literal["serves", "refuses", "either"]


@dataclass(frozen=True)
class Feature:
    """One kind of directory.

    Attributes:
        versions: those that can write it.
        committed: those of which an archive is kept in the repository.
        takes: what a start of our engine must make of it. It serves what RocketMQ
            serves, or refuses what it does not know; or either, where RocketMQ itself
            reads on over damage.
        refused_as: words by which a refusal names what it does not know; "": a start
            never refuses, if it is configured as RocketMQ was.
        loses: RocketMQ serves less than it had acknowledged: expired, deleted, not
            committed, or damaged on purpose.
        is_damaged: somebody changed the files behind RocketMQ's back.
        has_units: RocketMQ's queue files list what it serves.
    """

    name: str
    write: Write
    settings: Settings = PLAIN
    versions: tuple[str, ...] = VERSIONS
    committed: tuple[str, ...] = ("5.3.0",)
    takes: Takes = "serves"
    refused_as: str = ""
    loses: bool = False
    is_damaged: bool = False
    has_units: bool = True

    @property
    def is_log_elsewhere(self) -> bool:
        """Whether ``commitlog`` in the store's root is not where the log lies."""
        return bool({"storePathCommitLog", "enableDLegerCommitLog"} & {*self.store})

    @property
    def store(self) -> Mapping[str, str]:
        return self.settings.store


def with_settings(**store: str) -> Settings:
    return Settings({**SMALL, **store})


def plain(work: Work) -> None:
    with work.life() as broker:
        work.mixed(0, 160, LARGE)
        broker.tell("drain")


def plain_killed(work: Work) -> None:
    with work.life("kill"):
        work.mixed(0, 160, LARGE)


def empty(work: Work) -> None:
    with work.life():
        pass


def one_killed(work: Work) -> None:
    with work.life("kill"):
        work.mixed(1, 1)


def four_lives(work: Work) -> None:
    for number in range(4):
        with work.life("kill" if number in (1, 3) else "clean"):
            work.mixed(30 * number, 30)


def upgraded(work: Work) -> None:
    with work.life(version=VERSIONS[0]):
        work.mixed(0, 60)
    with work.life():
        work.mixed(60, 60)


def small(work: Work) -> None:
    with work.life() as broker:
        work.mixed(0, 100)
        broker.tell("drain")


def small_killed(work: Work) -> None:
    with work.life("kill"):
        work.mixed(0, 100)


def batches(work: Work) -> None:
    with work.life():
        for number in range(0, 90, 5):
            inner = [
                inner_message(
                    body_of(n, 200), properties_text(properties_of(n)).encode(), n % 7
                )
                for n in range(number, number + 1 + number % 7)
            ]
            work.put_batch(*place_of(number), inner)
            work.mixed(200 + number, 1)


ODD_INNER = (
    b"",
    b"KEYS\x01a\x02",
    b"KEYS\x01a",
    b"empty\x01\x02KEYS\x01b\x02",
    b"\x01no name\x02",
    b"latin\x01caf\xe9\x02",
    b"cut\x01\xe6\x94\x02TAGS\x01t\x02",
    b"\xff\xfe\x01\x80\x02",
    b"twice\x011\x02twice\x012\x02",
    b"no value\x02TAGS\x01t\x02",
    b"\x02\x02KEYS\x01c\x02",
)
ODD_BATCHES = range(0, 40, 4)
"""Numbers of the batches of ``odd_batches``, four messages each."""


def odd_batch(number: int) -> list[bytes]:
    """Properties of inner messages are bytes, which RocketMQ copies as they are."""
    several = [ODD_INNER[(number + n) % len(ODD_INNER)] for n in range(4)]
    return [inner_message(b"odd %d" % number, one) for one in several]


def odd_batches(work: Work) -> None:
    with work.life():
        for number in ODD_BATCHES:
            work.put_batch(*place_of(number), odd_batch(number))
        work.mixed(100, 20)


def transactions(work: Work) -> None:
    """As a broker keeps them, and as records of the four transaction types."""
    half, op = "RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC"
    with work.life():
        for number in range(24):
            body = body_of(number, 200)
            real = {"REAL_TOPIC": "orders", "REAL_QID": "1", "PGROUP": "g"}
            properties = {"TRAN_MSG": "true", "KEYS": f"T{number}", **real}
            prepared = work.put(half, 0, body, properties)
            if number % 3 == 0:
                continue
            if number % 3 == 1:
                committed = {"TRAN_MSG": "true", "KEYS": f"T{number}", "PGROUP": "g"}
                at = prepared["phy_offset"]
                work.put("orders", 1, body, committed, sys_flag=COMMIT, prepared=at)
            done = str(prepared["queue_offset"]).encode()
            work.put(op, 0, done, {"TAGS": "d"})
        for number in range(24, 48):
            flag = (0, PREPARED, COMMIT, ROLLBACK)[number % 4]
            work.put("orders", 2, body_of(number, 200), {}, sys_flag=flag)


def delayed(work: Work) -> None:
    with work.life():
        for number in range(54):
            work.delay("orders", number % 4, body_of(number, 200), 16 + number % 3)
        work.mixed(54, 30)


def delayed_days(work: Work) -> None:
    with work.life():
        for number in range(54):
            work.delay("orders", number % 4, body_of(number, 200), 1 + number % 4)
        work.mixed(54, 30)


def ipv6(work: Work) -> None:
    with work.life():
        for number in range(100):
            hosts: dict[str, Any] = {}
            if number % 2:
                hosts["born_host"] = "2001:db8::1"
            if number % 3:
                hosts["store_host"] = "2001:db8::2"
            work.mixed(number, 1, **hosts)


def long_topics(work: Work) -> None:
    sizes = (126, 127) if work.is_four else (127, 128, 200, 255)
    with work.life():
        for number in range(60):
            topic = "t" * (sizes[number % len(sizes)] - 1) + "x"
            work.put(topic, number % 2, body_of(number, 200), properties_of(number))
        work.mixed(60, 20)


def odd_topics(work: Work) -> None:
    topics = ("a.b", "with blank", "主题", "tab\there", "a:b", "é", ".hidden", "x|y%z")
    with work.life():
        for number in range(80):
            topic = topics[number % len(topics)]
            work.put(topic, number % 2, body_of(number, 200), properties_of(number))


def light(work: Work) -> None:
    queues = ("", "%LMQ%a", "%LMQ%b", "%LMQ%a,%LMQ%b", "%LMQ%c")
    _light(work, queues)


def light_mqtt(work: Work) -> None:
    queues = ("", "%LMQ%a.b:c", "%LMQ%home%kitchen", "%LMQ%a.b:c,%LMQ%x y", "%LMQ%温度")
    _light(work, queues)


def _light(work: Work, queues: tuple[str, ...]) -> None:
    with work.life():
        for number in range(100):
            named = queues[number % len(queues)]
            also = {"INNER_MULTI_DISPATCH": named} if named else {}
            properties = properties_of(number) | also
            work.put(*place_of(number), body_of(number, 200), properties)


def expired(work: Work) -> None:
    with work.life() as broker:
        work.mixed(0, 160, LARGE)
        broker.tell("expire", files=3)


def expired_killed(work: Work) -> None:
    with work.life("kill") as broker:
        work.mixed(0, 160, LARGE)
        broker.tell("expire", files=3)
        work.mixed(160, 10)


def storm(work: Work) -> None:
    """SIGKILL amid the putters, when some hundreds were acknowledged."""
    with work.life("kill") as broker:
        broker.tell("storm", topic="storm-", threads=4)
        for _ in range(240):
            _note_storm(work, broker.answer())
        broker.shoot()
        work.acknowledged.extend([row for row in broker.rest() if "topic" in row])


def _note_storm(work: Work, row: dict[str, object]) -> None:
    assert row["status"] == "PUT_OK", row
    work.acknowledged.append(row)


def timers(work: Work) -> None:
    with work.life() as broker:
        broker.tell("timer")
        now_ms = time.time_ns() // 1_000_000
        for number in range(40):
            due = now_ms + (1_500 if number % 2 else 86_400_000 * (1 + number))
            properties = {
                "TIMER_OUT_MS": str(due),
                "TIMER_DELIVER_MS": str(due),
                "REAL_TOPIC": "orders",
                "REAL_QID": str(number % 4),
            }
            work.put(TIMER_TOPIC, 0, body_of(number, 200), properties)
        broker.tell("sleep", ms=6_000)
        broker.tell("drain")


def deleted(work: Work) -> None:
    with work.life() as broker:
        work.mixed(0, 100)
        broker.tell("drain")
        broker.tell("forget", topic="payments")
        broker.tell("sleep", ms=1_000)


def odd_properties(work: Work) -> None:
    odd: tuple[dict[str, str], ...] = (
        {"user": "a\0b"},
        {"\0": "\0"},
        {"user": "\0" * 40, "KEYS": "nul"},
        {"empty": "", "KEYS": "e"},
        {"KEYS": "  two  blanks "},
        {"TAGS": "a || b"},
        {"user": "line\nbreak\r\t\x03\x7f"},
        {"user": "💰" * 50},
        {"KEYS": "k" * 1_000},
        {"user": "x" * 20_000},
        {"WAIT": "false", "CLUSTER": "c", "MSG_REGION": "r"},
        {"__CRC32#": "12"},
        {"DUP_INFO": "1_2", "TRACE_ON": "true"},
    )
    with work.life():
        for number in range(52):
            work.put(*place_of(number), body_of(number, 200), odd[number % len(odd)])


def odd_properties_killed(work: Work) -> None:
    with work.life("kill"):
        for number in range(40):
            nul = {"user": "a\0b", "KEYS": f"N{number}"} if number % 10 == 5 else {}
            work.put(*place_of(number), body_of(number, 200), nul)


def dledger(work: Work) -> None:
    with work.life() as broker:
        work.await_leader()
        work.mixed(0, 60)
        broker.tell("drain")


def batch_queues(work: Work) -> None:
    with work.life() as broker:
        for number in range(0, 60, 3):
            inner = [
                inner_message(body_of(n, 100), b"KEYS\x01B%d\x02" % n)
                for n in range(number, number + 3)
            ]
            work.put_inner_batch("batched", number // 3 % 2, inner)
            work.mixed(number, 1)
        broker.tell("drain")


def compaction(work: Work) -> None:
    with work.life() as broker:
        for number in range(60):
            key = {"KEYS": f"C{number % 7}"}
            work.put("compacted", number % 2, body_of(number, 200), key)
            work.mixed(number, 1)
        broker.tell("drain")
        broker.tell("sleep", ms=1_000)


def extended(work: Work) -> None:
    with work.life() as broker:
        broker.tell("bitmaps")
        work.mixed(0, 100)
        broker.tell("drain")


def flipped_bit(work: Work) -> None:
    """One bit of a body in the first of six log files; RocketMQ looks at three."""
    plain(work)
    row = work.acknowledged[3]
    _flip(work, row["phy_offset"] + row["size"] // 2)


def flipped_bit_killed(work: Work) -> None:
    plain_killed(work)
    row = work.acknowledged[3]
    _flip(work, row["phy_offset"] + row["size"] // 2)


def _flip(work: Work, phy_offset: int) -> None:
    base = phy_offset // LOG_FILE_SIZE * LOG_FILE_SIZE
    path = work.root / "commitlog" / f"{base:020d}"
    data = bytearray(path.read_bytes())
    data[phy_offset - base] ^= 1
    path.write_bytes(data)


def gap(work: Work) -> None:
    plain(work)
    (work.root / "commitlog" / f"{LOG_FILE_SIZE:020d}").unlink()


def ours_continued(work: Work) -> None:
    work.acknowledged += write_with_our_engine(work.root, work.settings, 60)
    with work.life():
        work.mixed(60, 60)


def ours_continued_killed(work: Work) -> None:
    work.acknowledged += write_with_our_engine(work.root, work.settings, 60)
    with work.life("kill"):
        work.mixed(60, 60)


def ours_expired(work: Work) -> None:
    work.acknowledged += write_with_our_engine(work.root, work.settings, 160, LARGE)
    with work.life() as broker:
        broker.tell("expire", files=2)


def ours_nul(work: Work) -> None:
    """Our mark, and RocketMQ wrote on behind it, NULs among properties."""
    work.acknowledged += write_with_our_engine(work.root, work.settings, 30)
    odd_properties_killed(work)


def everything(work: Work) -> None:
    """All kinds of messages among each other, in two lives, and a topic deleted."""
    with work.life() as broker:
        for number in range(0, 60, 12):
            _all_kinds(work, number)
        broker.tell("drain")
        broker.tell("forget", topic="payments")
        broker.tell("sleep", ms=1_000)
    with work.life():
        for number in range(60, 96, 12):
            _all_kinds(work, number)


def everything_killed(work: Work) -> None:
    with work.life():
        for number in range(0, 36, 12):
            _all_kinds(work, number)
    with work.life("kill"):
        for number in range(36, 96, 12):
            _all_kinds(work, number)


def _all_kinds(work: Work, number: int) -> None:
    flags = (PREPARED, COMMIT, ROLLBACK)
    several = [inner_message(body_of(number + n, 200), ODD_INNER[n]) for n in range(3)]
    names = ("%LMQ%a", "%LMQ%a,%LMQ%温度", "%LMQ%home%kitchen")
    named = {"INNER_MULTI_DISPATCH": names[number // 12 % 3], "KEYS": f"L{number}"}
    half = {"TRAN_MSG": "true", "REAL_TOPIC": "orders", "REAL_QID": "1", "PGROUP": "g"}
    work.mixed(number, 2, born_host="2001:db8::1")
    work.put("orders", 0, body_of(number, 200), named)
    work.put_batch("orders", 3, several)
    work.delay("orders", 2, body_of(number, 200), 16 + number // 12 % 3)
    work.put("RMQ_SYS_TRANS_HALF_TOPIC", 0, body_of(number, 200), half)
    for flag in flags:
        work.put("orders", 2, body_of(number, 200), {"KEYS": "t"}, sys_flag=flag)
    work.put("%RETRY%group one", 0, b"again %d" % number, {"RETRY_TOPIC": "orders"})
    work.put("t" * 120, 0, body_of(number, 300), {"买家": "a", "user": "line\nbreak"})
    work.mixed(number + 2, 10, LARGE, store_host="2001:db8::2")


def downgraded(work: Work) -> None:
    """The version before wrote on what this one left, and this one goes on."""
    before = VERSIONS[VERSIONS.index(work.version) - 1]
    with work.life():
        work.mixed(0, 40)
    with work.life(version=before):
        work.mixed(40, 40)
    with work.life("kill"):
        work.mixed(80, 20)


_ELSEWHERE = replace(
    with_settings(storePathCommitLog="{beside}/elsewhere/commitlog"),
    beside=("elsewhere",),
)
_SEVERAL_PATHS = replace(
    with_settings(storePathCommitLog="{beside}/log-a,{beside}/log-b"),
    beside=("log-a", "log-b"),
)
_DLEDGER = with_settings(
    enableDLegerCommitLog="true",
    dLegerGroup="field",
    dLegerPeers="n0-127.0.0.1:40911",
    dLegerSelfId="n0",
)
_BATCHED = replace(
    with_settings(mapperFileSizeBatchConsumeQueue="4600"),
    topics=({"name": "batched", "attributes": "queue.type:BatchCQ"},),
)
_COMPACTED = replace(
    with_settings(compactionMappedFileSize="65536", compactionCqMappedFileSize="4600"),
    topics=({"name": "compacted", "attributes": "cleanup.policy:COMPACTION"},),
)
_ROCKSDB = replace(
    with_settings(storeType="defaultRocksDB"), store_class="RocksDBMessageStore"
)
_LIGHT = with_settings(enableLmq="true", enableMultiDispatch="true")
_CRC = with_settings(enabledAppendPropCRC="true", forceVerifyPropCRC="true")
_POOL = with_settings(transientStorePoolEnable="true", transientStorePoolSize="3")
_SYNC = with_settings(flushDiskType="SYNC_FLUSH")
_EXT = with_settings(
    enableConsumeQueueExt="true",
    mappedFileSizeConsumeQueueExt="4096",
    bitMapLengthConsumeQueueExt="64",
)
_DAYS = with_settings(messageDelayLevel="3d 30d 300d 3000d")
_WIDE_QUEUES = with_settings(mappedFileSizeConsumeQueue="8000")
_LONGER = with_settings(mappedFileSizeConsumeQueue="2000")
_TIMERS = with_settings(timerWheelEnable="true", mappedFileSizeTimerLog="52000")

FIRST, MIDDLE, NEWEST = "4.9.8", "5.3.0", "5.5.1"
EVERY_LATER = (FIRST, "5.3.3", NEWEST)
THREE = (FIRST, MIDDLE, NEWEST)

FEATURES = (
    Feature("plain", plain, committed=VERSIONS),
    Feature("plain-killed", plain_killed, committed=VERSIONS),
    Feature("empty", empty, committed=THREE, has_units=False),
    Feature("one-killed", one_killed, committed=THREE),
    Feature("four-lives", four_lives, committed=THREE),
    Feature("upgraded", upgraded, versions=SINCE_5, committed=(MIDDLE, NEWEST)),
    Feature("downgraded", downgraded, versions=SINCE_5, committed=("5.3.3", NEWEST)),
    Feature("everything", everything, _LIGHT, committed=EVERY_LATER, loses=True),
    Feature(
        *("everything-killed", everything_killed, _LIGHT),
        committed=("5.1.4",),
        loses=True,
    ),
    Feature("batch", batches, committed=(FIRST, MIDDLE, "5.3.3")),
    Feature("odd-batch", odd_batches, committed=(FIRST, MIDDLE)),
    Feature("transactions", transactions, committed=(MIDDLE, "5.1.4"), loses=True),
    Feature("delayed", delayed, committed=THREE),
    Feature("delayed-days", delayed_days, _DAYS, committed=THREE),
    Feature("ipv6", ipv6, committed=(MIDDLE, "5.1.4")),
    Feature("long-topics", long_topics, committed=THREE),
    Feature("odd-topics", odd_topics, committed=THREE),
    Feature("light", light, _LIGHT, committed=(MIDDLE, "5.1.4", NEWEST)),
    Feature("light-mqtt", light_mqtt, _LIGHT, committed=THREE),
    Feature("crc", small, _CRC, SINCE_5_3, committed=(MIDDLE, "5.3.3", NEWEST)),
    Feature("expired", expired, _LONGER, committed=THREE, loses=True),
    Feature("expired-killed", expired_killed, _LONGER, loses=True),
    Feature("pool-killed", small_killed, _POOL, loses=True),
    Feature("sync", small, _SYNC, committed=(MIDDLE, "5.3.3")),
    Feature("storm-killed", storm, committed=VERSIONS),
    Feature("storm-sync-killed", storm, _SYNC, committed=(MIDDLE, NEWEST)),
    Feature("storm-pool-killed", storm, _POOL, loses=True),
    Feature("timers", timers, _TIMERS, SINCE_5, committed=(MIDDLE, NEWEST)),
    Feature("deleted-topic", deleted, committed=THREE, loses=True),
    Feature("odd-properties", odd_properties, committed=THREE),
    Feature("nul-killed", odd_properties_killed, committed=(MIDDLE, NEWEST)),
    Feature(
        "elsewhere", small, _ELSEWHERE, takes="refuses", refused_as="storePathCommitLog"
    ),
    Feature(
        "several-paths",
        plain,
        _SEVERAL_PATHS,
        takes="refuses",
        refused_as="storePathCommitLog",
    ),
    Feature(
        "dledger",
        dledger,
        _DLEDGER,
        SINCE_5,
        (MIDDLE, NEWEST),
        takes="refuses",
        refused_as="DLedger",
    ),
    Feature(
        *("batch-queues", batch_queues, _BATCHED, SINCE_5, (MIDDLE, NEWEST)),
        takes="refuses",
        refused_as="BatchConsumeQueue",
    ),
    Feature(
        *("rocksdb", small, _ROCKSDB, SINCE_5_3, (MIDDLE, NEWEST)),
        takes="refuses",
        refused_as="RocksDB",
        has_units=False,
    ),
    Feature(
        *("compaction", compaction, _COMPACTED, SINCE_5, (MIDDLE,)),
        takes="refuses",
        refused_as="CompactionLog",
        loses=True,
    ),
    Feature("extended", extended, _EXT, committed=(FIRST, MIDDLE)),
    Feature("extended-unfiltered", small, _EXT),
    Feature("wide-queues", small, _WIDE_QUEUES),
    Feature(
        *("flipped-bit", flipped_bit, PLAIN, VERSIONS, THREE),
        takes="either",
        is_damaged=True,
    ),
    Feature(
        *("flipped-bit-killed", flipped_bit_killed),
        takes="either",
        refused_as="bytes that are no record",
        loses=True,
        is_damaged=True,
    ),
    Feature(
        "gap",
        gap,
        takes="either",
        refused_as="a missing file",
        loses=True,
        is_damaged=True,
    ),
    Feature("ours-continued", ours_continued, committed=THREE),
    Feature("ours-continued-killed", ours_continued_killed),
    Feature("ours-expired", ours_expired, _LONGER, SINCE_5, loses=True),
    # That release leaves no sign that it ran.
    Feature(
        *("ours-expired-unsigned", ours_expired, _LONGER, (FIRST,), ()),
        takes="refuses",
        refused_as="a file was removed",
        loses=True,
    ),
    Feature("ours-nul", ours_nul, committed=(MIDDLE, NEWEST)),
)
