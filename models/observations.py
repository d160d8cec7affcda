"""Observations: the result of an op as seen from outside the store.

An observation contains nothing of the engine: statuses are RocketMQ's names as text,
messages are the bytes a reader was given. So the Python store, a child process and
Apache RocketMQ can all give the same observations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

from crashmq.models.ops import CrashKind, ExpressionType
from crashmq.models.quickly_made import quickly_made

PutStatus: TypeAlias = Literal[
    "PUT_OK",
    "FLUSH_DISK_TIMEOUT",
    "SERVICE_NOT_AVAILABLE",
    "CREATE_MAPPED_FILE_FAILED",
    "MESSAGE_ILLEGAL",
    "PROPERTIES_SIZE_EXCEEDED",
    "UNKNOWN_ERROR",
]
"""What a put comes to; PUT_OK alone acknowledges the message."""

PullStatus: TypeAlias = Literal[
    "FOUND",
    "NO_MATCHED_MESSAGE",
    "MESSAGE_WAS_REMOVING",
    "OFFSET_FOUND_NULL",
    "OFFSET_OVERFLOW_BADLY",
    "OFFSET_OVERFLOW_ONE",
    "OFFSET_TOO_SMALL",
    "NO_MATCHED_LOGIC_QUEUE",
    "NO_MESSAGE_IN_QUEUE",
]
"""What a pull comes to."""

BrokerCode: TypeAlias = Literal[
    "SUCCESS",
    "SYSTEM_ERROR",
    "SYSTEM_BUSY",
    "NO_PERMISSION",
    "TOPIC_NOT_EXIST",
    "PULL_NOT_FOUND",
    "PULL_RETRY_IMMEDIATELY",
    "PULL_OFFSET_MOVED",
    "SUBSCRIPTION_PARSE_FAILED",
    "SUBSCRIPTION_NOT_EXIST",
    "SUBSCRIPTION_NOT_LATEST",
    "SUBSCRIPTION_GROUP_NOT_EXIST",
    "FILTER_DATA_NOT_EXIST",
    "FILTER_DATA_NOT_LATEST",
    "INVALID_PARAMETER",
]
"""What a pull through a broker comes to."""

BROKER_CODES: Final[dict[str, BrokerCode]] = {
    word: word for word in get_args(BrokerCode)
}

CODES_OF_READS: Final[frozenset[BrokerCode]] = frozenset(
    {"SUCCESS", "PULL_NOT_FOUND", "PULL_RETRY_IMMEDIATELY", "PULL_OFFSET_MOVED"}
)
"""What a pull comes to that was neither refused nor in vain."""

PUT_STATUSES: Final[dict[str, PutStatus]] = {word: word for word in get_args(PutStatus)}
PULL_STATUSES: Final[dict[str, PullStatus]] = {
    word: word for word in get_args(PullStatus)
}


@quickly_made
@dataclass(frozen=True, slots=True)
class Positions:
    """The log's offsets as the store reports them, in bytes; -1 without a log.

    ``max_phy_offset`` is where the next record goes; ``committed_where`` up to where
    bytes are in files; ``confirm_offset`` up to where they may be served, -1 if the
    store does not report it; ``free_buffers`` how many write buffers are unused,
    likewise.
    """

    min_phy_offset: int
    max_phy_offset: int
    flushed_where: int
    reput_from_offset: int
    committed_where: int = -1
    confirm_offset: int = -1
    free_buffers: int = -1


DOWN = Positions(-1, -1, -1, -1)
"""What a store says that is down."""


EPOCH_MS = 1_700_000_000_000
"""What the clocks of our own subjects say first."""


class World(NamedTuple):
    """The wall clock, and the bytes of the disk in use; ``total`` 0: no limit.

    ``full_calls`` is how many calls the disk has refused so far because it was full.
    """

    now_ms: int = 0
    used: int = 0
    total: int = 0
    full_calls: int = 0

    @property
    def percent(self) -> int:
        """The share of the disk in use, in percent, rounded up."""
        return -(-self.used * 100 // self.total) if self.total else 0


@quickly_made
@dataclass(frozen=True, slots=True)
class Statistics:
    """The store's counts since it started: (topic, messages, bytes), sorted.

    ``put_times`` counts puts by their duration, in the store's own ranges of ms.
    """

    by_topic: tuple[tuple[str, int, int], ...] = ()
    put_times: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Skipped:
    """The op means nothing in this state, or the subject lacks a capability for it."""

    reason: str


@quickly_made
@dataclass(frozen=True, slots=True)
class Put:
    """The answer to a put.

    ``phy_offset``, ``size`` and ``queue_offset`` are -1 unless the message was
    appended; a message may be appended and still not be acknowledged
    (``FLUSH_DISK_TIMEOUT``). For a batch they are those of the first message, but
    ``size`` is the total; ``message_ids`` are the ids of its messages. ``took_ms`` is
    its duration by the store's clock; -1 if others may have moved the clock.
    ``flushed_where`` is the store's position when it answered; -1 if it was not asked.
    """

    status: PutStatus
    phy_offset: int = -1
    size: int = -1
    queue_offset: int = -1
    message_ids: tuple[str, ...] = ()
    took_ms: int = -1
    flushed_where: int = -1


@quickly_made
@dataclass(frozen=True, slots=True)
class Pulled:
    """The answer to a pull: each message as the record's bytes, in queue order."""

    status: PullStatus
    next_begin_offset: int
    min_offset: int
    max_offset: int
    messages: tuple[bytes, ...] = ()


@quickly_made
@dataclass(frozen=True, slots=True)
class BrokerPulled:
    """A broker's answer to a pull; the messages as in ``Pulled``."""

    code: BrokerCode
    next_begin_offset: int = 0
    min_offset: int = 0
    max_offset: int = 0
    messages: tuple[bytes, ...] = ()

    @property
    def as_pulled(self) -> Pulled:
        """A SUCCESS or PULL_RETRY_IMMEDIATELY as the answer of the store behind it."""
        status: PullStatus = "FOUND" if self.code == "SUCCESS" else "NO_MATCHED_MESSAGE"
        bounds = self.min_offset, self.max_offset
        return Pulled(status, self.next_begin_offset, *bounds, self.messages)


@dataclass(frozen=True, slots=True)
class PullHeld:
    """A broker holds a pull; its answer comes later."""


@quickly_made
@dataclass(frozen=True, slots=True)
class Looked:
    """The answer to a lookup: the record at a phy_offset, as bytes, or none."""

    message: bytes | None


@quickly_made
@dataclass(frozen=True, slots=True)
class Searched:
    """The answer to a search by time.

    ``stored_at`` is the store time that the store reports for the message there, and
    ``earliest`` that of the log's first message: -1 if there is none, -2 if not asked
    for.
    """

    queue_offset: int
    stored_at: int = -2
    earliest: int = -2


@quickly_made
@dataclass(frozen=True, slots=True)
class Queried:
    """The answer to a query by key: the records' bytes, oldest first."""

    messages: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class Committed:
    """The offset that a consumer's offset store has now, and has sent to the broker.

    If the broker did not accept it, the consumer forgets it.
    """

    offset: int
    accepted: bool = True


@dataclass(frozen=True, slots=True)
class LogConfirmed:
    """The phy_offset up to which replicas have confirmed the log."""

    phy_offset: int


@quickly_made
@dataclass(frozen=True, slots=True)
class OffsetKept:
    """The broker's answer to a query of a group's offset; -1: it has none."""

    offset: int


@dataclass(frozen=True, slots=True)
class OffsetReset:
    """The offset to which a group was reset; -1: the reset was refused."""

    offset: int


@dataclass(frozen=True, slots=True)
class LowestOffsets:
    """The lowest offset of some groups on each queue_id of a topic, sorted."""

    rows: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class NamesTold:
    """The names that a broker answered, in its order."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NumberTold:
    """The number that a broker answered; for yes and no, 1 and 0."""

    number: int


@dataclass(frozen=True, slots=True)
class QueueTaken:
    """The offset at which a consumer begins in a queue newly assigned to it."""

    offset: int


@quickly_made
@dataclass(frozen=True, slots=True)
class FilteredPull:
    """The answer to a group's pull, and the expression that it was filtered by."""

    pulled: Pulled
    expression: str
    expression_type: ExpressionType


@dataclass(frozen=True, slots=True)
class NotFiltered:
    """The broker has no filter for the subscription that a client's pull names."""


@quickly_made
@dataclass(frozen=True, slots=True)
class Ran:
    """The work of a service's rounds, in the service's own unit."""

    work: int


@quickly_made
@dataclass(frozen=True, slots=True)
class ClockMoved:
    """The wall clock after it moved, in milliseconds since the epoch."""

    now_ms: int


@dataclass(frozen=True, slots=True)
class Stopped:
    """The store was shut down; ``clean``: it removed its abort file.

    ``unsynced`` are the files that a power loss could change or remove now,
    ``left_open`` those that the store still has open, where the simulated disk can
    tell.
    """

    clean: bool
    unsynced: tuple[str, ...] = ()
    left_open: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EndAwaited:
    """Another caller was shutting the store down; ``clean`` is the result of that."""

    clean: bool


@dataclass(frozen=True, slots=True)
class Started:
    """The store is up; ``last_exit_ok``: it found the previous shutdown orderly.

    ``log_bytes_read`` is how many bytes of the log the start read; ``damaged`` are the
    ranges [start, end) of the log that it skips.
    """

    last_exit_ok: bool
    log_bytes_read: int = 0
    damaged: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Refused:
    """The store refused to start and gave a reason; it is down, its files unchanged.

    ``path`` is the file or directory in that reason; "" for the store as a whole.
    """

    reason: str
    path: str = ""


@dataclass(frozen=True, slots=True)
class Crashed:
    """The store is down; the op made ``disk_actions`` before the crash."""

    kind: CrashKind
    disk_actions: int
    action: str


@dataclass(frozen=True, slots=True)
class Damaged:
    """Bytes of one file changed while the store was down.

    ``start`` and ``end`` bound the bytes that differ now; a file cut or removed
    differs up to its old end. Equal when the damage changed nothing.
    """

    path: str
    start: int
    end: int


RESTORED = Damaged("", 0, 0)
"""Nothing is damaged any more that a copy could be put back for."""


class HalfMade(NamedTuple):
    """Files whose creation is not durable, by path.

    Attributes:
        names: files whose directory entry a power loss may remove, while it keeps
            entries made later.
        rooms: files in newly allocated space that was never synced, so that a power
            loss may leave another file's old bytes there.
    """

    names: tuple[str, ...] = ()
    rooms: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Planted:
    """A foreign file of ``size`` bytes lies at ``path``; -1: a directory."""

    path: str
    size: int


@dataclass(frozen=True, slots=True)
class Done:
    """The request was carried out."""


@dataclass(frozen=True, slots=True)
class Deleted:
    """A topic or queue was deleted; ``dead_below``: its records below are dead.

    -1 if it did not exist.
    """

    dead_below: int


@dataclass(frozen=True, slots=True)
class TopicsCleaned:
    """How many topics were deleted, and each with where its records die, sorted."""

    count: int
    rows: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class DiskFilled:
    """How many bytes of the disk are in use after it was filled."""

    used: int
    total: int


@dataclass(frozen=True, slots=True)
class Armed:
    """A disk fault was set; ``failed`` calls were hit by it."""

    failed: int


@dataclass(frozen=True, slots=True)
class Interrupted:
    """The observations of an op and of an event that happened during it."""

    observation: Observation
    event: Observation


@dataclass(frozen=True, slots=True)
class InTurn:
    """The observations of one caller's ops, in their order."""

    observations: tuple[Observation, ...]


@dataclass(frozen=True, slots=True)
class Interleaved:
    """The observations of ops that ran at the same time, in the order of the ops.

    Attributes:
        observations: one for each op.
        turns: the ``preemptions`` of a schedule that repeats the run.
        points: the number of switch points.
    """

    observations: tuple[Observation, ...]
    turns: tuple[tuple[int, int], ...]
    points: int


@dataclass(frozen=True, slots=True)
class Failed:
    """The op raised an exception that is not part of its contract."""

    error: str
    message: str


Observation: TypeAlias = (
    Skipped
    | Put
    | Pulled
    | BrokerPulled
    | PullHeld
    | Looked
    | Searched
    | Queried
    | Committed
    | LogConfirmed
    | OffsetKept
    | OffsetReset
    | LowestOffsets
    | NamesTold
    | NumberTold
    | QueueTaken
    | FilteredPull
    | NotFiltered
    | Ran
    | ClockMoved
    | Stopped
    | EndAwaited
    | Started
    | Refused
    | Crashed
    | Damaged
    | Planted
    | Done
    | Deleted
    | TopicsCleaned
    | DiskFilled
    | Armed
    | Interrupted
    | InTurn
    | Interleaved
    | Failed
)


def status_of(observation: Observation) -> str:
    """One word for tables: the status if there is one, else the kind of observation."""
    match observation:
        case Put(status) | Pulled(status):
            return status
        case BrokerPulled(code):
            return code
        case FilteredPull(Pulled(status)):
            return status
        case Interrupted(inner, event):
            return f"{status_of(inner)}+{status_of(event)}"
        case InTurn(observations):
            return ";".join(map(status_of, observations))
        case Interleaved(observations):
            return "||".join(map(status_of, observations))
        case _:
            return type(observation).__name__


def describe_observation(observation: Observation) -> str:
    """An observation in a few words, for a timeline."""
    match observation:
        case Skipped(reason):
            return f"skipped: {reason}"
        case Put(status, phy_offset, size, queue_offset):
            where = f" [{queue_offset}] @{phy_offset} {size} B" if size >= 0 else ""
            return f"{status}{where}"
        case Pulled() | BrokerPulled() | PullHeld():
            return _describe_pulled(observation)
        case Looked(message):
            return "nothing there" if message is None else f"{len(message)} B"
        case Searched(queue_offset):
            return f"queue_offset {queue_offset}"
        case Queried(messages):
            return f"{len(messages)} messages"
        case LogConfirmed(phy_offset):
            return f"replicas have it up to {phy_offset}"
        case FilteredPull() | NotFiltered():
            return _describe_filtered(observation)
        case (
            Committed() | OffsetKept() | OffsetReset() | LowestOffsets() | QueueTaken()
        ):
            return _describe_progress(observation)
        case NamesTold() | NumberTold():
            return _describe_told(observation)
        case Ran(work):
            return f"work {work}"
        case ClockMoved(now_ms):
            return f"now {now_ms}"
        case Stopped(clean):
            return "stopped clean" if clean else "stopped, abort stays"
        case EndAwaited(clean):
            return f"stopped by another, {'clean' if clean else 'abort stays'}"
        case Started(last_exit_ok, _, damaged):
            around = "".join([f", around [{at}, {end})" for at, end in damaged])
            return f"up, last exit {'ok' if last_exit_ok else 'not ok'}{around}"
        case Refused(reason):
            return f"REFUSED: {reason}"
        case Crashed():
            return _describe_crash(observation)
        case Damaged() | Planted():
            return _describe_change(observation)
        case Done():
            return "done"
        case Deleted() | TopicsCleaned():
            return _describe_deleted(observation)
        case DiskFilled(used, total):
            return f"{used} of {total} B in use"
        case Armed(failed):
            return f"{failed} calls failed"
        case Interrupted(inner, event):
            return f"{describe_observation(inner)} | {describe_observation(event)}"
        case InTurn(observations):
            return "; ".join(map(describe_observation, observations))
        case Interleaved(observations, turns, points):
            told = " || ".join(map(describe_observation, observations))
            return f"{told} (turns {list(turns)} at {points} points)"
        case Failed(error, message):
            return f"RAISED {error}: {message}"


def _describe_change(changed: Damaged | Planted) -> str:
    match changed:
        case Damaged(path=""):
            return "put back"
        case Damaged(path, start, end):
            return f"{path}: bytes [{start}, {end}) changed"
        case Planted(path, size):
            return f"{path}: {f'{size} B' if size >= 0 else 'a directory'}, foreign"


def _describe_deleted(deleted: Deleted | TopicsCleaned) -> str:
    match deleted:
        case Deleted(dead_below):
            return f"dead below {dead_below}" if dead_below >= 0 else "there was none"
        case TopicsCleaned(count, rows):
            named = ", ".join([topic for topic, _ in rows])
            return f"{count} deleted{f': {named}' if named else ''}"


def _describe_told(told: NamesTold | NumberTold) -> str:
    match told:
        case NamesTold(names):
            return ", ".join(names) or "none"
        case NumberTold(number):
            return f"{number}"


def _describe_pulled(pulled: Pulled | BrokerPulled | PullHeld) -> str:
    if isinstance(pulled, PullHeld):
        return "held"
    word = pulled.status if isinstance(pulled, Pulled) else pulled.code
    found, goes_on = len(pulled.messages), pulled.next_begin_offset
    return f"{word}, {found} messages, next {goes_on}"


def _describe_filtered(answer: FilteredPull | NotFiltered) -> str:
    if isinstance(answer, NotFiltered):
        return "the broker has no such filter"
    return f"{describe_observation(answer.pulled)}, by {answer.expression}"


ProgressSeen: TypeAlias = (
    Committed | OffsetKept | OffsetReset | LowestOffsets | QueueTaken
)


def _describe_progress(seen: ProgressSeen) -> str:
    match seen:
        case Committed(offset, accepted):
            return f"committed {offset}" if accepted else f"commit of {offset} refused"
        case OffsetKept(offset):
            return f"offset {offset}" if offset >= 0 else "no offset"
        case OffsetReset(offset):
            return f"reset to {offset}" if offset >= 0 else "refused"
        case LowestOffsets(rows):
            shown = ", ".join(f"{offset} on {queue_id}" for queue_id, offset in rows)
            return shown or "none"
        case QueueTaken(offset):
            return f"begins at {offset}"


def _describe_crash(crashed: Crashed) -> str:
    """When the store went down, if disk actions are counted, and on what."""
    if not crashed.action:
        return f"down by {crashed.kind}"
    at = f"action {crashed.disk_actions} ({crashed.action})"
    return f"down by {crashed.kind} at {at}"
