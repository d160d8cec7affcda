"""The capabilities of a subject: what a store can do beyond the core, each a protocol.

A subject has a capability if it has all of its methods. ``models.ops.Capability`` names
each; ops and laws declare by these names which they need.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Protocol, Self, TypeAlias

from crashmq.harness.disk.controls import Healed
from crashmq.harness.disk.sim_disk import DiskSnapshot, SimDisk
from crashmq.harness.scheduling.turns import Turns
from crashmq.models.history import CheckpointWritten, Happening, TakenAway
from crashmq.models.messages import MessageToPut
from crashmq.models.observations import (
    BrokerPulled,
    Damaged,
    HalfMade,
    Observation,
    Positions,
    Statistics,
)
from crashmq.models.ops import (
    AskBroker,
    Boundary,
    ChangeConfig,
    ChangeTopic,
    ConfigureGroup,
    Consume,
    ConsumerEnd,
    ConsumerTask,
    Crash,
    Damage,
    DiskFault,
    ExpressionType,
    FaultCall,
    FromWhere,
    PlantFile,
    PullThroughBroker,
    ResetTarget,
    Resubscribe,
    ServiceName,
    StartConsumer,
)
from crashmq.models.program import Setup

RoundOfHost: TypeAlias = Callable[[str, Callable[[], int]], int]
"""Runs a round of the service of that name, and returns its work."""

PutOfBroker: TypeAlias = Callable[[MessageToPut, Callable[[], Observation]], None]
"""Is told the message that a broker puts, and does the put."""


class StoresAsRocketMQ(Protocol):
    """Its files, records and reasons to refuse a put are RocketMQ's."""

    def layout(self) -> Literal["rocketmq"]:
        """The layout of its files."""


class TurnsServices(Protocol):
    """Its services run only when they are asked to."""

    def run_service(self, service: ServiceName, times: int) -> Observation:
        """Run ``times`` rounds of a service; returns a ``Ran``."""


class HasClock(Protocol):
    """Its time moves only when it is asked to; in milliseconds since the epoch."""

    epoch_ms: int

    def now_ms(self) -> int:
        """The subject's wall clock."""

    def advance_clock(self, ms: int) -> Observation:
        """Move the clock by ``ms``; returns a ``ClockMoved``."""


class StepsIn(Protocol):
    """Something can happen during an op, at its n-th disk action."""

    def on_action(self, at_action: int, cut: int, event: Callable[[], None]) -> None:
        """Let ``event`` happen at the n-th disk action from now, once."""

    def end_watch(self, event: Callable[[], None] | None = None) -> bool:
        """Remove an event that has not happened; return whether it had happened.

        None: the newest, which is the only one of a subject that runs one op at a time.
        """

    def crash(self, crash: Crash) -> BaseException:
        """End this life of the store as ``crash`` says; the store is down after.

        Returns the ``StoreCrashed`` that a call in progress must raise to unwind.
        """

    def disk_actions(self) -> int:
        """Disk actions since the subject was made."""

    def last_action(self) -> str:
        """The newest disk action as ``kind:path``, kind as ``write`` or ``sync``."""


class RunsSeveral(Protocol):
    """Several ops can be in the store at the same time."""

    def run(self, body: Callable[[], Observation]) -> Observation:
        """Run one call, and everything interleaved with it, to the end."""

    def interleave(self, body: Callable[[], Observation]) -> Callable[[], Observation]:
        """Begin a second activity now; the callable waits for its observation."""

    def together(
        self, bodies: Sequence[tuple[str, Callable[[], Observation]]], turns: Turns
    ) -> list[Observation]:
        """Run named bodies at the same time, to their ends, by ``turns``."""

    def stall(self, ms: int) -> Observation:
        """Let the op in progress stall while others run; returns a ``ClockMoved``."""

    def tell_rounds(self, turned: RoundOfHost) -> None:
        """From now on let ``turned`` run each round that the host starts by itself.

        The host does so when all activities wait.
        """


class LosesPower(Protocol):
    """What was not synced can be lost, and the subject knows what that is.

    With this, ``crash`` accepts power losses; with ``StepsIn`` alone only kills.
    """

    def unsynced_from(self) -> Mapping[str, int]:
        """The files that a power loss could change, each with its first byte at risk.

        -1 stands for a removed file that could come back.
        """

    def half_made(self) -> HalfMade:
        """The files whose creation is not durable."""

    def unreadable(self) -> tuple[Damaged, ...]:
        """The sectors of files that cannot be read now."""

    def tell_removals(self, note: Callable[[TakenAway], object]) -> None:
        """From now on call ``note`` right before a file is removed or renamed."""

    def tell_marks(self, note: Callable[[CheckpointWritten], object]) -> None:
        """From the next start on call ``note`` right before the checkpoint changes."""


class MeetsFaults(Protocol):
    """Calls to its disk can be made to fail."""

    def fail(self, fault: DiskFault) -> None:
        """Make calls to the disk fail until ``heal``."""

    def take_faults_met(self) -> Sequence[tuple[FaultCall, str]] | None:
        """The calls that met a fault since the last call of this, with their paths.

        None if unknown: then every set fault counts as met, by any file.
        """

    def heal(self) -> Healed:
        """Disarm all disk faults.

        Returns how many calls they failed, and which synced bytes the medium lacks.
        """


class TakesDamage(Protocol):
    """Its files can be changed while it is down."""

    def damage(self, damage: Damage) -> Observation:
        """Change a file while down; returns a ``Damaged``, or a ``Skipped``."""

    def plant(self, op: PlantFile) -> Observation:
        """Add a foreign file while down; returns a ``Planted``, else ``Skipped``."""


class FindsStores(Protocol):
    """It begins with a directory that RocketMQ wrote, if its setup names one."""

    def begins_with(self) -> str:
        """Which of ``scenarios.found`` its first start finds; "": an empty one."""


class HasRoom(Protocol):
    """A store on a disk of limited size, which foreign files can fill."""

    def fill_disk(self, percent: int) -> Observation:
        """Let a foreign file fill the disk; returns a ``DiskFilled``."""

    def disk_usage(self) -> tuple[int, int] | tuple[int, int, int]:
        """Bytes in use, foreign files included, and the capacity; 0: no limit.

        A third number, if known, counts the calls that the full disk has refused.
        """


class ChangesConfig(Protocol):
    """Its configuration can change while it is down."""

    def change_config(self, change: ChangeConfig) -> Observation:
        """Use another value of an option from the next start on; ``Done``."""


class PutsBatches(Protocol):
    """It takes several messages by one put."""

    def put_batch(self, messages: Sequence[MessageToPut]) -> Observation:
        """Store several messages of one queue, all or none; returns a ``Put``."""


class Searches(Protocol):
    """It finds messages by their place, their time or a key."""

    def look(self, phy_offset: int) -> Observation:
        """Read the record at a phy_offset; returns a ``Looked``."""

    def search(
        self, topic: str, queue_id: int, at_ms: int, boundary: Boundary
    ) -> Observation:
        """Search a queue by time, in ms since ``epoch_ms``; returns a ``Searched``."""

    def query(
        self, topic: str, key: str, max_num: int, begin_ms: int, end_ms: int
    ) -> Observation:
        """Read messages with a key; returns a ``Queried``.

        ``begin_ms`` and ``end_ms`` are milliseconds since ``epoch_ms``.
        """


class Deletes(Protocol):
    """It deletes topics, and expired messages when it is asked to."""

    def delete_manually(self) -> Observation:
        """Ask that expired files be deleted in the next rounds; returns ``Done``."""

    def delete_topic(self, topic: str, queue_id: int) -> Observation:
        """Delete a topic, or one queue if ``queue_id`` >= 0; returns a ``Deleted``."""

    def clean_topics(self, retained: Sequence[str]) -> Observation:
        """Delete all topics but ``retained``, its own and light queues.

        Returns ``TopicsCleaned``, or ``Skipped`` if a broker decides what is retained.
        """

    def mtime_ms(self, path: str) -> int:
        """The mtime of a file, which says if it has expired."""


class TracksProgress(Protocol):
    """It stores the offsets of groups of consumers, also over a crash."""

    def commit_offset(
        self, group: str, topic: str, queue_id: int, offset: int
    ) -> Observation:
        """Let a consumer's offset store set its offset and send it: ``Committed``."""

    def query_offset(self, group: str, topic: str, queue_id: int) -> Observation:
        """The offset of a group on a queue: ``OffsetKept``."""

    def reset_offset(
        self, group: str, topic: str, queue_id: int, offset: int, to: ResetTarget
    ) -> Observation:
        """Reset a group's offset; its consumers are told later: ``OffsetReset``."""

    def take_queue(
        self, group: str, topic: str, queue_id: int, where: FromWhere, at_ms: int
    ) -> Observation:
        """Let a consumer begin with a queue assigned to it: ``QueueTaken``."""

    def delete_group(self, group: str) -> Observation:
        """Delete a group with its offsets: ``Done``."""

    def configure_group(self, config: ConfigureGroup) -> Observation:
        """Set a group's configuration, new or known: ``Done``."""

    def send_message(
        self,
        message: MessageToPut,
        max_reconsume_times: int,
        asks_queues: int,
        put: PutOfBroker,
    ) -> Observation:
        """Send a message as a producer does, through the broker: ``Put``.

        A new topic is to have ``asks_queues`` queues.

        ``put`` receives the message that the broker passes to the store, and a function
        that puts it, and must call that. ``Skipped`` if the broker refuses the message.
        """

    def clone_offset(self, group: str, target: str, topic: str) -> Observation:
        """Copy a group's offsets on a topic to the group ``target``: ``Done``."""

    def query_lowest_offsets(self, group: str, topic: str) -> Observation:
        """The lowest offset on each queue of all groups but one: ``LowestOffsets``."""

    def clean_offsets(self, topic: str) -> Observation:
        """Remove the offsets of all groups on a topic: ``Done``."""

    def change_topic(self, change: ChangeTopic) -> Observation:
        """Create or change a topic: ``Done``, or ``Skipped`` if that is not allowed."""

    def ask_broker(self, ask: AskBroker) -> Observation:
        """Answer an administrator's question: ``NamesTold`` or ``NumberTold``.

        Times are milliseconds since its ``epoch_ms``.
        """

    def offsets(self) -> tuple[tuple[tuple[str, str, int], int], ...] | None:
        """The offset of every group, topic and queue_id, sorted.

        None if this store keeps none.
        """


class RunsConsumers(Protocol):
    """Its consumers are started, run and ended one by one.

    What they do is passed as events to the function given to ``tell_consumers_to``.
    They survive a crash of the store, which is their broker.
    """

    def tell_consumers_to(self, note: Callable[[Happening], None]) -> None:
        """From now on call ``note`` with each event of a consumer."""

    def start_consumer(self, op: StartConsumer) -> Observation:
        """Start a client's consumer: ``Done``, or ``Skipped`` if it has one."""

    def resubscribe(self, op: Resubscribe) -> Observation:
        """Change a consumer's subscription: ``Done``."""

    def end_consumer(self, client: str, how: ConsumerEnd) -> Observation:
        """End a client's consumer: ``Done``."""

    def turn_consumer(
        self, client: str, task: ConsumerTask, times: int, lost: int
    ) -> Observation:
        """Do some rounds of one of its tasks: ``Ran``.

        The ``lost``-th question to its broker meanwhile gets no answer; 0: all do.
        """

    def consume(self, op: Consume) -> Observation:
        """Let it consume waiting messages: ``Ran``, with their number."""

    def tell_reset(
        self, client: str, topic: str, queue_id: int, offset: int
    ) -> Observation:
        """Let it be told by the broker to begin a queue elsewhere: ``Done``.

        ``Skipped`` if it broadcasts or does not have the queue.
        """


class HoldsPulls(Protocol):
    """It answers pulls of a group, at once or when messages have arrived."""

    def pull_through_broker(
        self,
        pull: PullThroughBroker,
        begins: Callable[[int], None],
        answer: Callable[[BrokerPulled], None],
    ) -> Observation:
        """Pull as a consumer of a group.

        ``begins`` is called first, with the group's offset that the pull commits, or
        -1; ``answer`` is called with the answer, during this call or a later one.
        Returns the answer, or ``PullHeld`` if there is none yet.
        """


class Filters(Protocol):
    """It filters the messages of a topic by the subscriptions of groups."""

    def subscribe(
        self,
        group: str,
        topic: str,
        expression: str,
        expression_type: ExpressionType,
        version: int,
    ) -> Observation:
        """Register what a group's client subscribes: ``Done``, or ``Skipped``."""

    def unsubscribe(self, group: str) -> Observation:
        """Record that a group's client is gone: ``Done``."""

    def pull_filtered(
        self,
        group: str,
        topic: str,
        queue_id: int,
        queue_offset: int,
        max_msg_nums: int,
    ) -> Observation:
        """Read one queue with the filter of a group's subscription: ``FilteredPull``.

        ``NotFiltered`` if the broker has no filter for what the client subscribes.
        """

    def filters(self) -> tuple[tuple[tuple[str, str], tuple[str, int]], ...] | None:
        """By group and topic the expression and its version, sorted.

        None if this store keeps none.
        """


class IsReplicated(Protocol):
    """It accepts confirmations by replicas of how far they have its log."""

    def confirm_log(self, behind: int) -> Observation:
        """Confirm that replicas have all but this many bytes: ``LogConfirmed``."""


class DeliversDelayed(Protocol):
    """It delays messages, and reports each that it delivers."""

    def tell_deliveries(self, put: PutOfBroker) -> None:
        """From now on call ``put`` for each delayed message that the broker delivers.

        ``put`` receives the message and a function that puts it, and must call that.
        """

    def delays(self) -> tuple[tuple[int, int], ...] | None:
        """For each level, the queue_offset of the next message to deliver, sorted.

        None if this store delivers no delayed messages.
        """


class TellsPositions(Protocol):
    """It reports its log's positions."""

    def positions(self) -> Positions:
        """The log's offsets; each is -1 while the store is down."""


class TellsCounts(Protocol):
    """It reports how many puts it has counted."""

    def statistics(self) -> Statistics:
        """The store's counts since it started; empty while it is down."""


class TellsWhatItHolds(Protocol):
    """It reports which files and locks it holds, also after a stop."""

    def open_beside(self) -> Observation:
        """Load the directory again while the store is up; ``Refused`` is right."""

    def left_by_start(self) -> tuple[str, ...]:
        """Files and locks that a failed or refused start still held."""

    def late_actions(self) -> int:
        """Disk actions after the last stop had released its lock."""


class TakesSnapshots(Protocol):
    """Its simulated disk can be copied during an op, and a store begun on the copy."""

    setup: Setup
    disk: SimDisk

    @property
    def clock(self) -> tuple[int, int]:
        """The wall clock, and the monotonic clock of the time-outs, in milliseconds."""

    @property
    def client_disks(self) -> Mapping[str, DiskSnapshot]:
        """The disks of the machines that consumers ran on, by client."""

    def down_on(
        self,
        disk: SimDisk,
        clock: tuple[int, int],
        client_disks: Mapping[str, DiskSnapshot],
        configured: Setup,
    ) -> Self:
        """Another store, ``configured`` so, not started, on ``disk`` at ``clock``.

        No consumer runs; each that begins finds the disk of its client's machine.
        """

    def numbers(self) -> tuple[tuple[tuple[str, int], int], ...]:
        """The next queue_offset of each known queue."""
