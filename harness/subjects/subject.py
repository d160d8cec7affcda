"""Subject: the system under test as a port, in tiers.

The core is what any store can give: ``Subject`` starts, stops, is killed, takes
messages, gives them back, and shows its files as bytes. Whatever else a store can do
is a capability, with a small protocol of its own in ``capabilities`` beside this
module. docs/bring-your-own.md says which laws each tier lets be asked.

Whoever drives a subject asks once what it can do, when an episode begins, and drives it
``whole``. Our engine is whole by itself. For another subject stands a ``_Completed``
one, which hands on what the subject has, and says of the rest that nothing is known.

A method that runs the store returns an observation, and never raises for what a store
may do by its contract. What it raises is judged by RUN-1. ``StoreCrashed`` passes
through such a method when a crash ends it halfway.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Final, Protocol, cast

from crashmq.harness.disk.controls import Healed
from crashmq.harness.disk.crash import crash_class
from crashmq.harness.subjects import capabilities
from crashmq.models.history import CheckpointWritten, Happening, TakenAway
from crashmq.models.messages import MessageToPut
from crashmq.models.observations import (
    DOWN,
    Damaged,
    HalfMade,
    Observation,
    Positions,
    Statistics,
)
from crashmq.models.ops import EVERYTHING, Capability, Crash, Op, needs
from crashmq.models.program import Program


class Subject(Protocol):
    """The core of a system under test: start, stop, kill, put, pull, files.

    It promises what the laws ask: what was acknowledged can be read from then on, in
    the order of its queue, and is there after a stop and after a kill.
    """

    name: str

    @property
    def is_up(self) -> bool:
        """Whether the store is started."""

    def start(self) -> Observation:
        """Start on the files that are there; returns a ``Started`` or ``Refused``.

        A store that cannot serve what was acknowledged refuses, with the reason, and
        changes no file. ``Skipped`` if it is up.
        """

    def shutdown(self) -> Observation:
        """Shut the store down; returns a ``Stopped``, or ``Skipped`` if it is down.

        ``clean`` says that all is safe: the next start has nothing to repair.
        """

    def kill(self) -> None:
        """End the store's process at once; it is down after, and its files stay."""

    def put(self, message: MessageToPut) -> Observation:
        """Store one message; returns a ``Put``, ``Skipped`` if the store is down.

        ``PUT_OK`` acknowledges it. ``queue_offset`` counts the messages of its queue,
        from 0. ``phy_offset`` and ``size`` are where its record lies among all, in
        bytes or in any unit that rises: no record begins below the end of the one
        before. All three are -1 if the message was refused.
        """

    def pull(
        self,
        topic: str,
        queue_id: int,
        queue_offset: int,
        max_msg_nums: int,
        tags: str,
    ) -> Observation:
        """Read messages of one queue from an offset on; returns a ``Pulled``.

        Each as the bytes of its body; of a store that ``StoresAsRocketMQ`` as those of
        its record. ``tags`` is ``*``, or the tags of which a message must have one,
        joined by ``||``. ``min_offset`` and ``max_offset`` are the queue's bounds: its
        first message, and the one after its last. ``next_begin_offset`` is where to go
        on: what matches before it was returned. The status says what was met, by
        RocketMQ's names:

        - ``FOUND``: at least one message, at most ``max_msg_nums`` or 32, nor more
          than one if that exceeds 256 KiB.
        - ``NO_MATCHED_MESSAGE``: none up to where to go on has the tags.
        - ``OFFSET_TOO_SMALL``: below ``min_offset``, where to go on.
        - ``OFFSET_OVERFLOW_ONE``: at ``max_offset``, where to go on.
        - ``OFFSET_OVERFLOW_BADLY``: above ``max_offset``, where to go on.
        - ``NO_MATCHED_LOGIC_QUEUE``: the queue never had a message; go on at 0.
        """

    def files(self) -> Mapping[str, bytes]:
        """The store's files as a reader sees them now, by path below its root."""

    def close(self) -> None:
        """Release everything. Idempotent."""


class WholeSubject(
    Subject,
    capabilities.TurnsServices,
    capabilities.HasClock,
    capabilities.StepsIn,
    capabilities.RunsSeveral,
    capabilities.LosesPower,
    capabilities.MeetsFaults,
    capabilities.TakesDamage,
    capabilities.FindsStores,
    capabilities.HasRoom,
    capabilities.ChangesConfig,
    capabilities.PutsBatches,
    capabilities.Searches,
    capabilities.Deletes,
    capabilities.TracksProgress,
    capabilities.RunsConsumers,
    capabilities.HoldsPulls,
    capabilities.Filters,
    capabilities.IsReplicated,
    capabilities.DeliversDelayed,
    capabilities.TellsPositions,
    capabilities.TellsCounts,
    capabilities.TellsWhatItHolds,
    Protocol,
):
    """A subject with every method; those it lacks answer that nothing is known."""


class SnapshotSubject(WholeSubject, capabilities.TakesSnapshots, Protocol):
    """A subject on which every crash can be tried, by copies of its disk."""


PROTOCOLS: Final[Mapping[Capability, type]] = {
    Capability.STORES_AS_ROCKETMQ: capabilities.StoresAsRocketMQ,
    Capability.TURNS_SERVICES: capabilities.TurnsServices,
    Capability.HAS_CLOCK: capabilities.HasClock,
    Capability.STEPS_IN: capabilities.StepsIn,
    Capability.RUNS_SEVERAL: capabilities.RunsSeveral,
    Capability.LOSES_POWER: capabilities.LosesPower,
    Capability.MEETS_FAULTS: capabilities.MeetsFaults,
    Capability.TAKES_DAMAGE: capabilities.TakesDamage,
    Capability.FINDS_STORES: capabilities.FindsStores,
    Capability.HAS_ROOM: capabilities.HasRoom,
    Capability.CHANGES_CONFIG: capabilities.ChangesConfig,
    Capability.PUTS_BATCHES: capabilities.PutsBatches,
    Capability.SEARCHES: capabilities.Searches,
    Capability.DELETES: capabilities.Deletes,
    Capability.TRACKS_PROGRESS: capabilities.TracksProgress,
    Capability.RUNS_CONSUMERS: capabilities.RunsConsumers,
    Capability.HOLDS_PULLS: capabilities.HoldsPulls,
    Capability.FILTERS: capabilities.Filters,
    Capability.IS_REPLICATED: capabilities.IsReplicated,
    Capability.DELIVERS_DELAYED: capabilities.DeliversDelayed,
    Capability.TELLS_POSITIONS: capabilities.TellsPositions,
    Capability.TELLS_COUNTS: capabilities.TellsCounts,
    Capability.TELLS_WHAT_IT_HOLDS: capabilities.TellsWhatItHolds,
    Capability.TAKES_SNAPSHOTS: capabilities.TakesSnapshots,
}
"""The protocol of each capability; who has all of its members has it."""


def _members_of(protocol: type) -> tuple[str, ...]:
    """The names that a class must have to follow a protocol."""
    names = {**vars(protocol), **vars(protocol).get("__annotations__", {})}
    return tuple([name for name in names if not name.startswith("_")])


METHODS: Final = {one: _members_of(protocol) for one, protocol in PROTOCOLS.items()}
"""The members of each of them."""

CORE_METHODS: Final = _members_of(Subject)


class SubjectLacks(ValueError):
    """A subject lacks a capability; the message names it and the op that needs it."""


def capabilities_of(subject: Subject) -> frozenset[Capability]:
    """What a subject can do beyond the core: it has all members of that protocol."""
    if isinstance(subject, _Completed):
        return subject.capabilities
    return _whose(type(subject), frozenset(getattr(subject, "__dict__", ())))


@cache
def _whose(kind: type, own: frozenset[str]) -> frozenset[Capability]:
    """The capabilities whose members a class has, or its instances by themselves."""
    return frozenset(
        [
            capability
            for capability, names in METHODS.items()
            if all(hasattr(kind, name) or name in own for name in names)
        ]
    )


def whole(subject: Subject) -> WholeSubject:
    """The subject, with an answer to whatever it may be asked."""
    if isinstance(subject, _Completed) or capabilities_of(subject) == EVERYTHING:
        return cast(WholeSubject, subject)
    return cast(WholeSubject, _Completed(subject))


def with_snapshots(subject: Subject) -> SnapshotSubject:
    """The subject, if every crash of it can be tried.

    Raises:
        SubjectLacks: its disk cannot be copied during an op.
    """
    missing = EVERYTHING - capabilities_of(subject)
    if missing:
        raise SubjectLacks(
            f"{subject.name} cannot be explored: {lacking(missing)}. Explore a subject "
            f"that has all the protocols of harness.subjects.subject."
        )
    return cast(SnapshotSubject, subject)


def why_skipped(subject: Subject, op: Op) -> str:
    """Why a subject skips an op that needs more than it has."""
    missing = needs(op) - capabilities_of(subject)
    return f"{subject.name} cannot do this: {lacking(missing)}"


def refuse_what_it_lacks(program: Program, subject: Subject) -> None:
    """Refuse a program with an op that a subject cannot do.

    Raises:
        SubjectLacks: the first such op, and what it needs.
    """
    can = capabilities_of(subject)
    for number, op in enumerate(program.ops):
        missing = needs(op) - can
        if missing:
            raise SubjectLacks(
                f"op {number} of the program, {type(op).__name__}, needs more than "
                f"{subject.name} can do: {lacking(missing)}. Give it these methods, or "
                f"draw programs by program_for(..., can=capabilities_of(subject))."
            )


def lacking(missing: frozenset[Capability]) -> str:
    """What a subject lacks: the protocols, and what they say."""
    lacks = [
        f"{protocol.__name__} ({capability.value})"
        for capability, protocol in PROTOCOLS.items()
        if capability in missing
    ]
    return f"it lacks {' and '.join(lacks)}"


class _Completed:
    """A subject that lacks something, with answers that say nothing is known."""

    epoch_ms = 0

    def __init__(self, subject: Subject) -> None:
        self.capabilities: Final = capabilities_of(subject)
        self.name = subject.name
        self._subject = subject
        for names in (CORE_METHODS, *[METHODS[one] for one in self.capabilities]):
            for name in names:
                if name != "is_up":  # it changes
                    setattr(self, name, getattr(subject, name))

    @property
    def is_up(self) -> bool:
        """Whether the store is started."""
        return self._subject.is_up

    def now_ms(self) -> int:
        """No time is known."""
        return 0

    def begins_with(self) -> str:
        """Its directory is empty at first."""
        return ""

    def disk_usage(self) -> tuple[int, int] | tuple[int, int, int]:
        """No limit is known."""
        return 0, 0

    def mtime_ms(self, path: str) -> int:
        """No time is known."""
        del path
        return 0

    def disk_actions(self) -> int:
        """None is counted."""
        return 0

    def last_action(self) -> str:
        """Empty: no action is known."""
        return ""

    def on_action(self, at_action: int, cut: int, event: Callable[[], None]) -> None:
        """No action is counted: the event happens after the op."""
        del at_action, cut, event

    def end_watch(self, event: Callable[[], None] | None = None) -> bool:
        """The event has not happened yet."""
        del event
        return False

    def crash(self, crash: Crash) -> BaseException:
        """Kill the store; a power loss is asked only of those that can lose power."""
        self._subject.kill()
        return crash_class(crash.kind)()

    def run(self, body: Callable[[], Observation]) -> Observation:
        """Run one call to the store; nothing is interleaved with it."""
        return body()

    def heal(self) -> Healed:
        """No fault was set."""
        return Healed(0)

    def take_faults_met(self) -> tuple[()]:
        """No fault was set."""
        return ()

    def unsynced_from(self) -> Mapping[str, int]:
        """Empty: it is not known what a power loss could change."""
        return {}

    def half_made(self) -> HalfMade:
        """Empty: no half-made file is known."""
        return HalfMade()

    def unreadable(self) -> tuple[Damaged, ...]:
        """Empty: none is known."""
        return ()

    def tell_removals(self, note: Callable[[TakenAway], object]) -> None:
        """Nothing will be reported: what is durable at a removal is unknown."""
        del note

    def tell_marks(self, note: Callable[[CheckpointWritten], object]) -> None:
        """Nothing will be reported: what is durable at such a write is unknown."""
        del note

    def positions(self) -> Positions:
        """No position is known, as of a store that is down."""
        return DOWN

    def filters(self) -> None:
        """None: no filters are kept."""

    def offsets(self) -> None:
        """None are kept."""

    def tell_consumers_to(self, note: Callable[[Happening], None]) -> None:
        """Nothing will be told: it has no consumers."""
        del note

    def tell_deliveries(self, put: capabilities.PutOfBroker) -> None:
        """Nothing is delivered."""

    def tell_rounds(self, turned: capabilities.RoundOfHost) -> None:
        """No round will be reported: none runs while activities wait."""
        del turned

    def delays(self) -> None:
        """None are kept."""

    def statistics(self) -> Statistics:
        """None are known."""
        return Statistics()

    def left_by_start(self) -> tuple[str, ...]:
        """Empty: none is known."""
        return ()

    def late_actions(self) -> int:
        """Returns 0: no action is known to be late."""
        return 0
