"""Scenarios about the kinds of messages, and the contents of records."""

from __future__ import annotations

from dataclasses import replace

from crashmq.models.files.record import SCHEDULE_TOPIC
from crashmq.models.program import Setup
from crashmq.scenarios.catalogue.scenario import Scenario
from crashmq.scenarios.programs.drawn_ops import LIGHT
from crashmq.scenarios.programs.space import Address, Kind, Label, Numbers, Size, often
from crashmq.scenarios.programs.spaces import (
    BREAKING,
    CORE_LAWS,
    LOSSY_DISKS,
    setups_on,
)

TOPIC_V1 = "t" * 127
TOPIC_V2 = "u" * 128
TOPIC_LONGEST = "v" * 255
TOPIC_TOO_LONG = "w" * 256
NEGATIVE_HASH = "payment"
LEAST_HASH = "polygenelubricants"
CHINESE = "已付款💰"
TOPIC_OF_WIDE_LETTERS = "付" * 43  # 129 bytes, and no topic

_KINDS: tuple[Kind, ...] = often(
    ("put", 6),
    ("burst", 4),
    ("service", 8),
    ("pull", 5),
    ("crash", 3),
    ("restart", 1),
    ("clock", 1),
    ("interleave", 1),
    ("fault", 1),
)
_BATCHES: tuple[Kind, ...] = often(("batch", 6))
_CRASHES = replace(
    BREAKING,
    kinds=_KINDS,
    crash_kinds=often(("process_kill", 2), ("power_loss", 3)),
    survivor_kinds=often(("none", 2), ("all", 1), ("prefix", 3), ("hashed", 4)),
)


def with_options(setups: tuple[Setup, ...], *, lights: bool) -> tuple[Setup, ...]:
    """The setups, half of which end each record with a CRC over all of it."""
    return tuple(
        replace(setup, prop_crc=bool(number % 2), multi_dispatch=lights)
        for number, setup in enumerate(setups)
    )


OF_OTHER_LEVELS = (
    Setup(message_delay_level="2s 1h"),
    Setup(message_delay_level="3m 5s 2s 1d", queue_ext_size=600, log_file_size=8192),
)
"""Stores alone, without a broker: what lies in the topic of delayed messages stays."""

MESSAGE_SCENARIOS = (
    Scenario(
        name="transactions",
        sentence="messages are prepared, committed and rolled back, with everything "
        "a record can hold: long topics, IPv6 hosts, flags, delays",
        space=replace(
            _CRASHES,
            addresses=often(
                (Address("T0", 0), 8),
                (Address("T0", 1), 2),
                (Address(SCHEDULE_TOPIC, 2), 2),
                (Address(TOPIC_V1, 0), 1),
                (Address(TOPIC_V2, 0), 1),
                (Address(TOPIC_LONGEST, 1), 1),
                (Address(TOPIC_TOO_LONG, 0), 1),
                (Address(TOPIC_OF_WIDE_LETTERS, 0), 1),
                (Address("T0", 2**31 - 1), 1),
                (Address("T0", 2**31), 1),  # what no record holds
                (Address("T0", -1), 1),
            ),
            labels=often(
                (Label(), 3),
                (Label(transaction="prepared"), 4),
                (Label(transaction="commit", wait_store_ok=False), 4),
                (Label(transaction="rollback"), 2),
                (Label(tags=NEGATIVE_HASH, transaction="commit"), 1),
                (Label(properties="ATAGS=b;MYKEYS=c;XWAIT=false"), 1),  # of its own
                (Label(tags=CHINESE, ipv6="born"), 1),
                (Label(tags=LEAST_HASH, ipv6="store", flag=-1), 1),
                (Label(tags="TagA", ipv6="both", reconsume_times=3), 1),
                (Label(keys="k", flag=2**31 - 1, sys_flag=0x101), 1),
                # Properties of 32,767 bytes, the most; with a CRC, and one more.
                (Label(keys="x" * 32_739), 1),
                (Label(keys="x" * 32_719), 1),
                (Label(keys="x" * 32_740), 1),
                (Label(tags="a\0b", sys_flag=0x80), 1),  # what no record holds
                (Label(flag=2**31), 1),
                (Label(reconsume_times=2**31), 1),
                (Label(reconsume_times=-1), 1),
                (Label(delay_level=3), 1),
                (Label(delay_level=1), 1),
                (Label(delay_level=18), 1),
                (Label(delay_level=-1), 2),
                (Label(delay_level=99, tags="TagA"), 1),
            ),
            pull_tags=often(
                ("*", 4),
                ("TagA", 1),
                (f"{CHINESE} || {NEGATIVE_HASH}", 1),
                (f"nobody||{LEAST_HASH}", 1),
                ("", 1),
            ),
        ),
        setups=(*with_options(LOSSY_DISKS, lights=False), *OF_OTHER_LEVELS * 8),
        required_probes=(
            "commit_log.put.unlisted",
            "consume_queue_store.dispatch.none",
            "message_reader.filtered",
            "commit_log.recover.abnormal",
        ),
        required_laws=CORE_LAWS,
    ),
    Scenario(
        name="batch_and_lmq",
        sentence="batches are stored as a whole or not at all, and messages are also "
        "listed in light queues",
        space=replace(
            _CRASHES,
            kinds=(*_KINDS, *_BATCHES),
            kept=("burst", "batch", "crash"),
            addresses=often(
                (Address("T0", 0), 8),
                (Address("T0", 1), 2),
                (Address(LIGHT[0], 0), 3),
                (Address(LIGHT[1], 0), 2),
                (Address("%RETRY%g", 0), 1),
                (Address(LIGHT[0], 1), 1),
            ),
            labels=often(
                (Label(), 4),
                (Label(multi_dispatch=LIGHT[0]), 5),
                (Label(multi_dispatch=",".join(LIGHT)), 4),
                (Label(tags="x" * 32_740), 1),
                (Label(tags="Aa", multi_dispatch=LIGHT[1], wait_store_ok=False), 2),
                (Label(tags="BB"), 2),  # the same hash as Aa
                (Label(properties="ATAGS=b;MYKEYS=c"), 1),
                (Label(multi_dispatch=LIGHT[1], transaction="prepared"), 1),
                (Label(multi_dispatch=LIGHT[1], transaction="commit"), 1),
                (Label(multi_dispatch=f"foo,{LIGHT[0]}"), 1),  # in no store's power
                (Label(multi_dispatch=f"{LIGHT[0]},{LIGHT[0]}"), 1),
                (Label(multi_dispatch="%LMQ%"), 1),
                (Label(keys="k"), 1),
                (Label(multi_dispatch=LIGHT[0], ipv6="both", reconsume_times=5), 1),
                (Label(multi_dispatch=LIGHT[1], flag=-1, reconsume_times=12), 1),
                (Label(tags="Aa", keys="k two", properties="a=1;b=x"), 1),
                (Label(properties="INNER_MULTI_QUEUE_OFFSET=7"), 1),  # the store's
                (Label(properties="INNER_NUM=2"), 1),
            ),
            sizes=often(
                (Size(extra=16), 8),
                (Size(extra=0), 1),
                (Size(extra=60), 4),
                (Size(extra=333), 3),
                (Size(parts=8), 2),
                (Size(parts=4), 2),
                (Size(parts=4, extra=1), 1),
                (Size(parts=2), 1),
                (Size(parts=1), 1),
            ),
            batch_counts=often((2, 4), (3, 3), (1, 2), (5, 2), (8, 1), (0, 1), (40, 1)),
            pull_tags=often(("*", 4), ("Aa", 2), ("BB || nobody", 1)),
            pull_offsets=Numbers((0, 0, 0, 1, 2, 3, 5, 9, 10, 11, -1, 1000), 24),
        ),
        setups=with_options(LOSSY_DISKS, lights=True),
        required_probes=(
            "commit_log.put.batch",
            "commit_log.put.light",
            "commit_log.put.rejected",
            "consume_queue_store.dispatch.light",
            "message_reader.collided",
            "commit_log.roll",
        ),
        required_laws=(*CORE_LAWS, "PUT-3"),
    ),
    Scenario(
        name="large_pulls",
        sentence="bodies up to the size limit, and pulls that ask for more than one "
        "answer can hold",
        space=replace(
            _CRASHES,
            kinds=often(
                ("put", 4),
                ("burst", 6),
                ("service", 6),
                ("pull", 8),
                ("crash", 1),
                ("restart", 1),
            ),
            kept=("burst", "pull", "service"),
            addresses=often((Address("T0", 0), 8), (Address("T1", 0), 1)),
            labels=often((Label(), 3), (Label(tags="TagA"), 2)),
            sizes=often(
                (Size(extra=16), 6),
                (Size(extra=65_536), 1),  # max_message_size, and one byte more
                (Size(extra=65_537), 1),
                (Size(extra=50_000), 2),
                (Size(extra=1), 2),
                # Of 256 KiB: four, or eight, records of all that one answer may hold.
                (Size(parts=4, extra=2), 2),
                (Size(parts=8, extra=1), 2),
            ),
            burst_sizes=often((5, 2), (21, 3), (34, 3)),
            services=often(("reput", 6), ("flush_commit_log", 2)),
            pull_counts=often((32, 2), (64, 3), (33, 2), (1000, 2), (31, 1)),
            pull_tags=often(("*", 3), ("TagA", 2), ("", 1)),
        ),
        setups=(
            *setups_on("ext4_ordered"),
            *often(
                (Setup(1 << 18, 100, max_message_size=65_536), 3),
                (Setup(1 << 18, 1000, "SYNC_FLUSH", 65_536), 3),
                (Setup(1 << 18, 40, max_message_size=65_536, prop_crc=True), 3),
                (Setup(1 << 18, 1000, in_memory_size=0), 2),
                (Setup(1 << 18, 1000, in_memory_size=1 << 17), 2),
                (Setup(1 << 18, 100, in_memory_size=100_000, read_window=70_000), 2),
                (Setup(1 << 15, 100, in_memory_size=2000, read_window=4096), 1),
            ),
        ),
        length=(20, 40),
        required_probes=(
            "message_reader.batch_full",
            "message_reader.filtered",
            "message_reader.from_disk",
            "reput.beyond_window",
        ),
        required_laws=CORE_LAWS,
    ),
)
