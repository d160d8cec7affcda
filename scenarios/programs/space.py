"""Space: the ranges from which ops are drawn, and the odds of each choice.

Seeds and Hypothesis generate programs of a ``Space`` with the same generator, so they
search the same programs. A choice is as likely as it is often listed; the first one is
the simplest, towards which Hypothesis shrinks. Every choice is made by one drawn
integer. Phrases (``workload``) decide how ops follow each other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Literal, NamedTuple, TypeVar

from crashmq.models.ops import (
    ALL_TIME_MS,
    PROPERTY_END,
    BatchLength,
    ConsumeStatus,
    CrashKind,
    DamageKind,
    DeleteManually,
    DiskFault,
    ExpressionType,
    IPv6Hosts,
    Op,
    PlantFile,
    PutBatch,
    PutMessage,
    RunService,
    Schedule,
    ServiceName,
    StartConsumer,
    SurvivorKind,
    TransactionType,
)

T = TypeVar("T")

Kind = Literal[
    "put",
    "burst",
    "batch",
    "pull",
    "look",
    "search",
    "query",
    "service",
    "clock",
    "restart",
    "crash",
    "fault",
    "interleave",
    "together",
    "contend",
    "overlap",
    "damage",
    "disown",
    "expire",
    "fill",
    "delete",
    "progress",
    "consume",
    "hold",
    "filter",
    "delay",
    "retry",
    "outlive",
    "stay",
    "hang",
    "listen",
    "suspend",
    "send",
    "ask",
    "subscribe",
    "lock",
    "commit",
]
OF_LIVING: frozenset[Kind] = frozenset(
    {
        *("consume", "retry", "outlive", "stay", "hang", "listen", "suspend", "send"),
        *("ask", "subscribe", "lock", "commit"),
    }
)
"""Kinds of phrases in which consumers run."""
InterruptedKind = Literal["put", "service", "shutdown", "restart"]
InterleavedKind = Literal["service", "put", "pull", "shutdown", "stall"]

TogetherKind = Literal[
    "put",
    "batch",
    "pull",
    "look",
    "search",
    "query",
    "service",
    "wait",
    "delete",
    "shutdown",
]

RECORD_OVERHEAD = 91  # the record's fixed fields, both hosts IPv4, a short topic
UNIQUE_KEY_SIZE = 12  # models.messages gives every message such a UNIQ_KEY
ALL_TIMES = (-ALL_TIME_MS, ALL_TIME_MS)
TOPIC_SIZE_MAX_V1 = 127  # a longer one has a length of two bytes
BLANK_SIZE_MIN = 8  # a record never touches the last bytes of its log file


class Address(NamedTuple):
    """One queue of one topic."""

    topic: str
    queue_id: int


class Label(NamedTuple):
    """The properties and options of a message besides its body."""

    tags: str = ""
    keys: str = ""
    wait_store_ok: bool = True
    flag: int = 0
    ipv6: IPv6Hosts = "none"
    transaction: TransactionType = "none"
    multi_dispatch: str = ""
    delay_level: int = 0
    reconsume_times: int = 0
    sys_flag: int = 0
    properties: str = ""


class Size(NamedTuple):
    """The size of a message: its body, or its share of a log file.

    With ``parts`` 0 the body has ``extra`` bytes. Else the whole record has one
    ``parts``-th of the bytes that records can use of a log file, plus ``extra``: so
    ``parts`` of them fill a file to its last byte, and one byte more makes it roll.
    """

    parts: int = 0
    extra: int = 0


class Numbers(NamedTuple):
    """A distribution of integers: half of the time one of ``special``, else uniform.

    Uniform in [least, below).
    """

    special: tuple[int, ...]
    below: int
    least: int = 0

    def choose(self, draw: int) -> int:
        """The number for a drawn integer >= 0; 0 gives the first."""
        half = draw >> 1
        if draw & 1:
            return self.least + half % (self.below - self.least)
        return self.special[half % len(self.special)]


ONLY_ZERO = Numbers((0,), 1)


class AtActions(NamedTuple):
    """The disk action at which an event happens, by kind of op.

    Past the op's last action the event happens right after the op, so the ranges follow
    how many actions each kind makes: a put few, a restart dozens.
    """

    put: Numbers
    service: Numbers
    shutdown: Numbers
    restart: Numbers

    def of(self, kind: InterruptedKind) -> Numbers:
        """The range of one kind."""
        return self[self._fields.index(kind)]


@dataclass(frozen=True, slots=True)
class Space:
    """The ranges of one scenario; sizes in bytes, times in milliseconds.

    Attributes:
        kinds: what is done next.
        kept: kinds that no episode does without; swarm weights may drop the others.
        addresses: topic and queue of puts and pulls.
        burst_sizes: puts of one burst, all alike or each drawn again.
        pull_offsets: ``queue_offset`` of a pull, from before the first to beyond all.
        served_first: whether reput takes a turn right before a pull, and before a
            stop that damage follows.
        services: which service runs, and ``service_times`` how many rounds.
        orderly_stops: whether a restart says ``Shutdown`` first or just ``Restart``.
        interrupted: what is under way when power is lost, a disk fails, a turn is
            taken by another.
        at_actions: at which disk action of it.
        recovery_crashes: how often the restart after a crash crashes too.
        interleaved: what takes a turn while something is under way, or that it stalls.
        crowded: whether a put or service comes in as well, to a crash or fault too.
        stalls_ms: how long the disk stands still in a stall.
        paced: whether time passes between two puts, and services take turns there.
        plants: files of others that are put among the store's while it is down; a
            space with them does so instead of damage, half of the time.
        damages_a_stop: how many files are damaged while the store is down.
        query_keys: keys that are asked for; ``query_counts`` how many messages at
            most, ``query_times_ms`` when they were stored, since the clock began.
        look_offsets: ``phy_offset`` of a look; a space has them to list ``look``.
        search_times_ms: ``at_ms`` of a search by time; as above for ``search``.
        batch_counts: how many messages a batch has; as above for ``batch``, and then
            some of the puts under way are batches.
        pull_tags: tag expressions of pulls.
        expiry_steps_ms: how long messages age in front of a cleaner's round; a space
            has them to list ``expire``.
        touch_ages_ms: how old a touched file says that it is.
        together: what begins at the same time, and ``together_counts`` how many;
            a space has those to list ``together``.
            "contend" has two of them, and needs no count.
        schedules: who runs on then; of ``pct`` the seed is drawn, of ``preempt`` as
            many preemptions as its depth says, below its steps.
        fill_percents: how full others make the disk; as above for ``fill``.
        groups: who consumes; a space has them to list ``progress``, ``hold`` or
            ``filter``.
        expressions: by what they subscribe; as above for ``filter``.
        progress_offsets: what is committed, or reset to.
        consumers: who may join; a space has them to list ``consume``.
        consumed: how consuming a message goes.
        resubscriptions: topics, expression and its type of what one that runs may
            subscribe instead.
        delay_levels: of messages that wait; a space has them to list ``delay``.
        deletions: queues that are deleted, queue_id -1 for the whole topic; as above
            for ``delete``.
    """

    kinds: tuple[Kind, ...]
    kept: tuple[Kind, ...]
    addresses: tuple[Address, ...]
    labels: tuple[Label, ...]
    sizes: tuple[Size, ...]
    burst_sizes: tuple[int, ...]
    pull_offsets: Numbers
    pull_counts: tuple[int, ...]
    served_first: tuple[bool, ...]
    services: tuple[ServiceName, ...]
    service_times: tuple[int, ...]
    clock_steps_ms: Numbers
    orderly_stops: tuple[bool, ...]
    interrupted: tuple[InterruptedKind, ...]
    at_actions: AtActions
    crash_kinds: tuple[CrashKind, ...]
    survivor_kinds: tuple[SurvivorKind, ...]
    survivor_numbers: Numbers
    cuts: Numbers
    recovery_crashes: tuple[int, ...]
    faults: tuple[DiskFault, ...]
    damage_targets: tuple[tuple[str, DamageKind], ...]
    damage_offsets: Numbers
    damage_sizes: tuple[int, ...]
    damages_a_stop: tuple[int, ...]
    query_keys: tuple[str, ...] = ()
    query_counts: tuple[int, ...] = (32,)
    query_times_ms: tuple[tuple[int, int], ...] = (ALL_TIMES,)
    look_offsets: Numbers = ONLY_ZERO
    search_times_ms: Numbers = ONLY_ZERO
    interleaved: tuple[InterleavedKind, ...] = ("service", "put")
    crowded: tuple[bool, ...] = (False,)
    stalls_ms: Numbers = ONLY_ZERO
    paced: tuple[bool, ...] = (False,)
    batch_counts: tuple[int, ...] = ()
    pull_tags: tuple[str, ...] = ("*",)
    expiry_steps_ms: Numbers = ONLY_ZERO
    touch_ages_ms: Numbers = ONLY_ZERO
    fill_percents: tuple[int, ...] = ()
    together: tuple[TogetherKind, ...] = ("put", "service")
    together_counts: tuple[int, ...] = ()
    schedules: tuple[Schedule, ...] = (Schedule(),)
    deletions: tuple[Address, ...] = ()
    plants: tuple[PlantFile, ...] = ()
    groups: tuple[str, ...] = ()
    progress_offsets: Numbers = ONLY_ZERO
    consumers: tuple[StartConsumer, ...] = ()
    consumed: tuple[ConsumeStatus, ...] = ("success",)
    resubscriptions: tuple[tuple[str, str, ExpressionType], ...] = ()
    expressions: tuple[tuple[str, ExpressionType], ...] = ()
    delay_levels: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a space in which a listed kind could not be drawn."""
        assert self.kinds, "a space without a kind of op asks nothing"
        assert set(self.kept) <= set(self.kinds), (self.kept, self.kinds)
        assert self.crash_kinds or "crash" not in self.kinds
        assert self.query_keys or "query" not in self.kinds
        assert self.faults or "fault" not in self.kinds
        assert self.damage_targets or "damage" not in self.kinds
        assert self.plants or "disown" not in self.kinds
        assert self.batch_counts or "batch" not in self.kinds
        assert self.together_counts or "together" not in self.kinds
        assert self.expiry_steps_ms != ONLY_ZERO or "contend" not in self.kinds
        assert self.fill_percents or "fill" not in self.kinds
        assert self.groups or "progress" not in self.kinds
        assert self.consumers or OF_LIVING.isdisjoint(self.kinds)
        holds = self.groups and self.crash_kinds and self.faults
        assert holds or "hold" not in self.kinds
        assert (self.groups and self.expressions) or "filter" not in self.kinds
        assert self.delay_levels or "delay" not in self.kinds
        deletes = self.deletions and self.crash_kinds and self.faults
        assert deletes or "delete" not in self.kinds


def often(*weighted: tuple[T, int]) -> tuple[T, ...]:
    """A tuple with each choice as often as its weight says, in the given order."""
    return tuple(choice for choice, weight in weighted for _ in range(weight))


FLUSHED_BY: dict[str, ServiceName] = {
    "commitlog": "flush_commit_log",
    "consumequeue": "flush_consume_queue",
    "checkpoint": "checkpoint",
    "index": "flush_index",
}
WRITTEN_BY: dict[str, ServiceName] = {
    **FLUSHED_BY,
    "consumequeue": "reput",
    "consumequeue_ext": "reput",
    "index": "reput",
}
"""Who makes durable what lies below a folder, and who writes there."""


class Wish(NamedTuple):
    """A request to the cleaner, and when: before messages have aged or after."""

    first: tuple[Op, ...] = ()
    then: tuple[Op, ...] = ()


WISHES = often(
    (Wish(), 3),
    (Wish(then=(DeleteManually(),)), 4),
    (Wish(first=(DeleteManually(), *(RunService("clean_commit_log"),) * 20)), 1),
)
"""The last one's request has been answered before anything is old enough."""


def schedule_of(of: Schedule, count: int, draw: int) -> Schedule:
    """The schedule of ``count`` activities for a drawn integer >= 0."""
    if of.kind == "pct":
        return replace(of, seed=draw)
    told: dict[int, int] = {}
    for first in (True, *(False,) * (of.depth - 1)):
        draw, point = divmod(draw, of.steps)
        # The first activity runs first, so that nobody else can give way to it.
        draw, who = divmod(draw, count - first)
        told[point + 1] = who + first
    return replace(of, preemptions=tuple(sorted(told.items())), depth=1)


@cache
def put_message(
    log_file_size: int, address: Address, size: Size, label: Label
) -> PutMessage:
    """A put op of these choices; ``log_file_size`` bytes scale its body."""
    body_size = size.extra
    if size.parts:
        record_size = (log_file_size - BLANK_SIZE_MIN) // size.parts + size.extra
        body_size = max(0, record_size - record_overhead(address.topic, label))
    return PutMessage(address.topic, address.queue_id, body_size, *label)


PROPERTY_ENDS = often(
    (PROPERTY_END, 5), ("", 2), (f"{PROPERTY_END}x\x01{PROPERTY_END}", 1)
)
"""How a batch's messages end their properties: properly, not at all, with a name."""

CUTS = often((0, 20), (1, 1), (2, 1), (21, 1))
"""How many bytes the body of a batch lacks."""
WRONG: tuple[BatchLength, ...] = often(
    ("none", 22), ("message", 1), ("body", 2), ("properties", 1)
)
OFF_BY = (-1, 1, 2, 22, -22, 300, -(1 << 32), 1 << 32)
"""How much a length before a message is wrong; the last two leave any field."""


@cache
def put_batch(
    log_file_size: int,
    address: Address,
    sizes: tuple[Size, ...],
    label: Label,
    properties_end: str = PROPERTY_END,
    cut: int = 0,
) -> PutBatch:
    """The batch for these choices; of the label only properties are used."""
    puts = [put_message(log_file_size, address, size, label) for size in sizes]
    return PutBatch(
        *address,
        tuple([put.body_size for put in puts]),
        label.tags,
        label.wait_store_ok,
        label.keys,
        label.properties,
        label.multi_dispatch,
        properties_end,
        cut,
    )


def record_overhead(topic: str, label: Label) -> int:
    """Bytes of a stored record besides its body.

    Each property is name, 0x01, value, 0x02.
    """
    properties = [("UNIQ_KEY", UNIQUE_KEY_SIZE)]
    if label.tags:
        properties.append(("TAGS", len(label.tags.encode())))
    if label.keys:
        properties.append(("KEYS", len(label.keys)))
    if not label.wait_store_ok:
        properties.append(("WAIT", len("false")))
    if label.multi_dispatch:
        properties.append(("INNER_MULTI_DISPATCH", len(label.multi_dispatch)))
    if label.delay_level:
        properties.append(("DELAY", len(str(label.delay_level))))
    for one in label.properties.split(";") if label.properties else ():
        name, _, value = one.partition("=")
        properties.append((name, len(value)))
    properties_size = sum(len(name) + 1 + value + 1 for name, value in properties)
    hosts = {"none": 0, "born": 12, "store": 12, "both": 24}[label.ipv6]
    is_v2 = len(topic) > TOPIC_SIZE_MAX_V1
    return RECORD_OVERHEAD + hosts + is_v2 + len(topic) + properties_size
