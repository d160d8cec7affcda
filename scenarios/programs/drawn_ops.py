"""Draws single ops of a space, each choice by a ``Chance``.

Phrases decide what follows what (``workload`` lists them).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from crashmq.models.files.rewording import CHANGES
from crashmq.models.ops import (
    BOUNDARIES,
    AdvanceClock,
    Crash,
    Damage,
    DeleteManually,
    DiskFault,
    LookMessage,
    Op,
    PlantFile,
    PullMessage,
    PutMessage,
    QueryMessage,
    RunService,
    Schedule,
    SearchOffset,
    Session,
    Shutdown,
    SurvivorKind,
    Survivors,
    Together,
)
from crashmq.models.program import Setup
from crashmq.scenarios.programs.chance import Chance
from crashmq.scenarios.programs.space import (
    BLANK_SIZE_MIN,
    CUTS,
    OFF_BY,
    PROPERTY_ENDS,
    WRONG,
    Address,
    Label,
    Size,
    Space,
    TogetherKind,
    often,
    put_batch,
    put_message,
    record_overhead,
    schedule_of,
)
from crashmq.scenarios.programs.whereabouts import Whereabouts

HURRIED = 3
"""One batch of so many does not wait for its flush: its own property says so, which
comes after those of each message, whatever these are."""

BEYOND_THE_END = (0, 1, 8, 9, -1, 300)
"""Bytes of a record beyond the last place that its log file has for one."""

STOCK = (6, 24)
"""Fewest and most messages that a queue is stocked with at once."""

LABELLED = 4
"""One of so many stocks has messages with a label of the space."""

STOCKED_SIZE_MAX = 300
"""The bytes of a record above which such a message has no label after all."""

PLACED = 4
"""Of so many damages all but one have a place that says something."""

JOINED = 4
"""Among one of so many that begin together a caller does several, one after another."""

LIGHT = ("%LMQ%a", "%LMQ%b")
LISTED_IN = (LIGHT[0], ",".join(LIGHT))
"""What lists a message too, where a setup has light queues."""

READ_LIGHT = 3
"""Where a setup has light queues, one pull of so many reads one of them."""

SESSION_MAX = 3
"""Ops of one caller, at most."""

READS = (PullMessage, LookMessage, SearchOffset, QueryMessage)

LEFT_BY_A_FAILED_SYNC: tuple[SurvivorKind, ...] = often(
    ("none", 3), ("all", 1), ("hashed", 4)
)
"""What of its pages is on the medium all the same; half of the time, some."""

FAILED_SYNC_SEEDS = 1 << 16

LATER = 5
"""One fault of so many waits for more calls of its kind than its space says."""

LATER_CALLS = (1, 6)
"""How many more, at least and at most: one message may need so many writes."""


def fault_by(chance: Chance, faults: tuple[DiskFault, ...]) -> DiskFault:
    """One of the faults; for a failing sync also which of its pages survive.

    Both are decided by one choice, so that later choices do not depend on the fault. A
    fault with survivors of its own keeps them.
    """
    bound = len(faults) * len(LEFT_BY_A_FAILED_SYNC) * FAILED_SYNC_SEEDS
    left, which = divmod(chance.below(bound), len(faults))
    fault = faults[which]
    if fault.call != "sync" or fault.survivors != Survivors():
        return fault
    seed, which = divmod(left, len(LEFT_BY_A_FAILED_SYNC))
    kind = LEFT_BY_A_FAILED_SYNC[which]
    survivors = Survivors(kind, seed) if kind == "hashed" else Survivors(kind)
    return replace(fault, survivors=survivors)


def in_sessions(chance: Chance, ops: tuple[Op, ...]) -> tuple[Op, ...]:
    """Groups ops that begin together into callers; some do two or three in turn.

    At least two callers are left, since one would not overlap anything.
    """
    if len(ops) < SESSION_MAX or not chance.one_in(JOINED):
        return ops
    size = chance.integer(2, min(SESSION_MAX, len(ops) - 1))
    at = chance.below(len(ops) - size + 1)
    return (*ops[:at], Session(ops[at : at + size]), *ops[at + size :])


class OpDrawer:
    """Draws ops of one space for one store; a put counts as appended."""

    def __init__(self, space: Space, setup: Setup, chance: Chance) -> None:
        self.whereabouts = Whereabouts(setup)
        self._space = space
        self._log_file_size = setup.log_file_size
        self._body_size_max = setup.max_message_size
        self._has_light_queues = setup.multi_dispatch
        self._chance = chance

    def put(self, times: int = 1) -> Op:
        """A put, counted as done ``times`` times."""
        return self.put_into(self._chance.pick(self._space.addresses), times)

    def put_into(self, address: Address, times: int = 1) -> Op:
        """A put into this queue, counted as done ``times`` times."""
        size, label = self._chance.pick(self._space.sizes), self._label()
        put = put_message(self._log_file_size, address, size, label)
        overhead = record_overhead(address.topic, label)
        self.whereabouts.put(address, overhead + put.body_size, times)
        if self._has_light_queues:
            self.whereabouts.list_in(label.multi_dispatch, times)
        return put

    def put_at_the_end(self) -> Op:
        """A put that just fits its log file, just does not, or one of any size."""
        pick = self._chance.pick
        address, label = pick(self._space.addresses), self._label()
        beyond = pick(BEYOND_THE_END)
        overhead = record_overhead(address.topic, label)
        body_size = self.whereabouts.left_for_a_record + beyond - overhead
        is_too_large = overhead + body_size + BLANK_SIZE_MIN > self._log_file_size
        if is_too_large or not 0 <= body_size <= self._body_size_max:
            return self.put()
        self.whereabouts.put(address, overhead + body_size, 1)
        return PutMessage(address.topic, address.queue_id, body_size, *label)

    def _label(self) -> Label:
        """One of the space's; half are listed where the setup has light queues."""
        label = self._chance.pick(self._space.labels)
        if not self._has_light_queues or label.multi_dispatch or self._chance.coin():
            return label
        return label._replace(multi_dispatch=self._chance.pick(LISTED_IN))

    def batch(self) -> Op:
        """A batch, its messages sized as those of single puts."""
        space, pick = self._space, self._chance.pick
        sizes = [pick(space.sizes) for _ in range(pick(space.batch_counts))]
        batch = put_batch(
            self._log_file_size,
            pick(space.addresses),
            tuple(sizes),
            pick(space.labels),
            pick(PROPERTY_ENDS),
            pick(CUTS),
        )
        waits = batch.wait_store_ok and not self._chance.one_in(HURRIED)
        batch = replace(batch, wait_store_ok=waits)
        return replace(batch, wrong=pick(WRONG), off_by=pick(OFF_BY))

    def stock(self, address: Address | None = None) -> Op:
        """Put a batch of 6 to 24 small messages into a queue, for groups to read."""
        if address is None:
            address = self._chance.pick(self._space.addresses)
        count, label = self._chance.integer(*STOCK), Label()
        if self._chance.one_in(LABELLED):
            label = self._chance.pick(self._space.labels)
        size = record_overhead(address.topic, label) + 1
        if size > STOCKED_SIZE_MAX or label.multi_dispatch:
            label, size = Label(), record_overhead(address.topic, Label()) + 1
        self.whereabouts.put(address, size, count)
        one = Size(extra=1)
        return put_batch(self._log_file_size, address, (one,) * count, label)

    def pull(self) -> Op:
        """A pull at an offset before the first message, past the last, or between."""
        space, chance = self._space, self._chance
        address = chance.pick(space.addresses)
        if self._has_light_queues and chance.one_in(READ_LIGHT):
            address = Address(chance.pick(LIGHT), 0)
        offset = chance.number(space.pull_offsets)
        if chance.coin():  # counted from the queue's end
            offset = max(0, self.whereabouts.counts[address] - offset)
        count = chance.pick(space.pull_counts)
        tags = space.pull_tags
        # One question the less where there is no choice.
        chosen = chance.pick(tags) if len(tags) > 1 else tags[0]
        return PullMessage(*address, offset, count, chosen)

    def look(self) -> Op:
        """A lookup at some phy_offset of the log."""
        return LookMessage(self._chance.number(self._space.look_offsets))

    def search(self) -> Op:
        """A search of any queue, by any time."""
        space, chance = self._space, self._chance
        address = chance.pick(space.addresses)
        at_ms = chance.number(space.search_times_ms)
        return SearchOffset(*address, at_ms, chance.pick(BOUNDARIES))

    def query(self) -> Op:
        """A query by key, over all times or a range of them."""
        space, pick = self._space, self._chance.pick
        return QueryMessage(
            pick(space.addresses).topic,
            pick(space.query_keys),
            pick(space.query_counts),
            *pick(space.query_times_ms),
        )

    def service(self) -> Op:
        """One service, a few rounds."""
        pick = self._chance.pick
        return RunService(pick(self._space.services), pick(self._space.service_times))

    def round(self) -> RunService:
        """One round of one service."""
        return RunService(self._chance.pick(self._space.services))

    def crash(self) -> Crash:
        """A process kill, or a power loss with what survives it."""
        space, chance = self._space, self._chance
        kind, cut = chance.pick(space.crash_kinds), chance.number(space.cuts)
        if kind == "process_kill":
            return Crash(kind, cut=cut)
        survivor_kind = chance.pick(space.survivor_kinds)
        if survivor_kind in ("none", "all"):
            return Crash(kind, Survivors(survivor_kind), cut)
        number = chance.number(space.survivor_numbers)
        return Crash(kind, Survivors(survivor_kind, number), cut)

    def fault(self) -> DiskFault:
        """One of the space's faults; for a failing sync also which pages survive.

        Some come later: any of an op's calls may be the one that fails.
        """
        chance = self._chance
        met = fault_by(chance, self._space.faults)
        if met.call == "evict" or not chance.one_in(LATER):
            return met
        return replace(met, after=met.after + chance.integer(*LATER_CALLS))

    def part(self) -> Op:
        """An op for ops that begin at the same time."""
        return self.part_of(self._chance.pick(self._space.together))

    def part_of(self, kind: TogetherKind) -> Op:
        """An op of this kind for ops that begin at the same time."""
        match kind:
            case "put":
                return self.put()
            case "batch":
                return self.batch()
            case "pull":
                return self.pull()
            case "look":
                return self.look()
            case "search":
                return self.search()
            case "query":
                return self.query()
            case "service":
                return self.service()
            case "wait":
                return AdvanceClock(self._chance.number(self._space.stalls_ms))
            case "delete":
                return DeleteManually()
            case "shutdown":
                return Shutdown()

    def together(self, ops: Sequence[Op]) -> Together:
        """Ops that begin at the same time; some callers do several of them in turn."""
        callers = in_sessions(self._chance, tuple(ops))
        return Together(callers, self.schedule(len(callers)))

    def longer(self, op: Op) -> Op:
        """The op as the first one of a caller that then reads again, or does others.

        Reading the same twice shows whether a later answer is older than an earlier
        one.
        """
        chance = self._chance
        if isinstance(op, READS) and chance.coin():
            return Session((op,) * chance.integer(2, SESSION_MAX))
        more = range(chance.integer(1, SESSION_MAX - 1))
        return Session((op, *[self.part() for _ in more]))

    def schedule(self, count: int) -> Schedule:
        """A schedule for ``count`` activities."""
        template = self._chance.pick(self._space.schedules)
        return schedule_of(template, count, self._chance.word())

    def damage(self) -> Damage | PlantFile:
        """Damage of a file, its removal, or a planted foreign file."""
        space, chance = self._space, self._chance
        if space.plants and chance.coin():
            return chance.pick(space.plants)
        file, kind = chance.pick(space.damage_targets)
        if kind == "delete":
            return Damage(file, kind)
        if kind == "touch":
            return Damage(file, kind, chance.number(space.touch_ages_ms))
        at = chance.number(space.damage_offsets)
        if kind == "truncate":
            return Damage(file, kind, at)
        if kind == "reword":
            return Damage(file, kind, at, chance.below(CHANGES))
        size = chance.pick(space.damage_sizes)
        if not chance.one_in(PLACED):
            at, width = self.whereabouts.place_of(file, at, chance)
            size = width or size
        return Damage(file, kind, at, size)
