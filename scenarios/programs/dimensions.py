"""Dimensions: the features of a program, to count which pairs of them occur.

A value is written ``dimension=value``: an option of the setup, a shape of a message, a
fault, a damage, a way to end a run, a grain of a schedule. Two values meet in a program
that has both. Most bugs need two things together; so a bug that needs a pair which no
program has is never found. Pairs can be declared impossible or meaningless.

Source: pairwise testing; Kuhn, Wallace, Gallo 2004, "Software fault interactions and
implications for software testing".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import TypeAlias

from crashmq.models.ops import (
    PROPERTY_END,
    AdvanceClock,
    ChangeConfig,
    ConfigureGroup,
    Consume,
    Crash,
    Damage,
    DiskFault,
    During,
    EndConsumer,
    Event,
    PlantFile,
    PullThroughBroker,
    PutBatch,
    PutMessage,
    RunService,
    Schedule,
    StartConsumer,
    Together,
    TurnConsumer,
    parts,
)
from crashmq.models.program import Program, Setup

Value: TypeAlias = str

_BROKER = ("setup.keeps_progress", "on")
_DELIVERS = ("setup.delivers_delayed", "on")
_FILTERS = ("setup.filters", "on")
_BROKERS_OPS = (
    *("StartConsumer", "EndConsumer", "TurnConsumer", "Consume", "Resubscribe"),
    *("CommitOffset", "QueryOffset", "ResetOffset", "TakeQueue", "DeleteGroup"),
    *("CloneOffset", "QueryLowestOffsets", "PullThroughBroker"),
    *("SendMessage", "CleanOffsets", "AskBroker", "TellReset", "ChangeTopic"),
)
_FILTERS_OPS = ("Subscribe", "Unsubscribe", "PullFiltered")
NEEDS: Mapping[str, tuple[str, str]] = {
    "consumer.": _BROKER,
    "pull.": _BROKER,
    "group.": _BROKER,
    "listener.": _BROKER,
    "service.persist_consumer_offset": _BROKER,
    "service.client_housekeeping": _BROKER,
    "service.pull_request_hold": _BROKER,
    "service.persist_consumer_filter": _FILTERS,
    "service.deliver_delayed": _DELIVERS,
    "service.persist_delay_offset": _DELIVERS,
    "service.clean_": ("setup.cleans", "on"),
    "service.allocate": ("setup.preallocate", "on"),
    "service.commit": ("setup.transient_store_pool", "on"),
    "setup.transient_store_buffers=less": ("setup.transient_store_pool", "on"),
    "setup.transient_store_buffers=more": ("setup.transient_store_pool", "on"),
    "setup.topic_queues=less": _BROKER,
    "setup.topic_queues=more": _BROKER,
    "setup.retry_queues=more": _BROKER,
    "setup.pull_batch=less": _BROKER,
    "setup.pull_threshold=less": _BROKER,
    "setup.max_span=less": _BROKER,
    "setup.topic_threshold=more": _BROKER,
    "setup.pull_interval=more": _BROKER,
    "setup.long_polling=off": _BROKER,
    "setup.posts_subscription=on": _BROKER,
    "setup.lets_read=off": _BROKER,
    "setup.sends_records=off": _BROKER,
    "setup.takes_lite_pulls=off": _BROKER,
    "setup.brokers=more": _BROKER,
    "setup.filters=on": _BROKER,
    "setup.filters_retries=on": _FILTERS,
    "setup.cleans_forcibly=on": ("setup.cleans", "on"),
    "setup.reserved_hours=less": ("setup.cleans", "on"),
    "setup.delete_batch=less": ("setup.cleans", "on"),
    "op.DeleteManually=": ("setup.cleans", "on"),
    "beside.DeleteManually=": ("setup.cleans", "on"),
    "op.ConfirmLog=": ("setup.duplicates", "on"),
    "op.FillDisk=": ("setup.disk_capacity", "more"),
    "damage.file=consumequeue_ext": ("setup.queue_ext_size", "more"),
    "damage.file=index": ("setup.index_slots", "more"),
    **{f"{way}.{op}=": _BROKER for op in _BROKERS_OPS for way in ("op", "beside")},
    **{f"{way}.{op}=": _FILTERS for op in _FILTERS_OPS for way in ("op", "beside")},
}
"""What a value, or all that begin so, means nothing without: an option of the setup."""

_DAMAGES = ("damage.", "plant.", "op.Damage=", "op.PlantFile=")
_ROTS = ("fault.call=lose", "fault.call=misdirect", "damage.kind=unreadable")
APART: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "what a start can know of damage to the log depends on what else there is, so such "
    "scenarios have no broker": (
        (*_DAMAGES, *_ROTS),
        tuple(name for name, need in NEEDS.items() if need in (_BROKER, _FILTERS)),
    ),
    "a disk that lies promises nothing, so nothing can be asked of what it meets": (
        ("setup.disk_profile=lying_disk",),
        ("",),
    ),
}
"""Pairs that scenarios keep apart on purpose: the reason, and beginnings of values."""

HOUR_MS = 3_600_000
_NAMED = ("disk_profile", "flush_mode", "on_damage", "delete_hours", "begins_with")


def values_of(program: Program) -> frozenset[Value]:
    """All values that a program has."""
    found = set(_of_setup(program.setup))
    for op in program.ops:
        found.update(_of_event(op))
    return frozenset(found)


def dimension_of(value: Value) -> str:
    """The dimension of a value."""
    return value.partition("=")[0]


@dataclass(slots=True)
class Pairs:
    """Which values met which in some programs.

    Invariants:
        each value that met another one was seen, and each has one number
    """

    numbers: dict[Value, int] = field(default_factory=dict)
    met: list[int] = field(default_factory=list)  # by number: a bit for each other one
    programs: int = 0

    def _check(self) -> None:
        assert len(self.numbers) == len(self.met)
        assert not self.met or max(self.met).bit_length() <= len(self.met)

    def add(self, values: Iterable[Value]) -> None:
        """Count a program that has these values."""
        mine = [self._number(value) for value in sorted(values)]
        bits = sum(1 << number for number in mine)
        for number in mine:
            self.met[number] |= bits
        self.programs += 1
        self._check()

    def _number(self, value: Value) -> int:
        number = self.numbers.setdefault(value, len(self.numbers))
        if number == len(self.met):
            self.met.append(0)
        return number

    def have_met(self, one: Value, other: Value) -> bool:
        """Whether a program had both."""
        return bool(self.met[self.numbers[one]] >> self.numbers[other] & 1)

    def others_of(self, value: Value) -> dict[str, list[Value]]:
        """The values of other dimensions: ``met``, ``missing``, or why impossible.

        Pairs without a meaning are left out.
        """
        found: dict[str, list[Value]] = {"met": [], "missing": []}
        for other in sorted(self.numbers):
            if dimension_of(other) == dimension_of(value):
                continue
            if self.have_met(value, other):
                found["met"].append(other)
            elif not (_is_meaningless(value, other) or _is_meaningless(other, value)):
                why = _apart(value, other) or _apart(other, value) or "missing"
                found.setdefault(why, []).append(other)
        return found


@cache
def _need_of(value: Value) -> frozenset[tuple[str, str]]:
    return frozenset(need for name, need in NEEDS.items() if value.startswith(name))


def _is_meaningless(value: Value, other: Value) -> bool:
    """Whether ``value`` needs another setup than ``other`` is or needs."""
    said = {tuple(other.split("=", 1)), *_need_of(other)}
    return any(
        option == needed and told != wanted
        for needed, wanted in _need_of(value)
        for option, told in said
    )


def _apart(value: Value, other: Value) -> str:
    for why, (ones, others) in APART.items():
        if value.startswith(ones) and other.startswith(others):
            return why
    return ""


@cache
def _of_setup(setup: Setup) -> tuple[Value, ...]:
    """A value for each option: its text, or how it compares with the default."""
    usual = Setup()
    found: list[Value] = []
    for option in fields(Setup):
        value, default = getattr(setup, option.name), getattr(usual, option.name)
        if isinstance(value, bool):
            said = "on" if value else "off"
        elif option.name in _NAMED:
            said = str(value)
        elif value == default:
            said = "usual"
        elif option.name == "message_delay_level":
            is_less = setup.delay_levels.level_max < usual.delay_levels.level_max
            said = "less" if is_less else "more"
        else:
            said = "less" if value < default else "more"
        found.append(f"setup.{option.name}={said}")
    return tuple(found)


def _of_event(event: Event) -> Iterator[Value]:
    yield f"op.{type(event).__name__}=done"
    yield from _values_of_event(event)
    for inner in parts(event):
        if not isinstance(event, During) or inner is not event.op:
            yield f"beside.{type(inner).__name__}=done"
        yield from _of_event(inner)


def _values_of_event(event: Event) -> Iterator[Value]:
    match event:
        case PutMessage():
            yield from _of_message(event)
        case PutBatch(body_sizes=sizes):
            yield f"batch.count={_amount(len(sizes))}"
            yield f"batch.keys={_amount(len(event.keys.split()))}"
            yield f"batch.properties={'some' if event.properties else 'none'}"
            yield f"batch.multi_dispatch={'some' if event.multi_dispatch else 'none'}"
            is_usual = event.properties_end == PROPERTY_END
            yield f"batch.end={'usual' if is_usual else 'odd'}"
            yield f"batch.cut={_amount(event.cut)}"
            yield f"batch.wrong={event.wrong}"
        case Crash(kind=kind, survivors=survivors):
            yield f"crash.kind={kind}"
            yield f"crash.survivors={survivors.kind}"
        case DiskFault(call=call, errno=errno, lasts=lasts):
            yield f"fault.call={call}"
            yield f"fault.errno={errno}"
            yield f"fault.lasts={'on' if lasts else 'off'}"
        case Damage(kind=kind, file=file):
            yield f"damage.kind={kind}"
            yield f"damage.file={file.partition('[')[0].partition('/')[0]}"
        case PlantFile(content=content):
            yield f"plant.content={content}"
        case Together(schedule=schedule, ops=ops):
            yield from _of_schedule(schedule)
            yield f"together.count={_amount(len(ops))}"
        case AdvanceClock(ms=ms):
            yield f"clock.ms={_span(ms)}"
        case RunService(service=service):
            yield f"service.{service}=done"
        case ChangeConfig(option, value):
            yield f"config.{option}={value}"
        case StartConsumer(is_orderly=orderly, broadcasts=broadcasts, where=where):
            yield f"consumer.orderly={'on' if orderly else 'off'}"
            yield f"consumer.broadcasts={'on' if broadcasts else 'off'}"
            yield f"consumer.where={where}"
        case TurnConsumer(lost=lost):
            yield f"consumer.lost={'more' if lost else 'none'}"
        case Consume(takes_ms=ms):
            yield f"listener.takes={'more' if ms else 'none'}"
        case EndConsumer(how=how):
            yield f"consumer.end={how}"
        case ConfigureGroup(is_retried=again):
            yield f"group.retried={'on' if again else 'off'}"
        case PullThroughBroker(is_lite=lite):
            yield f"pull.lite={'on' if lite else 'off'}"
        case _:
            return


def _of_schedule(schedule: Schedule) -> Iterator[Value]:
    yield f"schedule.kind={schedule.kind}"
    yield f"schedule.grain={schedule.grain}"


def _of_message(put: PutMessage) -> Iterator[Value]:
    body = put.body_size
    size = "empty" if not body else "small" if body < 256 else "large"
    yield f"message.body={size}"
    yield f"message.tags={'some' if put.tags else 'none'}"
    yield f"message.keys={_amount(len(put.keys.split()))}"
    yield f"message.wait={'on' if put.wait_store_ok else 'off'}"
    yield f"message.flag={'some' if put.flag else 'none'}"
    yield f"message.ipv6={put.ipv6}"
    yield f"message.transaction={put.transaction}"
    yield f"message.multi_dispatch={'some' if put.multi_dispatch else 'none'}"
    yield f"message.delay={'some' if put.delay_level else 'none'}"
    yield f"message.reconsumed={'some' if put.reconsume_times else 'none'}"
    yield f"message.sys_flag={'some' if put.sys_flag else 'none'}"
    yield f"message.properties={'some' if put.properties else 'none'}"
    yield f"message.topic={'long' if len(put.topic) > 127 else 'short'}"


def _amount(count: int) -> str:
    return ("none", "one", "two")[count] if count < 3 else "more"


def _span(ms: int) -> str:
    if ms < 0:
        return "back"
    return "short" if ms < 60_000 else "minutes" if ms < HOUR_MS else "hours"
