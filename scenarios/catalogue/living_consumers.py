"""Scenarios of running consumers: they join, rebalance, consume, fail, stop and die."""

from __future__ import annotations

from dataclasses import replace

from crashmq.models.files.config_files import BACKUP, TABLES
from crashmq.models.files.record import RETRY_PREFIX
from crashmq.models.ops import (
    ConsumeStatus,
    DamageKind,
    ExpressionType,
    StartConsumer,
    Strategy,
)
from crashmq.models.program import Setup
from crashmq.scenarios.catalogue.consuming import PROGRESS
from crashmq.scenarios.catalogue.scenario import Scenario
from crashmq.scenarios.programs.space import Address, Label, Numbers, Size, often

TOPICS = "T0,T1"
MANY_TOPICS = "T0,T1,T2"
LONG = "u" * 128
"""A topic whose name's length takes two bytes of a record."""
FIVE = ("0", "1", "10", "2", "3")
"""What the names of five clients end with; as texts, in their order."""


def _of_group(
    group: str, count: int = 5, strategy: Strategy = "AVG", topics: str = TOPICS
) -> tuple[StartConsumer, ...]:
    return tuple(
        [
            StartConsumer(f"{group}{one}", group, topics, strategy=strategy)
            for one in FIVE[:count]
        ]
    )


def _in_order(
    group: str, count: int = 3, strategy: Strategy = "AVG"
) -> tuple[StartConsumer, ...]:
    of_group = _of_group(group, count, strategy)
    return tuple([replace(one, is_orderly=True) for one in of_group])


def _asking(
    consumers: tuple[StartConsumer, ...],
    expression: str,
    kind: ExpressionType = "TAG",
) -> tuple[StartConsumer, ...]:
    return tuple(
        [replace(one, expression=expression, expression_type=kind) for one in consumers]
    )


def _by_batches(
    consumers: tuple[StartConsumer, ...], batch: int
) -> tuple[StartConsumer, ...]:
    return tuple([replace(one, batch=batch) for one in consumers])


def _giving_up_at_once(
    consumers: tuple[StartConsumer, ...],
) -> tuple[StartConsumer, ...]:
    return tuple([replace(one, max_reconsume_times=0) for one in consumers])


def _everything_of(
    *topics: str,
) -> tuple[tuple[str, str, ExpressionType], ...]:
    """Subscriptions to each of these lists of topics, with all their messages."""
    return tuple([(one, "*", "TAG") for one in topics])


def _listed(group: str, topics: str, queues: int) -> tuple[StartConsumer, ...]:
    """Three clients that list the topics' queues in turn; the first has retries too."""
    all_of_them = [f"{topic}/{n}" for topic in topics.split(",") for n in range(queues)]
    told = [all_of_them[first::3] for first in range(3)]
    told[0].append(f"{RETRY_PREFIX}{group}/0")
    return tuple(
        [
            StartConsumer(
                f"{group}{FIVE[nth]}",
                group,
                topics,
                strategy="CONFIG",
                listed=",".join(its),
            )
            for nth, its in enumerate(told)
        ]
    )


OF_ANOTHER = Label(properties="RETRY_TOPIC=T9")
"""What looks like a retry of another topic, and is none."""
FULL = Label("TagA", "k1", flag=7, ipv6="both", properties="a=1;b=x")
"""Everything that a message has for its consumers."""

WORKING = replace(
    PROGRESS,
    kinds=often(
        ("consume", 14),
        ("put", 3),
        ("burst", 3),
        ("service", 2),
        ("restart", 1),
    ),
    kept=("consume", "burst"),
    addresses=often(
        (Address("T0", 0), 4), (Address("T0", 1), 3), (Address("T1", 1), 2)
    ),
    labels=often(
        *((Label(), 13), (Label(tags="TagA"), 4), (FULL, 2), (OF_ANOTHER, 1)),
    ),
    sizes=often((Size(extra=16), 4), (Size(extra=200), 2)),
    burst_sizes=often((2, 3), (3, 4), (5, 3), (20, 1)),
    groups=("g",),
    consumers=(
        *_of_group("g", 3),
        *_by_batches(_of_group("h", 1), 3),
        *_in_order("o"),
        *_by_batches(_in_order("p", 1), 2),
        *_giving_up_at_once(_in_order("i", 1)),
    ),
    services=often(
        ("reput", 3),
        ("flush_commit_log", 1),
        ("persist_consumer_offset", 2),
        ("pull_request_hold", 2),
        ("client_housekeeping", 1),
    ),
    progress_offsets=Numbers((0, 1, 2, 5), 12),
    consumed=often(("success", 6), ("later", 1), ("raises", 1), ("partly", 1)),
)
SOME_HANG: tuple[ConsumeStatus, ...] = often(
    *(("success", 12), ("partly", 2), ("later", 2), ("raises", 2), ("hangs", 1)),
)
SHARING = replace(
    WORKING,
    kinds=often(
        *(("consume", 16), ("stay", 3), ("burst", 3), ("service", 1), ("restart", 1)),
        *(("hang", 4), ("listen", 5), ("suspend", 2), ("send", 3), ("ask", 2)),
        ("lock", 3),
    ),
    kept=("consume", "stay", "burst"),
    consumed=SOME_HANG,
    resubscriptions=_everything_of(MANY_TOPICS, TOPICS, "T0", "T2"),
    consumers=(
        *_of_group("g", 5, "AVG_BY_CIRCLE"),
        *_of_group("h", 5, "CONSISTENT_HASH"),
        *_of_group("a", 5, topics=MANY_TOPICS),
        *_of_group("m", 3, "MACHINE_ROOM"),
        *_of_group("n", 4, "MACHINE_ROOM_NEARBY", MANY_TOPICS),
        *_listed("l", MANY_TOPICS, 8),
        *_in_order("o", 3, "CONSISTENT_HASH"),
    ),
    addresses=often(
        *[(Address("T0", n), 3) for n in range(2)],
        *[(Address("T0", n), 1) for n in range(2, 8)],
        *[(Address("T1", n), 1) for n in (0, 1, 3, 5, 7)],
        *[(Address("T2", n), 1) for n in (0, 2, 4, 7)],
    ),
)
TELLING_ALL = replace(
    WORKING,
    kinds=often(
        *(("consume", 14), ("outlive", 2), ("put", 2), ("burst", 3), ("service", 2)),
        *(("crash", 1), ("listen", 1), ("ask", 1)),
    ),
    consumers=(
        StartConsumer("c0", "b", TOPICS, broadcasts=True),
        StartConsumer("c1", "b", TOPICS, broadcasts=True, batch=2),
        StartConsumer("c2", "b", TOPICS, "last", broadcasts=True),
        StartConsumer("d0", "d", "T1", broadcasts=True),
        StartConsumer("d1", "d", "T1", broadcasts=True),
        StartConsumer("e0", "e", TOPICS, broadcasts=True, is_orderly=True),
        StartConsumer("e1", "e", TOPICS, broadcasts=True, is_orderly=True, batch=2),
    ),
    groups=("b", "d"),
    resubscriptions=_everything_of(TOPICS, TOPICS, "T0", "T1"),
)
CRASHING = replace(
    WORKING,
    kinds=often(
        ("consume", 12),
        ("outlive", 6),
        ("stay", 2),
        ("put", 2),
        ("burst", 2),
        ("service", 2),
        ("crash", 3),
        *(("hang", 6), ("listen", 5), ("suspend", 2), ("ask", 2), ("lock", 3)),
    ),
    kept=("consume", "outlive", "stay"),
    consumed=SOME_HANG,
    resubscriptions=_everything_of(TOPICS, "T0", "T1"),
)
AMONG_OTHERS = replace(
    CRASHING,
    kinds=often(
        ("consume", 14),
        ("delay", 2),
        ("hold", 3),
        ("put", 1),
        ("burst", 2),
        ("service", 3),
        ("clock", 1),
        ("restart", 1),
        ("crash", 2),
        ("fault", 1),
        *(("hang", 6), ("listen", 4), ("suspend", 2), ("lock", 2), ("commit", 1)),
    ),
    kept=("consume", "delay", "hold"),
    groups=("k",),
    labels=often((Label(), 4), (Label(tags="TagA"), 2), (Label(delay_level=1), 1)),
    pull_tags=often(("*", 3), ("TagA", 1)),
    pull_counts=often((32, 3), (1, 1)),
    services=often(
        *[(service, 1) for service in CRASHING.services],
        ("deliver_delayed", 4),
        ("persist_delay_offset", 2),
    ),
    delay_levels=often((1, 4), (2, 1)),
)
"""Groups of pulls have no consumers, who would not know what these commit."""
EXPRESSIONS: tuple[tuple[str, ExpressionType], ...] = often(
    (("TagA", "TAG"), 3),
    (("TagA || TagB", "TAG"), 2),
    (("*", "TAG"), 2),
    (("Aa", "TAG"), 2),
    (("TagA||*", "TAG"), 2),
    (("*||", "TAG"), 1),
    (("a > 5", "SQL92"), 2),
    (("b = 'x' OR a IS NULL", "SQL92"), 2),
    (("NOT (b CONTAINS 'x')", "SQL92"), 1),
    (("a = 99", "SQL92"), 1),
)
"""Of two tags that one asks for by itself, another has the same hash: Aa and BB. Among
others, or beside a separator, a star is a tag as any other."""
SUBSCRIBING = replace(
    WORKING,
    kinds=often(
        ("consume", 12),
        ("subscribe", 6),
        ("put", 3),
        ("burst", 3),
        ("service", 2),
        ("restart", 1),
        ("crash", 1),
        ("ask", 2),
    ),
    labels=often(
        (Label(), 2),
        (Label(tags="TagA"), 3),
        (Label(tags="TagB", properties="a=9"), 2),
        (Label(tags="Aa"), 1),
        (Label(tags="BB"), 1),
        (Label(tags="*"), 1),
        (Label(properties="a=6;b=x"), 2),
        (Label(properties="a=many;b=y"), 1),
    ),
    consumers=(
        *_asking(_of_group("t", 1), "TagA"),
        *_asking(_of_group("u", 1), "TagA || TagB"),
        *_asking(_of_group("v", 2), "* || TagB"),
        *_asking(_of_group("q", 1), "a > 5", "SQL92"),
        *_asking(_of_group("r", 3), "b = 'x' OR a IS NULL", "SQL92"),
        *_asking(_of_group("s", 3), "Aa"),
        *_asking(_in_order("o", 1), "TagA"),
        replace(_of_group("d", 1)[0], expression="TagA", broadcasts=True),
    ),
    resubscriptions=tuple(
        [
            (topics, *asked)
            for topics in (TOPICS, TOPICS, "T0", "T1")
            for asked in EXPRESSIONS
        ]
    ),
)
STORES = often(
    (Setup(keeps_progress=True), 3),
    (Setup(keeps_progress=True, pull_batch=3, pull_threshold=4), 3),
    (Setup(keeps_progress=True, topic_queues=5, disk_profile="posix_min"), 2),
    (Setup(keeps_progress=True, pull_batch=2, pull_interval=1000), 2),
    (Setup(keeps_progress=True, in_memory_size=150, max_span=20), 8),
    (Setup(keeps_progress=True, pull_batch=2, max_span=2), 3),
    (Setup(keeps_progress=True, pull_batch=2, topic_threshold=9), 2),
    (Setup(keeps_progress=True, pull_batch=1, topic_threshold=4, topic_queues=1), 2),
    (Setup(keeps_progress=True, pull_interval=100, long_polling=False), 1),
    (Setup(keeps_progress=True, posts_subscription=True), 1),
    (Setup(8192, 7, "SYNC_FLUSH", keeps_progress=True, pull_threshold=2), 2),
    (Setup(keeps_progress=True, delivers_delayed=True, topic_queues=1), 2),
    (Setup(16384, 40, keeps_progress=True, delivers_delayed=True, pull_batch=4), 2),
)
SEVERAL_BROKERS = often(
    *[(store, 1) for store in STORES],
    (Setup(keeps_progress=True, brokers=3, topic_queues=8), 6),
    (Setup(keeps_progress=True, brokers=3, topic_queues=4, pull_threshold=3), 4),
    (Setup(keeps_progress=True, brokers=2, topic_queues=6, disk_profile="kill9"), 2),
    (Setup(keeps_progress=True, brokers=3, delivers_delayed=True, topic_queues=5), 4),
    (Setup(keeps_progress=True, brokers=2, delivers_delayed=True, retry_queues=3), 3),
)
"""As stores of three brokers: queues of several topics, and retry topics."""
DELIVERING_STORES = often(
    *[(replace(store, delivers_delayed=True), 1) for store in dict.fromkeys(STORES)]
)
FILTERING = Setup(keeps_progress=True, filters=True, queue_ext_size=512)
FILTERING_STORES = often(
    (FILTERING, 4),
    (Setup(keeps_progress=True), 2),
    (replace(FILTERING, queue_ext_size=100, disk_profile="posix_min"), 2),
    (replace(FILTERING, queue_ext_size=0, pull_batch=2), 1),
    (replace(FILTERING, posts_subscription=True), 2),
    (replace(FILTERING, log_file_size=8192, queue_file_units=7), 1),
    (replace(FILTERING, delivers_delayed=True, pull_threshold=3), 2),
    (Setup(16384, 40, "SYNC_FLUSH", keeps_progress=True, filters=True), 1),
)

FAILING = replace(
    WORKING,
    kinds=often(
        *(("retry", 12), ("consume", 3), ("burst", 2), ("service", 2), ("crash", 1)),
        *(("hang", 6), ("listen", 5), ("suspend", 2), ("send", 4), ("ask", 2)),
        *(("lock", 3), ("commit", 3)),
    ),
    kept=("retry",),
    addresses=(
        *WORKING.addresses,
        *often((Address(LONG, 0), 2), (Address(LONG, 1), 1)),
    ),
    labels=often(
        *((Label(), 4), (Label(tags="TagA", keys="k1"), 1), (Label(flag=7), 1)),
        *((Label(ipv6="both"), 1), (FULL, 1), (OF_ANOTHER, 1)),
    ),
    sizes=often((Size(extra=16), 4), (Size(extra=60), 1)),
    burst_sizes=often((2, 6), (3, 4), (20, 1)),
    groups=("r", "s"),
    consumers=(
        StartConsumer("r0", "r", TOPICS),
        StartConsumer("r1", "r", TOPICS),
        StartConsumer("s0", "s", TOPICS, "last", max_reconsume_times=0),
        StartConsumer("s1", "s", TOPICS, "last", max_reconsume_times=0),
        StartConsumer("q0", "q", TOPICS, is_orderly=True),
        StartConsumer("q1", "q", TOPICS, is_orderly=True),
        *_giving_up_at_once(_in_order("i", 2)),
        StartConsumer("u0", "u", f"T0,{LONG}", max_reconsume_times=-1),
        StartConsumer("v0", "v", TOPICS, batch=3),
    ),
    services=often(
        ("reput", 3),
        ("flush_commit_log", 1),
        ("deliver_delayed", 3),
        ("persist_delay_offset", 1),
        ("persist_consumer_offset", 1),
        ("pull_request_hold", 1),
    ),
    consumed=often(
        *(("later", 8), ("raises", 2), ("success", 4), ("hangs", 1), ("partly", 3)),
    ),
)
_DELIVERS = Setup(keeps_progress=True, delivers_delayed=True)
THAT_DELIVER = often(
    (_DELIVERS, 4),
    (replace(_DELIVERS, topic_queues=3, pull_batch=3), 3),
    (replace(_DELIVERS, topic_queues=1, queue_file_units=7), 1),
    (replace(_DELIVERS, in_memory_size=150), 5),
    (replace(_DELIVERS, log_file_size=8192, flush_mode="SYNC_FLUSH"), 1),
    (replace(_DELIVERS, log_file_size=16384, queue_file_units=40), 1),
    (replace(_DELIVERS, message_delay_level="1s 3s"), 1),
    (replace(_DELIVERS, topic_queues=1, message_delay_level="9s 5s 2s 20s 1m"), 1),
    (replace(_DELIVERS, retry_queues=2), 2),
    (replace(_DELIVERS, sends_records=False), 2),
    (replace(_DELIVERS, sends_records=False, in_memory_size=150), 1),
    (replace(_DELIVERS, retry_queues=4, topic_queues=3), 2),
)

LIVING_CONSUMERS = (
    Scenario(
        name="rebalance",
        sentence="consumers join and leave with different allocation strategies, and "
        "share out the queues of their groups",
        space=SHARING,
        setups=SEVERAL_BROKERS,
        required_probes=(),
        required_laws=("CON-1", "CON-2", "CON-3", "CON-7"),
    ),
    Scenario(
        name="subscriptions",
        sentence="consumers subscribe by tags and by expressions, and change their "
        "subscription while they pull and consume, alone or with their group",
        space=SUBSCRIBING,
        setups=FILTERING_STORES,
        required_probes=("pull.outdated",),
        required_laws=("CON-1", "CON-2", "CON-3", "CON-7", "RD-1"),
    ),
    Scenario(
        name="broadcast",
        sentence="each consumer of a group gets every message, keeps its offsets in a "
        "file of its own, and dies or loses power",
        space=TELLING_ALL,
        setups=STORES,
        required_probes=(),
        required_laws=("CON-2", "CON-3", "CON-4", "CON-6", "CON-7", "OFS-8"),
    ),
    Scenario(
        name="consumer_crash",
        sentence="consumers are killed and their broker crashes, while they pull and "
        "consume messages",
        space=CRASHING,
        setups=STORES,
        required_probes=(),
        required_laws=("CON-1", "CON-2", "CON-4", "CON-7", "CON-9", "OFS-4"),
    ),
    Scenario(
        name="consumers_among_others",
        sentence="consumers run beside delayed messages that fall due and held pulls "
        "of other groups, with crashes and failing calls",
        space=AMONG_OTHERS,
        setups=DELIVERING_STORES,
        required_probes=("pull_request_hold.woken",),
        required_laws=("CON-1", "CON-2", "CON-10", "DLY-3", "LP-3"),
    ),
    Scenario(
        name="retries",
        sentence="consumers fail; the messages they send back are delivered again "
        "after their delay level, and end as dead letters, as do messages that "
        "producers send to retry topics",
        space=FAILING,
        setups=THAT_DELIVER,
        length=(30, 90),
        required_probes=("send_back.retried", "send_back.dead", "send_back.sent.dead"),
        required_laws=(
            *("CON-2", "CON-10", "DLY-2", "RTY-1", "RTY-2", "RTY-3", "RTY-5"),
            *("RTY-6", "TOP-3"),
        ),
    ),
)
"""What `catalogue` lists of them."""

_TELLING = replace(FILTERING, delivers_delayed=True, topic_queues=3)


def _every_table(
    of_file: tuple[DamageKind, ...], of_backup: tuple[DamageKind, ...]
) -> tuple[tuple[str, DamageKind], ...]:
    return tuple(
        [
            (path + ending, kind)
            for path in TABLES
            for ending, kinds in (("", of_file), (BACKUP, of_backup))
            for kind in kinds
        ]
    )


_EDITED = replace(
    FAILING,
    kinds=often(
        *(("retry", 4), ("consume", 6), ("damage", 9), ("burst", 3), ("service", 4)),
        *(("send", 2), ("ask", 1), ("crash", 1)),
    ),
    kept=("consume", "damage"),
    labels=often(
        *((Label(), 4), (Label(tags="TagA"), 2), (Label(properties="a=9;b=x"), 2)),
        (Label(delay_level=1), 1),
    ),
    consumers=(
        StartConsumer("r0", "r", TOPICS),
        StartConsumer("r1", "r", TOPICS),
        StartConsumer("q0", "q", TOPICS, is_orderly=True),
        StartConsumer("t0", "t", TOPICS, expression="TagA"),
        StartConsumer("w0", "w", TOPICS, expression="a > 5", expression_type="SQL92"),
        StartConsumer("w1", "w", TOPICS, expression="a > 5", expression_type="SQL92"),
    ),
    groups=("r", "w"),
    resubscriptions=tuple([("T0", *asked) for asked in EXPRESSIONS]),
    services=often(
        ("reput", 3),
        ("flush_commit_log", 1),
        ("deliver_delayed", 2),
        ("persist_delay_offset", 2),
        ("persist_consumer_offset", 3),
        ("persist_consumer_filter", 3),
    ),
    damage_targets=_every_table(
        ("reword", "reword", "reword"), ("reword", "delete", "delete")
    ),
    damage_offsets=Numbers((-1, -2, -3, -4, 0, 3), 80),
    damages_a_stop=often((1, 2), (2, 2), (3, 2)),
)

EDITED_TABLES = (
    Scenario(
        name="edited_tables",
        sentence="between two lives of a broker with consumers somebody edits its "
        "config files, or another version has written them",
        space=_EDITED,
        setups=often(
            (_TELLING, 4),
            (_DELIVERS, 2),
            (replace(_TELLING, disk_profile="posix_min"), 2),
            (replace(_TELLING, disk_profile="kill9", queue_ext_size=0), 1),
            (replace(_TELLING, log_file_size=8192, queue_file_units=7), 1),
            (replace(_TELLING, log_file_size=16384, flush_mode="SYNC_FLUSH"), 1),
            (replace(_DELIVERS, queue_file_units=40), 1),
        ),
        required_probes=("config_file.load.backup", "config_file.load.refused"),
        required_laws=("CFG-9", "REC-4", "OFS-6", "DLY-6", "FLT-5"),
    ),
)
"""What `catalogue` lists of them."""
