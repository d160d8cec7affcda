"""The op algebra: one step of a program, as data.

Every op is legal in every state; where it has no meaning it is observed as
``Skipped``. So any op can be cut from a program, and shrinking needs no knowledge.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal, NamedTuple, TypeAlias, assert_never

ServiceName = Literal[
    "reput",
    "flush_commit_log",
    "flush_consume_queue",
    "checkpoint",
    "flush_index",
    "commit",
    "allocate",
    "clean_commit_log",
    "clean_consume_queue",
]
SERVICE_NAMES: tuple[ServiceName, ...] = (
    "reput",
    "flush_commit_log",
    "flush_consume_queue",
    "checkpoint",
    "flush_index",
    "commit",
    "allocate",
    "clean_commit_log",
    "clean_consume_queue",
)

ALL_TIME_MS = 1 << 62
"""More milliseconds than any clock says: no bound."""

SurvivorKind = Literal["none", "all", "prefix", "hashed", "units"]
CrashKind = Literal["process_kill", "power_loss"]
FaultCall = Literal["read", "write", "sync", "create", "evict"]
FaultErrno = Literal["EIO", "ENOSPC", "EDQUOT", "EINTR"]
Boundary = Literal["LOWER", "UPPER"]
BOUNDARIES: tuple[Boundary, ...] = ("LOWER", "UPPER")
DamageKind = Literal["truncate", "zero", "flip", "delete", "touch"]
IPv6Hosts = Literal["none", "born", "store", "both"]
TransactionType = Literal["none", "prepared", "commit", "rollback"]


class Capability(Enum):
    """What a subject must offer for an op to have a meaning on it."""

    STEP_SERVICES = "services run when told, and only then"
    AT_ACTION = "something can happen at the n-th disk action"
    INTERLEAVE = "one op can run amid another"
    POWER_LOSS = "what was not synced can be lost"
    DISK_FAULT = "calls to the disk can be made to fail"
    DAMAGE = "files can be changed while the store is down"
    CLOCK = "time moves only when told"
    ROOM = "others can fill the disk, and set the times of files"


UNIT_ENTRY = -1
UNIT_SIZE = -2
UNIT_ORDER = -3
UNIT_TAIL = -4


class KeptUnit(NamedTuple):
    """One independent piece of what was pending, and how much of it survives.

    Attributes:
        path: of a file when it was made, or of a directory entry.
        place: number of a sector of the file; ``UNIT_SIZE``: its size; ``UNIT_ENTRY``:
            where the path leads; ``UNIT_ORDER``, path "": all directory changes;
            ``UNIT_TAIL``: room of the file that was never synced.
        version: how many of its changes survive, from the first on; of such room, 1:
            it holds garbage, 2: what another file had there.
    """

    path: str
    place: int
    version: int


@dataclass(frozen=True, slots=True)
class Survivors:
    """Which pending effects outlive a power loss.

    ``none`` and ``all`` speak for themselves; ``prefix`` keeps the first ``number``
    effects in the order they were made; ``hashed`` picks the version of each sector,
    and the length of the metadata prefix, by a hash of (``number``, path, sector);
    ``units`` keeps what ``units`` lists, and nothing else.
    """

    kind: SurvivorKind = "none"
    number: int = 0
    units: tuple[KeptUnit, ...] = ()


@dataclass(frozen=True, slots=True)
class Crash:
    """The process is killed or power is lost.

    ``cut`` is how many bytes of the page in progress were done. ``survivors`` has a
    meaning for a power loss alone: a process kill keeps what the calls had done.
    """

    kind: CrashKind
    survivors: Survivors = Survivors()
    cut: int = 0


@dataclass(frozen=True, slots=True)
class DiskFault:
    """The next ``times`` calls of one kind fail with ``errno`` while the op lasts.

    Attributes:
        call: the kind; ``evict`` fails none, but lets clean pages leave memory, so
            that what a failed sync left behind is read as the medium has it.
        path: only calls on paths that begin so; "": on all.
        after: how many of those succeed first.
        lasts: fail all from then on, whatever ``times`` says.
        written: bytes of a failing write that are done.
    """

    call: FaultCall
    errno: FaultErrno
    times: int = 1
    path: str = ""
    after: int = 0
    lasts: bool = False
    written: int = 0


@dataclass(frozen=True, slots=True)
class PutMessage:
    """Store one message whose body of ``body_size`` bytes is derived from its step.

    ``keys`` adds the KEYS property. ``wait_store_ok`` false is the property WAIT of
    RocketMQ: the put does not wait for the flush.

    Attributes:
        ipv6: which of the hosts has an address of 16 bytes.
        transaction: commit and rollback name the newest prepared message of this life.
        multi_dispatch: names of light queues, joined by commas, that list it as well.
        delay_level: the DELAY property; 0 for none.
        sys_flag: bits beside those of transaction and hosts, as compression's.
    """

    topic: str
    queue_id: int
    body_size: int
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


@dataclass(frozen=True, slots=True)
class PutBatch:
    """Store several messages of one queue by one put: all of them, or none."""

    topic: str
    queue_id: int
    body_sizes: tuple[int, ...]
    tags: str = ""
    wait_store_ok: bool = True


@dataclass(frozen=True, slots=True)
class PullMessage:
    """Read up to ``max_msg_nums`` messages of one queue from ``queue_offset`` on.

    ``tags`` is a tag expression, ``A || B``: only such messages are asked for.
    """

    topic: str
    queue_id: int
    queue_offset: int
    max_msg_nums: int = 32
    tags: str = "*"


@dataclass(frozen=True, slots=True)
class LookMessage:
    """Read the one message whose record begins at ``phy_offset`` of the log."""

    phy_offset: int


@dataclass(frozen=True, slots=True)
class SearchOffset:
    """Ask which queue offset a time means.

    ``at_ms`` counts from where the subject's clock began. LOWER is the first message
    stored at or after it, UPPER the last one stored at or before it.
    """

    topic: str
    queue_id: int
    at_ms: int
    boundary: Boundary = "LOWER"


@dataclass(frozen=True, slots=True)
class QueryMessage:
    """Read the newest ``max_num`` messages of a topic that carry ``key``.

    Only those stored in [``begin_ms``, ``end_ms``], which count from where the
    subject's clock began.
    """

    topic: str
    key: str
    max_num: int = 32
    begin_ms: int = -ALL_TIME_MS
    end_ms: int = ALL_TIME_MS


@dataclass(frozen=True, slots=True)
class RunService:
    """Turn one background service ``times`` rounds."""

    service: ServiceName
    times: int = 1


@dataclass(frozen=True, slots=True)
class AdvanceClock:
    """Let ``ms`` milliseconds pass; negative: the wall clock is set back."""

    ms: int


@dataclass(frozen=True, slots=True)
class DeleteManually:
    """Ask for a deletion of what has expired, whatever the hour."""


@dataclass(frozen=True, slots=True)
class FillDisk:
    """Let a foreign file fill the disk to ``percent``; 0: there is no such file."""

    percent: int


@dataclass(frozen=True, slots=True)
class Shutdown:
    """Stop the store in an orderly way."""


@dataclass(frozen=True, slots=True)
class Restart:
    """Start the store; one that is up is shut down in an orderly way first."""


@dataclass(frozen=True, slots=True)
class During:
    """Run ``op``; let ``event`` happen at its ``at_action``-th disk action.

    If the op makes fewer disk actions, the event happens right after it. Time that
    passes as an event is a stall: the op stands still, others run. Events nest
    two deep (``During`` in ``During``); deeper is ``Skipped``.
    """

    op: Op
    at_action: int
    event: Crash | DiskFault | Op


@dataclass(frozen=True, slots=True)
class Damage:
    """Change one file while the store is down.

    Attributes:
        file: a selector ``commitlog[n]``, ``consumequeue[n]``, ``index[n]`` (the n-th
            file below that directory in sorted order, modulo their number; negative
            from the end), ``checkpoint`` or ``abort``.
        kind: ``truncate`` cuts the file to ``at`` bytes, ``zero`` zeroes ``size``
            bytes from ``at`` (0: to the end), ``flip`` inverts ``size`` bytes from
            ``at``, ``delete`` removes the file. ``at`` counts modulo the file's size.
            ``touch`` lets the file say that it last changed ``at`` ms ago.
    """

    file: str
    kind: DamageKind
    at: int = 0
    size: int = 0


Op: TypeAlias = (
    PutMessage
    | PutBatch
    | PullMessage
    | LookMessage
    | SearchOffset
    | QueryMessage
    | RunService
    | AdvanceClock
    | DeleteManually
    | FillDisk
    | Shutdown
    | Restart
    | During
    | Damage
)

OP_CLASSES: tuple[type[Op], ...] = (
    PutMessage,
    PutBatch,
    PullMessage,
    LookMessage,
    SearchOffset,
    QueryMessage,
    RunService,
    AdvanceClock,
    DeleteManually,
    FillDisk,
    Shutdown,
    Restart,
    During,
    Damage,
)
Event: TypeAlias = Crash | DiskFault | Op
EVENT_CLASSES: tuple[type[Event], ...] = (Crash, DiskFault, *OP_CLASSES)
NESTING_MAX = 2


def needs(op: Event) -> frozenset[Capability]:
    """What a subject must offer for ``op`` to be more than ``Skipped``."""
    match op:
        case During(inner, _, event):
            here = {Capability.AT_ACTION}
            if isinstance(event, OP_CLASSES):
                here.add(Capability.INTERLEAVE)
            return frozenset(here) | needs(inner) | needs(event)
        case RunService():
            return frozenset({Capability.STEP_SERVICES})
        case AdvanceClock():
            return frozenset({Capability.CLOCK})
        case Damage(kind="touch"):
            return frozenset({Capability.DAMAGE, Capability.ROOM})
        case Damage():
            return frozenset({Capability.DAMAGE})
        case DiskFault(call="evict"):
            return frozenset({Capability.DISK_FAULT, Capability.POWER_LOSS})
        case DiskFault():
            return frozenset({Capability.DISK_FAULT})
        case Crash(kind="power_loss"):
            return frozenset({Capability.POWER_LOSS})
        case Crash() | PutMessage() | PutBatch() | PullMessage() | QueryMessage():
            return frozenset()
        case Shutdown() | Restart() | DeleteManually():
            return frozenset()
        case FillDisk():
            return frozenset({Capability.ROOM})
        case LookMessage() | SearchOffset():
            return frozenset()
        case _:
            assert_never(op)


def nesting(op: Event) -> int:
    """How many ``During`` stand inside each other, along the deepest way."""
    if not isinstance(op, During):
        return 0
    return 1 + max(nesting(op.op), nesting(op.event))


def describe(op: Event) -> str:
    """One line for people."""
    match op:
        case PutMessage():
            return _describe_put(op)
        case PutBatch(topic, queue_id, body_sizes, tags):
            tagged = f" tagged {tags}" if tags else ""
            waits = "" if op.wait_store_ok else ", not waiting for the flush"
            sizes = ", ".join(map(str, body_sizes))
            return f"put a batch of {sizes} B to {topic}/{queue_id}{tagged}{waits}"
        case PullMessage(topic, queue_id, queue_offset, max_msg_nums, tags):
            tagged = "" if tags == "*" else f" tagged {tags}"
            return (
                f"pull {topic}/{queue_id}{tagged} from {queue_offset}, "
                f"at most {max_msg_nums}"
            )
        case LookMessage(phy_offset):
            return f"look at phy_offset {phy_offset}"
        case SearchOffset(topic, queue_id, at_ms, boundary):
            return f"search {topic}/{queue_id} for {boundary} of {at_ms:+d} ms"
        case QueryMessage(topic, key, max_num):
            return f"query {topic} for {key}, at most {max_num}{_describe_range(op)}"
        case RunService(service, times):
            return f"run {service}" + (f" x{times}" if times != 1 else "")
        case AdvanceClock(ms):
            return f"clock {ms:+d} ms"
        case DeleteManually():
            return "delete what has expired"
        case FillDisk(percent):
            return f"fill the disk to {percent} %" if percent else "free the disk"
        case Shutdown():
            return "shutdown"
        case Restart():
            return "restart"
        case During(inner, at_action, event):
            return f"{describe(inner)}; at disk action {at_action}: {describe(event)}"
        case Damage(file, kind, at, size):
            return _describe_damage(file, kind, at, size)
        case Crash(kind, survivors, cut):
            return _describe_crash(kind, survivors, cut)
        case DiskFault():
            return _describe_fault(op)
        case _:
            assert_never(op)


def _describe_range(op: QueryMessage) -> str:
    if (op.begin_ms, op.end_ms) == (-ALL_TIME_MS, ALL_TIME_MS):
        return ""
    return f", stored from {op.begin_ms} to {op.end_ms} ms"


def _describe_put(op: PutMessage) -> str:
    kind = "" if op.transaction == "none" else f"{op.transaction} message of "
    parts = [f"put {kind}{op.body_size} B to {op.topic}/{op.queue_id}"]
    if op.tags:
        parts.append(f" tagged {op.tags}")
    if op.multi_dispatch:
        parts.append(f", listed in {op.multi_dispatch} too")
    if op.delay_level:
        parts.append(f", delayed by level {op.delay_level}")
    if op.ipv6 != "none":
        hosts = "both hosts" if op.ipv6 == "both" else f"{op.ipv6} host"
        parts.append(f", {hosts} IPv6")
    numbers = ("flag", "sys_flag", "reconsume_times")
    parts += [f", {name} {getattr(op, name)}" for name in numbers if getattr(op, name)]
    if not op.wait_store_ok:
        parts.append(", not waiting for the flush")
    return "".join(parts)


def _describe_fault(fault: DiskFault) -> str:
    if fault.call == "evict":
        return "clean pages leave memory"
    where = f" of {fault.path}" if fault.path else ""
    how_often = f" x{fault.times}" if fault.times != 1 else ""
    after = f" after {fault.after}" if fault.after else ""
    part = f", {fault.written} B of it done" if fault.written else ""
    lasts = " from then on" if fault.lasts else how_often
    return f"{fault.call}{where} fails with {fault.errno}{lasts}{after}{part}"


def _describe_damage(file: str, kind: DamageKind, at: int, size: int) -> str:
    match kind:
        case "delete":
            return f"delete {file}"
        case "touch":
            return f"let {file} look {at} ms old"
        case "truncate":
            return f"cut {file} to {at} B"
        case "zero":
            return f"zero {size or 'all'} B of {file} from byte {at}"
        case "flip":
            return f"flip {size} B of {file} from byte {at}"
        case _:
            assert_never(kind)


def _describe_crash(kind: CrashKind, survivors: Survivors, cut: int) -> str:
    after = f" after {cut} B of the page" if cut else ""
    if kind == "process_kill":
        return f"PROCESS KILL{after}"
    number = f"({survivors.number})" if survivors.kind in ("prefix", "hashed") else ""
    units = "; ".join(describe_unit(unit) for unit in survivors.units)
    listed = f" [{units}]" if survivors.kind == "units" else ""
    return f"POWER LOSS{after}, survivors {survivors.kind.upper()}{number}{listed}"


def describe_unit(unit: KeptUnit) -> str:
    """One unit in words."""
    match unit.place:
        case -1:  # UNIT_ENTRY
            return f"entry {unit.path} after change {unit.version}"
        case -2:  # UNIT_SIZE
            return f"size of {unit.path} after change {unit.version}"
        case -3:  # UNIT_ORDER
            return f"the first {unit.version} directory changes"
        case -4:  # UNIT_TAIL
            what = "garbage" if unit.version == 1 else "another file's bytes"
            return f"{what} in new room of {unit.path}"
        case sector:
            return f"{unit.path} sector {sector} after change {unit.version}"
