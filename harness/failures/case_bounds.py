"""What each field of a case may hold, and how much a case may ask of a machine.

A case file may come from anywhere. Its texts and numbers become paths, sizes and
clocks, so each has a range. What generators draw lies within the ranges; and within
them a violated law is a finding, and not a mistake of the file's author.
``models.program`` checks names and types before.

Bounds on the whole: at most ``EVENTS_MAX`` ops and events, nested ones counted;
``ROUNDS_MAX`` rounds of services; ``CLOCK_MS_MAX`` milliseconds forth and back;
``ROOM_MAX`` bytes of files, which a run holds some five times in memory; and
``WORK_MAX`` as their product with the ops, which is about a minute. ``room_of`` and
``work_of`` compute the last two.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from crashmq.harness.disk.profiles import PROFILES
from crashmq.models.brokers import SEVERAL
from crashmq.models.files.index import ENTRY_SIZE, HEADER_SIZE, SLOT_SIZE
from crashmq.models.files.record import DLQ_PREFIX, RETRY_PREFIX
from crashmq.models.messages import BATCH_CUT_MAX
from crashmq.models.observations import EPOCH_MS
from crashmq.models.ops import (
    AdvanceClock,
    AskBroker,
    ChangeConfig,
    ChangeTopic,
    CleanOffsets,
    CleanTopics,
    CloneOffset,
    CommitOffset,
    ConfigureGroup,
    ConfirmLog,
    Consume,
    Crash,
    Damage,
    DeleteGroup,
    DeleteTopic,
    DiskFault,
    During,
    EndConsumer,
    Event,
    FillDisk,
    LookMessage,
    PlantFile,
    PullFiltered,
    PullMessage,
    PullThroughBroker,
    PutBatch,
    PutMessage,
    QueryLowestOffsets,
    QueryMessage,
    QueryOffset,
    ResetOffset,
    Resubscribe,
    RunService,
    Schedule,
    SearchOffset,
    SendMessage,
    Session,
    StartConsumer,
    Subscribe,
    Survivors,
    TakeQueue,
    TellReset,
    Together,
    TurnConsumer,
    Unsubscribe,
    parts,
)
from crashmq.models.printable import shown
from crashmq.models.program import (
    FLUSH_MODES,
    HOUR_MS,
    ON_DAMAGE,
    WRONG_VALUES,
    Program,
    Setup,
)

MIB = 1024**2
EVENTS_MAX = 10_000
ROUNDS_MAX = 100_000
CLOCK_MS_MAX = 10**15
ROOM_MAX = 128 * MIB
WORK_MAX = 128 * 1024 * MIB

_INT64 = 2**63 - 1
_PART_SIZE_MAX = 64 * MIB
_RECORD_OVERHEAD = 400  # the largest, with its unit, its entry and a long topic
_WORK_OF_A_MESSAGE = 8 * 1024
_WORK_OF_A_QUEUE = 32 * 1024
_EVENTS_OF_THE_END = 40  # it heals the store, turns each service, and reads all
_ROOM_OF_SMALL_FILES = 16 * 1024  # checkpoint, abort, lock, the list of topics
_QUEUES_OF_THE_END = (("T0", 0), ("T0", 1))
_OFFSET_MAX = 2**62
_VERSION_MAX = 2**16  # below those that the harness numbers itself


_NAMED: Mapping[str, tuple[str, ...]] = {
    "flush_mode": FLUSH_MODES,
    "on_damage": ON_DAMAGE,
    "wrong_value": ("", *WRONG_VALUES),
}


class OutOfBounds(ValueError):
    """A program has a value out of bounds: ``where`` it is, and what was ``found``."""

    def __init__(self, where: str, found: str) -> None:
        super().__init__(f"{where}: {found}")
        self.where = where
        self.found = found


@dataclass(frozen=True, slots=True)
class Text:
    """A text must match ``pattern``; ``what`` describes it for people."""

    pattern: re.Pattern[str]
    what: str


@dataclass(frozen=True, slots=True)
class Many:
    """At most ``most`` parts, each within ``each``; one bound per field of a pair."""

    most: int
    each: tuple[Bound, ...]


Range: TypeAlias = tuple[int, int]
Bound: TypeAlias = Range | Text | Many


def _text(pattern: str, what: str) -> Text:
    return Text(re.compile(pattern, re.DOTALL), what)


_NAME = r"(?!\.{1,2}(?:/|\Z))[^/\0]{1,255}"
_PATH = rf"(?=.{{1,1000}}\Z){_NAME}(?:/{_NAME})*"
_SELECTOR = r"(?:commitlog|consumequeue|consumequeue_ext|index)\[-?[0-9]{1,9}\]"
_HOUR = "(?:0?[0-9]|1[0-9]|2[0-3])"
_DELAY = r"[0-9]{1,4}[smhd]"
_ANY = (-_INT64, _INT64)  # what no record can hold is asked too, to be refused
_COUNT = (-(2**31), 2**31 - 1)
_TIME_MS = (-EPOCH_MS, 10**12)  # since the run began
_TOPIC = _text(
    r"(?!\.{1,2}\Z)[^/\0]{1,1000}",
    "a topic: 1 to 1000 characters without `/` and NUL, as it names a directory",
)
_GROUP = _text(
    r"[%|a-zA-Z0-9_-]{1,255}",
    "a name of 1 to 255 of RocketMQ's characters",
)
_CONSUMED = _text(
    r"(?!\.{1,2}\Z)[^/\0@]{1,1000}",
    "a topic that is asked about: 1 to 1000 characters without `/`, `@` and NUL",
)
_CONSUMED_OR_NONE = _text(
    r"(?!\.{1,2}\Z)[^/\0@]{0,1000}",
    "a topic that is asked about: at most 1000 characters without `/`, `@` and NUL",
)
_GROUP_OR_NONE = _text(
    r"[%|a-zA-Z0-9_-]{0,255}",
    "a name of at most 255 of RocketMQ's characters",
)
_TOLD_BY_FIELDS = (
    "UNIQ_KEY|TAGS|KEYS|WAIT|DELAY|REAL_TOPIC|REAL_QID|INNER_MULTI_DISPATCH|__CRC32#"
)
_NAMES = _text(
    r"[%|a-zA-Z0-9_-]{1,255}(?:,[%|a-zA-Z0-9_-]{1,255}){0,15}",
    "topics: at most 16 names of RocketMQ's characters, joined by commas",
)
_LISTED = _text(
    r"(?:[%|a-zA-Z0-9_-]{1,255}/[0-9]{1,9}(?:,(?!\Z)|\Z)){0,256}",
    "queues: at most 256 like `T0/1`, of RocketMQ's characters, joined by commas",
)
_RETAINED = _text(
    r"(?:[^/\0,]{1,1000}(?:,(?!\Z)|\Z)){0,64}",
    "topics: at most 64 names without `/` and NUL, joined by commas",
)
_PROPERTY = _text(
    r"[^\1\2]{0,100000}",
    "a property: at most 100000 characters, none of the separators U+0001 and U+0002",
)
_OTHER_PROPERTIES = _text(
    rf"(?!(?:[^;]*;)*(?:{_TOLD_BY_FIELDS})=)[^\1\2]{{0,100000}}",
    "properties as `a=1;b=x`: at most 100000 characters, none of the separators U+0001 "
    "and U+0002, and none of the names that other fields or the store give",
)
_PROPERTIES_END = _text(
    r"(?:\x02(?:[^\x01\x02]{1,1000}\x01\x02){0,8})?",
    "an end of properties: nothing, or U+0002 and at most 8 names without a value, "
    "each ended by U+0001 and U+0002",
)
_ASKED = _text(r".{0,100000}", "a text of at most 100000 characters")
_EXPRESSION = _text(
    r"(?!(?:\s*\|\|)+\s*\Z).{1,10000}",
    "an expression: 1 to 10000 characters, not only separators",
)
_BELOW = _text(r"[^\0]{0,1000}", "the beginning of a path, at most 1000 characters")
_FILE = _text(
    rf"(?:{_SELECTOR}|{_PATH}|)",
    "`commitlog[n]`, `consumequeue[n]`, `consumequeue_ext[n]` or `index[n]` with at "
    "most 9 digits, nor a path below the store's root",
)
_PLANTED = _text(
    rf"(?!\{{(?:next|far)\}}\Z){_PATH}",
    "a path below the store's root: names of at most 255 characters joined by single "
    "slashes, none of them `.` or `..`; `{next}` and `{far}` need a folder",
)

SETUP_BOUNDS: Mapping[str, Bound] = {
    "log_file_size": (256, _PART_SIZE_MAX),
    "queue_file_units": (1, 1_000_000),
    "max_message_size": (256, _PART_SIZE_MAX),  # at its end an episode puts 131 bytes
    "disk_profile": _text(
        "|".join(map(re.escape, PROFILES)),
        f"a disk profile; known are {', '.join(PROFILES)}",
    ),
    "start_window": (0, _INT64),
    "disk_capacity": (0, 2**40),  # and no less than ``least_capacity``
    "queue_ext_size": (0, _PART_SIZE_MAX),
    "reserved_hours": (0, 1_000_000),
    "delete_hours": _text(
        rf"{_HOUR}(?:;{_HOUR}){{0,23}}",
        "hours of the day, 00 to 23, with a semicolon between two",
    ),
    "message_delay_level": _text(
        rf"{_DELAY}(?: {_DELAY}){{0,63}}",
        "at most 64 delays of at most 4 digits and s, m, h or d, with a space between "
        "two",
    ),
    "delete_batch": (1, 1_000_000),
    "index_slots": (0, 100_000),
    "index_entries": (0, 100_000),
    "transient_store_buffers": (0, 1000),
    "flush_least_pages": (0, 1_000_000),
    "read_window": (64, _INT64),
    "in_memory_size": (0, _INT64),
    "topic_queues": (1, 8),
    "retry_queues": (1, 8),
    "pull_batch": (1, 10_000),
    "pull_threshold": (0, 1_000_000),
    "max_span": (0, 65_535),
    "topic_threshold": (-1, 1_000_000),
    "pull_interval": (0, 65_535),
    "brokers": (1, len(SEVERAL)),
}
_OF_A_GROUP: Mapping[str, Bound] = {
    "group": _GROUP,
    "topic": _CONSUMED,
    "queue_id": _ANY,
}
EVENT_BOUNDS: Mapping[type, Mapping[str, Bound]] = {
    PutMessage: {
        "topic": _TOPIC,
        "queue_id": _ANY,
        "body_size": (0, _PART_SIZE_MAX),
        "tags": _PROPERTY,
        "keys": _PROPERTY,
        "flag": _ANY,
        "multi_dispatch": _PROPERTY,
        "properties": _OTHER_PROPERTIES,
        "delay_level": _ANY,
        "reconsume_times": _ANY,
        "sys_flag": (0, 0x7FF),
    },
    PutBatch: {
        "topic": _TOPIC,
        "queue_id": _ANY,
        "body_sizes": Many(1000, ((0, _PART_SIZE_MAX),)),
        "tags": _PROPERTY,
        "keys": _PROPERTY,
        "properties": _OTHER_PROPERTIES,
        "multi_dispatch": _PROPERTY,
        "properties_end": _PROPERTIES_END,
        "cut": (0, BATCH_CUT_MAX),
        "off_by": (-(1 << 32), 1 << 32),
    },
    SendMessage: {
        "topic": _CONSUMED,
        "queue_id": _ANY,
        "body_size": (0, _PART_SIZE_MAX),
        "reconsume_times": _ANY,
        "max_reconsume_times": _COUNT,
        "delay_level": _ANY,
        "properties": _OTHER_PROPERTIES,
        "asks_queues": _ANY,
    },
    PullMessage: {
        "topic": _TOPIC,
        "queue_id": _ANY,
        "queue_offset": _ANY,
        "max_msg_nums": _COUNT,
        "tags": _ASKED,
    },
    LookMessage: {"phy_offset": _ANY},
    SearchOffset: {
        "topic": _TOPIC,
        "queue_id": _ANY,
        "at_ms": _TIME_MS,
    },
    QueryMessage: {
        "topic": _TOPIC,
        "key": _ASKED,
        "max_num": _COUNT,
        "begin_ms": _ANY,
        "end_ms": _ANY,
    },
    RunService: {"times": (0, ROUNDS_MAX)},
    AdvanceClock: {"ms": (-(10**12), 10**12)},
    CleanTopics: {"retained": _RETAINED},
    DeleteTopic: {"topic": _TOPIC, "queue_id": (-1, _INT64)},
    CommitOffset: {**_OF_A_GROUP, "offset": (0, _INT64)},
    QueryOffset: _OF_A_GROUP,
    ResetOffset: {**_OF_A_GROUP, "offset": (-EPOCH_MS, _INT64)},
    PullThroughBroker: {
        **_OF_A_GROUP,
        "queue_offset": _ANY,
        "max_msg_nums": _COUNT,
        "commit_offset": (-1, _INT64),
        "tags": _ASKED,
    },
    Subscribe: {
        "group": _GROUP,
        "topic": _CONSUMED,
        "expression": _ASKED,
        "version": (0, _VERSION_MAX),
    },
    Unsubscribe: {"group": _GROUP},
    PullFiltered: {**_OF_A_GROUP, "queue_offset": _ANY, "max_msg_nums": _COUNT},
    ConfirmLog: {"behind": (0, _INT64)},
    TakeQueue: {**_OF_A_GROUP, "at_ms": _TIME_MS},
    DeleteGroup: {"group": _GROUP},
    ConfigureGroup: {
        "group": _GROUP,
        "retry_max_times": (0, 1_000_000),
        "consume_timeout_minute": (0, 1_000_000),
    },
    CloneOffset: {"group": _GROUP, "target": _GROUP, "topic": _CONSUMED},
    QueryLowestOffsets: {"group": _GROUP, "topic": _CONSUMED},
    CleanOffsets: {"topic": _CONSUMED},
    ChangeTopic: {
        "topic": _CONSUMED,
        "read_queues": (8, 1_000_000),
        "write_queues": (0, 1_000_000),
    },
    AskBroker: {
        "group": _GROUP_OR_NONE,
        "topic": _CONSUMED_OR_NONE,
        "queue_id": _ANY,
        "at_ms": _TIME_MS,
        "client": _GROUP_OR_NONE,
    },
    StartConsumer: {
        "client": _GROUP,
        "group": _GROUP,
        "topics": _NAMES,
        "listed": _LISTED,
        "expression": _EXPRESSION,
        "batch": (1, 1024),
        "max_reconsume_times": _COUNT,
    },
    Resubscribe: {"client": _GROUP, "topics": _NAMES, "expression": _EXPRESSION},
    EndConsumer: {"client": _GROUP},
    TellReset: {
        "client": _GROUP,
        "topic": _CONSUMED,
        "queue_id": _ANY,
        "offset": (0, _INT64),
    },
    TurnConsumer: {
        "client": _GROUP,
        "times": (0, ROUNDS_MAX),
        "lost": (0, ROUNDS_MAX),
    },
    Consume: {
        "client": _GROUP,
        "nth": (0, _INT64),
        "times": (0, ROUNDS_MAX),
        "again": (-(1 << 31), (1 << 31) - 1),
        "takes_ms": (0, 24 * HOUR_MS),
    },
    FillDisk: {"percent": (0, 100)},
    ChangeConfig: {},  # the option's own, as of a setup
    During: {"at_action": _ANY},
    Crash: {"cut": (0, _INT64)},
    Survivors: {
        "number": (0, _INT64),
        "units": Many(100_000, (_BELOW, (-4, _INT64), (0, _INT64))),
    },
    Schedule: {
        "preemptions": Many(100_000, ((0, _INT64), (0, _INT64))),
        "seed": (0, _INT64),
        "depth": (1, 1000),
        "steps": (1, 1_000_000),
    },
    DiskFault: {
        "times": (0, 1_000_000),
        "path": _BELOW,
        "after": (0, 1_000_000),
        "written": (0, _INT64),
    },
    Damage: {"file": _FILE, "at": _ANY, "size": (0, _INT64)},
    PlantFile: {"path": _PLANTED, "size": (0, _PART_SIZE_MAX), "source": _FILE},
}
TOGETHER_MAX = 64
_OFFSET_NAME = re.compile(r"(?:.*/)?([0-9]{20})", re.DOTALL)
_QUEUE_ID = re.compile(r"(consumequeue(?:_ext)?)/[^/]+/([0-9]+)(?:/|\Z)")
_INDEX_NAME = re.compile(r"index/[0-9]{4}(?:0[0-9]|1[0-2])[0-9]{11}")
_RUN_FILES = frozenset({"abort", "checkpoint", "lock"})
_DELETED_FILES = frozenset({"deletedTopics", "deletedTopics.tmp"})
_QUEUE_FOLDERS = ("consumequeue", "consumequeue_ext")
_FOLDERS = frozenset({"commitlog", *_QUEUE_FOLDERS, "index"})

QueueName: TypeAlias = tuple[str, int]


def check_program(program: Program) -> None:
    """Raise for the first field, or the first sum, that is out of bounds.

    Raises:
        OutOfBounds: it says where, what was found, and what is allowed.
    """
    _check(program.setup, SETUP_BOUNDS, "$.setup")
    queues = _queues_of(program)
    places = _Places(program.setup, _folders_of(queues))
    for number, op in enumerate(program.ops):
        _check_event(op, f"$.ops[{number}]", places)
    _check_sums(program, len(queues))


def is_within_bounds(program: Program) -> bool:
    """Whether ``check_program`` accepts the program."""
    try:
        check_program(program)
    except OutOfBounds:
        return False
    return True


@dataclass(frozen=True, slots=True)
class _Places:
    """Where the store of a program has its files and folders."""

    setup: Setup
    folders: frozenset[str]

    def has_file_at(self, path: str) -> bool:
        """Whether the store may put a file there."""
        if path in _RUN_FILES | _DELETED_FILES or _INDEX_NAME.fullmatch(path):
            return True
        folder, _, name = path.rpartition("/")
        sizes = {
            "commitlog": self.setup.log_file_size,
            "consumequeue": 20 * self.setup.queue_file_units,
            "consumequeue_ext": self.setup.queue_ext_size,
        }
        size = sizes.get(folder.partition("/")[0], 0)
        if name in ("{next}", "{far}"):
            return size > 0
        named = _OFFSET_NAME.fullmatch(name)
        return bool(size and named) and int(name) % size == 0


def _check_event(event: Event, where: str, places: _Places) -> None:
    _check(event, EVENT_BOUNDS.get(type(event), {}), where)
    match event:
        case During(inner, _, happens):
            _check_event(inner, f"{where}.during", places)
            _check_event(happens, f"{where}.event", places)
        case Together(ops, schedule):
            if len(ops) > TOGETHER_MAX:
                found = f"{len(ops)} ops at once, at most {TOGETHER_MAX} are run"
                raise OutOfBounds(f"{where}.together", found)
            for number, part in enumerate(ops):
                _check_event(part, f"{where}.together[{number}]", places)
            _check(schedule, EVENT_BOUNDS[Schedule], f"{where}.schedule")
        case Session(ops):
            if len(ops) > TOGETHER_MAX:
                found = f"{len(ops)} ops in turn, at most {TOGETHER_MAX} are run"
                raise OutOfBounds(f"{where}.session", found)
            for number, part in enumerate(ops):
                _check_event(part, f"{where}.session[{number}]", places)
        case Crash(survivors=survivors) | DiskFault(survivors=survivors):
            _check(survivors, EVENT_BOUNDS[Survivors], f"{where}.survivors")
        case PlantFile():
            _check_planted(event, f"{where}.path", places)
        case ChangeConfig(option, value):
            _check_option(places.setup, option, value, f"{where}.value")


def _check_option(setup: Setup, option: str, value: object, where: str) -> None:
    """Refuse a value that a setup cannot have."""
    usual = getattr(setup, option)
    if type(value) is not type(usual):
        kind = type(usual).__name__
        raise OutOfBounds(where, f"{shown(value)} is no {kind}, as {option} is")
    if option in _NAMED and value not in _NAMED[option]:
        found = f"{shown(value)} is no {option}; known are {', '.join(_NAMED[option])}"
        raise OutOfBounds(where, found)
    if option in SETUP_BOUNDS:
        _check_one(value, SETUP_BOUNDS[option], where)


def _check_planted(plant: PlantFile, where: str, places: _Places) -> None:
    """Refuse a foreign file at a path that the store needs: it could never work."""
    path = plant.path
    parts = path.split("/")
    is_folder = plant.content == "directory"
    for count in range(1, len(parts) + is_folder):
        folder = "/".join(parts[:count])
        if places.has_file_at(folder):
            found = f"{shown(folder)} is where the store puts a file, and no folder"
            raise OutOfBounds(where, found)
    if path in _DELETED_FILES:
        raise OutOfBounds(where, f"{shown(path)} is a file that only the store writes")
    if not is_folder and path in places.folders:
        found = f"{shown(path)} is where the store has a folder, and no file"
        raise OutOfBounds(where, found)
    _check_numbers(path, where, places.setup)


def _check_numbers(path: str, where: str, setup: Setup) -> None:
    """Refuse numbers in a planted path that are none of this store's."""
    named = _OFFSET_NAME.fullmatch(path)
    if named and int(named[1]) > _OFFSET_MAX:
        found = f"offset {named[1]} is past any file, at most {_OFFSET_MAX}"
        raise OutOfBounds(where, found)
    queue = _QUEUE_ID.match(path)
    if queue and int(queue[2]) > _COUNT[1]:
        found = f"queue {queue[2]} is past any queue, at most {_COUNT[1]}"
        raise OutOfBounds(where, found)
    if queue and named and queue[1] == _QUEUE_FOLDERS[1] and not setup.has_queue_ext:
        found = f"{shown(path)} is beside a queue, and $.setup.queue_ext_size is 0"
        raise OutOfBounds(where, found)


def _folders_of(queues: set[QueueName]) -> frozenset[str]:
    """The folders of the store, and those of queues that the program puts to."""
    below = {name for topic, number in queues for name in (topic, f"{topic}/{number}")}
    return _FOLDERS | {f"{root}/{name}" for root in _QUEUE_FOLDERS for name in below}


def _queues_of(program: Program) -> set[QueueName]:
    """The queues that get messages, with those of the end of each episode."""
    queues: set[QueueName] = set(_QUEUES_OF_THE_END)
    for event in _events(program):
        match event:
            case PutMessage(topic, queue_id):
                queues.add((topic, queue_id))
                if program.setup.multi_dispatch:
                    light = event.multi_dispatch.split(",")
                    queues.update((name, 0) for name in light)
            case PutBatch(topic, queue_id):
                queues.add((topic, queue_id))
            case SendMessage(topic, queue_id):
                queues.add((topic, queue_id))
                if topic.startswith(RETRY_PREFIX):
                    queues.add((f"{DLQ_PREFIX}{topic.removeprefix(RETRY_PREFIX)}", 0))
    return queues


def _check(value: object, bounds: Mapping[str, Bound], where: str) -> None:
    for name, bound in bounds.items():
        _check_one(getattr(value, name), bound, f"{where}.{name}")


def _check_one(value: object, bound: Bound, where: str) -> None:
    match bound:
        case Text(pattern, what):
            assert isinstance(value, str), where
            if not pattern.fullmatch(value):
                raise OutOfBounds(where, f"{shown(value)} is not {what}")
        case Many(most, each):
            assert isinstance(value, tuple), where
            if len(value) > most:
                raise OutOfBounds(where, f"{len(value)} of them, at most {most}")
            for number, part in enumerate(value):
                fields = part if len(each) > 1 else (part,)
                for one, its_bound in zip(fields, each, strict=True):
                    _check_one(one, its_bound, f"{where}[{number}]")
        case (least, most):
            assert isinstance(value, int), where
            if not least <= value <= most:
                found = f"{shown(value)} is out of range, {least} to {most} are allowed"
                raise OutOfBounds(where, found)


def _check_sums(program: Program, queues: int) -> None:
    events = list(_events(program))
    _at_most(len(events), EVENTS_MAX, "ops and events, nested ones counted")
    rounds = sum(one.times for one in events if isinstance(one, RunService))
    _at_most(rounds, ROUNDS_MAX, "rounds of services")
    moved_ms = sum(abs(one.ms) for one in events if isinstance(one, AdvanceClock))
    _at_most(moved_ms, CLOCK_MS_MAX, "ms by which the clock is moved, forth and back")
    asked = _Asked.of(program.setup, events, queues)
    _at_most(room_of(program.setup, asked), ROOM_MAX, "bytes of files")
    work = (len(events) + _EVENTS_OF_THE_END) * work_of(program.setup, asked)
    _at_most(work, WORK_MAX, "units of work, which are ops times bytes of files")
    least = least_capacity(program.setup, asked)
    if 0 < program.setup.disk_capacity < least:
        raise OutOfBounds(
            "$.setup.disk_capacity",
            f"{program.setup.disk_capacity} is no room for this store, 0 (no end) or "
            f"at least {least} are allowed",
        )


def _at_most(number: int, most: int, what: str) -> None:
    if number > most:
        found = f"the case asks for {shown(number)} {what}, at most {most} are allowed"
        raise OutOfBounds("$", found)


def _events(program: Program) -> Iterator[Event]:
    waiting: list[Event] = list(reversed(program.ops))
    while waiting:
        event = waiting.pop()
        yield event
        waiting += parts(event)


@dataclass(slots=True)
class _Asked:
    """How much a program puts into a store."""

    messages: int = 0
    record_bytes: int = 0
    units: int = 0
    keys: int = 0
    planted_bytes: int = 0
    queues: int = 0

    @classmethod
    def of(cls, setup: Setup, events: list[Event], queues: int) -> _Asked:
        asked = cls(queues=queues)
        for event in events:
            match event:
                case PutMessage(topic, _, size, tags, keys):
                    light = event.multi_dispatch.split(",")
                    texts = len(topic) + len(tags) + len(keys)
                    size += 4 * (texts + len(event.multi_dispatch))
                    asked._add(1, size, len(light), 1 + len(keys.split(" ")))
                case PutBatch(topic, _, sizes, tags, _, keys):
                    texts = len(topic) + len(tags) + len(keys) + len(event.properties)
                    texts += len(event.multi_dispatch) + len(event.properties_end)
                    total = sum(sizes) + len(sizes) * 4 * texts
                    each = 1 + len(keys.split(" "))
                    asked._add(len(sizes), total, 0, len(sizes) * each)
                case SendMessage(topic, _, size):
                    # It may be a dead letter, and a topic's name comes twice if it
                    # is delayed.
                    texts = 2 * len(topic) + len(event.properties)
                    asked._add(1, size + 4 * texts, 0, 1)
                case PlantFile(size=size, content="zeros" | "garbage"):
                    asked.planted_bytes += size
                case PlantFile(content="copy"):
                    asked.planted_bytes += _largest_file(setup)
        return asked

    def _add(self, messages: int, size: int, light: int, keys: int) -> None:
        self.messages += messages
        self.record_bytes += size + messages * _RECORD_OVERHEAD
        self.units += messages + light
        self.keys += keys


def _largest_file(setup: Setup) -> int:
    queue_file = 20 * setup.queue_file_units
    index = _index_file_size(setup)
    return max(setup.log_file_size, queue_file, index, setup.queue_ext_size)


def _index_file_size(setup: Setup) -> int:
    slots, entries = SLOT_SIZE * setup.index_slots, ENTRY_SIZE * setup.index_entries
    return HEADER_SIZE + slots + entries


def room_of(setup: Setup, asked: _Asked) -> int:
    """The most bytes that the store's files can take, with its write buffers.

    A record that does not fit leaves less than its own size unused, so files take at
    most twice what is put, plus the one being filled and one created ahead.
    """
    log = 2 * setup.log_file_size + 2 * asked.record_bytes
    if setup.transient_store_pool:
        log *= 2
    queues = 20 * setup.queue_file_units * asked.queues + 20 * asked.units
    ext = 0
    if setup.has_queue_ext:
        ext = setup.queue_ext_size * asked.queues + 1024 * asked.units
    index = 0
    if setup.has_index:
        files = 2 + asked.keys // (setup.index_entries - 1)
        index = files * _index_file_size(setup)
    return log + queues + ext + index + asked.planted_bytes


def work_of(setup: Setup, asked: _Asked) -> int:
    """The most that one op may cost: a start, and many laws, read all there is."""
    messages = _WORK_OF_A_MESSAGE * asked.messages
    return room_of(setup, asked) + messages + _WORK_OF_A_QUEUE * asked.queues


def least_capacity(setup: Setup, asked: _Asked) -> int:
    """The smallest disk on which a store that lost all its messages works again."""
    queues = 20 * setup.queue_file_units * asked.queues
    ext = setup.queue_ext_size * asked.queues if setup.has_queue_ext else 0
    index = 0
    if setup.has_index:
        index = 2 * _index_file_size(setup)
    return 3 * setup.log_file_size + queues + ext + index + _ROOM_OF_SMALL_FILES
