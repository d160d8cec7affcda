"""A space as Hypothesis strategies for whole ops.

Draws are few, since each costs more than the step it decides: choices are drawn by
one integer, messages by size and never by content. Within one test case all
strategies agree on one setup (``setups``), so a put can be sized to its log file.
"""

from __future__ import annotations

import operator
from typing import TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from models.ops import (
    BOUNDARIES,
    AdvanceClock,
    Boundary,
    Crash,
    CrashKind,
    Damage,
    DamageKind,
    DeleteManually,
    DeleteTopic,
    DiskFault,
    During,
    Event,
    FillDisk,
    LookMessage,
    Op,
    PlantFile,
    PullMessage,
    PutBatch,
    PutMessage,
    QueryMessage,
    Restart,
    RunService,
    Schedule,
    SearchOffset,
    Shutdown,
    SurvivorKind,
    Survivors,
    Together,
)
from models.program import Setup
from scenarios.catalogue import Scenario
from scenarios.space import (
    LEFT_DRAWS,
    Address,
    InterleavedKind,
    InterruptedKind,
    Kind,
    Label,
    Numbers,
    Size,
    Space,
    TogetherKind,
    leaving,
    put_batch,
    put_message,
    schedule_of,
)
from scenarios.workload import phrase_for

T = TypeVar("T")

RULES_MAX = 9
"""Of a machine; with more of them an example is too short to take each."""


def choices(table: tuple[T, ...]) -> SearchStrategy[T]:
    """One of a space's table, as likely as it is often listed."""
    return st.sampled_from(table)


def numbers(of: Numbers) -> SearchStrategy[int]:
    """Numbers of a space, by one draw; they shrink to the first special one."""
    return st.integers(0, 2 * (of.below - of.least) - 1).map(of.choose)


def setups(scenario: Scenario) -> SearchStrategy[Setup]:
    """The store and disk of this test case, the same wherever it is drawn."""
    # By number: Hypothesis would print the whole table with every strategy.
    drawn = st.integers(0, len(scenario.setups) - 1).map(lambda n: scenario.setups[n])
    return st.shared(drawn, key=f"setup {scenario.name}")


def put_messages(scenario: Scenario) -> SearchStrategy[PutMessage]:
    """Puts, sized to the log files of the test case's setup."""

    def put(setup: Setup, address: Address, size: Size, label: Label) -> PutMessage:
        return put_message(setup.log_file_size, address, size, label)

    space = scenario.space
    return st.builds(
        put,
        setups(scenario),
        choices(space.addresses),
        choices(space.sizes),
        choices(space.labels),
    )


def put_batches(scenario: Scenario) -> SearchStrategy[PutBatch]:
    """Batches, their messages sized as those of single puts."""
    space = scenario.space

    def put(
        setup: Setup, address: Address, count: int, draw: int, label: Label
    ) -> PutBatch:
        # One draw for all sizes: a draw each would cost more than the step.
        sizes = [space.sizes[draw // n % len(space.sizes)] for n in range(1, count + 1)]
        return put_batch(setup.log_file_size, address, tuple(sizes), label)

    return st.builds(
        put,
        setups(scenario),
        choices(space.addresses),
        choices(space.batch_counts),
        st.integers(0, (1 << 32) - 1),
        choices(space.labels),
    )


def pull_phrases(space: Space) -> SearchStrategy[tuple[Op, ...]]:
    """Pulls from before the first entry to beyond the last, reput right before some."""

    def pull_from(served: bool, pull: PullMessage) -> tuple[Op, ...]:
        return (RunService("reput"), pull) if served else (pull,)

    return st.builds(pull_from, choices(space.served_first), pulls(space))


def pulls(space: Space) -> SearchStrategy[PullMessage]:
    """Pulls of any queue, from any offset."""

    def pull(address: Address, queue_offset: int, count: int, tags: str) -> PullMessage:
        return PullMessage(*address, queue_offset, count, tags)

    return st.builds(
        pull,
        choices(space.addresses),
        numbers(space.pull_offsets),
        choices(space.pull_counts),
        choices(space.pull_tags),
    )


def looks(space: Space) -> SearchStrategy[LookMessage]:
    """A look at some place of the log, the first record's before all."""
    return numbers(space.look_offsets).map(LookMessage)


def search_phrases(space: Space) -> SearchStrategy[tuple[Op, ...]]:
    """Searches by time, reput right before some."""

    def search(served: bool, op: SearchOffset) -> tuple[Op, ...]:
        return (RunService("reput"), op) if served else (op,)

    return st.builds(search, choices(space.served_first), searches(space))


def searches(space: Space) -> SearchStrategy[SearchOffset]:
    """Searches of any queue, by any time."""

    def search(address: Address, at_ms: int, boundary: Boundary) -> SearchOffset:
        return SearchOffset(*address, at_ms, boundary)

    return st.builds(
        search,
        choices(space.addresses),
        numbers(space.search_times_ms),
        choices(BOUNDARIES),
    )


def queries(space: Space) -> SearchStrategy[QueryMessage]:
    """Queries by key, of any time and of some."""

    def query(
        address: Address, key: str, count: int, times: tuple[int, int]
    ) -> QueryMessage:
        return QueryMessage(address.topic, key, count, *times)

    return st.builds(
        query,
        choices(space.addresses),
        choices(space.query_keys),
        choices(space.query_counts),
        choices(space.query_times_ms),
    )


def service_runs(space: Space) -> SearchStrategy[RunService]:
    """One service, a few rounds."""
    return st.builds(RunService, choices(space.services), choices(space.service_times))


def clock_moves(space: Space) -> SearchStrategy[AdvanceClock]:
    """Some time passes."""
    return numbers(space.clock_steps_ms).map(AdvanceClock)


def crashes(space: Space) -> SearchStrategy[Crash]:
    """Process kills and power losses with what survives of the unsynced."""

    def crash(
        kind: CrashKind, survivor_kind: SurvivorKind, number: int, cut: int
    ) -> Crash:
        if kind == "process_kill":
            return Crash(kind, cut=cut)
        if survivor_kind in ("none", "all"):
            return Crash(kind, Survivors(survivor_kind), cut)
        return Crash(kind, Survivors(survivor_kind, number), cut)

    return st.builds(
        crash,
        choices(space.crash_kinds),
        choices(space.survivor_kinds or ("none",)),
        numbers(space.survivor_numbers) if space.survivor_kinds else st.just(0),
        numbers(space.cuts),
    )


def puts_under_way(scenario: Scenario) -> SearchStrategy[Op]:
    """A put, or where the scenario has batches one of those."""
    if not scenario.space.batch_counts:
        return put_messages(scenario)
    return put_messages(scenario) | put_batches(scenario)


def interrupted_ops(scenario: Scenario) -> SearchStrategy[tuple[Op, int]]:
    """What may be under way, and at which of its disk actions something steps in."""
    space = scenario.space
    ops: dict[InterruptedKind, SearchStrategy[Op]] = {
        "put": puts_under_way(scenario),
        "service": service_runs(space),
        "shutdown": st.just(Shutdown()),
        "restart": st.just(Restart()),
    }
    of_kind = {
        kind: st.tuples(op, numbers(space.at_actions.of(kind)))
        for kind, op in ops.items()
    }
    return st.sampled_from(space.interrupted).flatmap(of_kind.__getitem__)


def crowded_ops(scenario: Scenario) -> SearchStrategy[tuple[Op, int]]:
    """The same, some with a put or service coming in at their first action."""
    alone = interrupted_ops(scenario)
    if True not in scenario.space.crowded:
        return alone

    def crowd(interrupted: tuple[Op, int], event: Op) -> tuple[Op, int]:
        op, at_action = interrupted
        return During(op, 1, event), at_action

    events: SearchStrategy[Op] = put_messages(scenario) | service_runs(scenario.space)
    return alone | st.builds(crowd, alone, events)


def crashed_ops(scenario: Scenario) -> SearchStrategy[During]:
    """An op cut short by a crash at one of its disk actions."""
    return st.builds(_during, crowded_ops(scenario), crashes(scenario.space))


def crashed_restarts(space: Space) -> SearchStrategy[During]:
    """A restart cut short by a crash: recovery has to be recovered from."""
    return st.builds(
        During, st.just(Restart()), numbers(space.at_actions.restart), crashes(space)
    )


def interleaved_ops(scenario: Scenario) -> SearchStrategy[During]:
    """An op during which a service takes a turn, another caller comes, or time goes."""
    space = scenario.space
    of_kind: dict[InterleavedKind, SearchStrategy[Op]] = {
        "service": service_runs(space),
        "put": put_messages(scenario),
        "pull": pulls(space),
        "shutdown": st.just(Shutdown()),
        "stall": numbers(space.stalls_ms).map(AdvanceClock),
    }
    events = st.sampled_from(space.interleaved).flatmap(of_kind.__getitem__)
    if space.query_keys:
        events = events | queries(space)
    return st.builds(_during, crowded_ops(scenario), events)


def interleaved_phrases(scenario: Scenario) -> SearchStrategy[tuple[Op, ...]]:
    """Such an op, and a restart if it may have left the store down."""

    def perhaps_restarted(op: During) -> tuple[Op, ...]:
        return (op, Restart()) if isinstance(op.event, Shutdown) else (op,)

    return interleaved_ops(scenario).map(perhaps_restarted)


def together_phrases(scenario: Scenario) -> SearchStrategy[tuple[Op, ...]]:
    """Ops that begin at once, some of them met by a crash; up again afterwards."""
    space = scenario.space
    of_kind: dict[TogetherKind, SearchStrategy[Op]] = {
        "put": put_messages(scenario),
        "pull": pulls(space),
        "look": looks(space),
        "search": searches(space),
        "service": service_runs(space),
        "wait": numbers(space.stalls_ms).map(AdvanceClock),
        "delete": st.just(DeleteManually()),
        "shutdown": st.just(Shutdown()),
    }
    if space.batch_counts:
        of_kind["batch"] = put_batches(scenario)
    if space.query_keys:
        of_kind["query"] = queries(space)

    # By number: Hypothesis would print every part with every strategy.
    def part(number: int) -> SearchStrategy[Op]:
        return of_kind[space.together[number]]

    part_drawn = st.integers(0, len(space.together) - 1).flatmap(part)

    def as_many(count: int) -> SearchStrategy[tuple[Op, ...]]:
        return st.tuples(*[part_drawn] * count)

    parts = choices(space.together_counts).flatmap(as_many)

    def together(ops: tuple[Op, ...], template: Schedule, draw: int) -> Together:
        return Together(ops, schedule_of(template, len(ops), draw))

    def with_restart(op: Op) -> tuple[Op, ...]:
        inner = op.op if isinstance(op, During) else op
        assert isinstance(inner, Together)
        is_down = inner is not op or Shutdown() in inner.ops
        return (op, Restart()) if is_down else (op,)

    drawn = st.integers(0, (1 << 32) - 1)
    schedules = choices(space.schedules)
    ops: SearchStrategy[Op] = st.builds(together, parts, schedules, drawn)
    if space.crash_kinds:
        at_action = numbers(space.at_actions.service)
        ops = ops | st.builds(During, ops, at_action, crashes(space))
    return ops.map(with_restart)


def faults(space: Space) -> SearchStrategy[DiskFault]:
    """Failing calls, and of a failing sync what it leaves; nothing, at its simplest."""
    return st.builds(leaving, choices(space.faults), st.integers(0, LEFT_DRAWS - 1))


def written_phrases(scenario: Scenario, kind: Kind) -> SearchStrategy[tuple[Op, ...]]:
    """A phrase as seeded programs have it, by one draw."""

    def phrase(setup: Setup, draw: int) -> tuple[Op, ...]:
        return phrase_for(scenario.space, setup, kind, draw)

    return st.builds(phrase, setups(scenario), st.integers(0, (1 << 32) - 1))


def deletion_phrases(scenario: Scenario) -> SearchStrategy[tuple[Op, ...]]:
    """A topic goes: alone, cut short, with others about, or amid a dispatch."""
    space, at_actions = scenario.space, numbers(scenario.space.at_actions.service)
    ops = choices(space.deletions).map(lambda address: DeleteTopic(*address))
    events = put_messages(scenario) | crashes(space) | faults(space)
    amid = st.builds(During, st.just(RunService("reput")), at_actions, ops)
    cut_short = st.builds(During, ops, at_actions, events)
    return st.tuples(ops) | st.tuples(amid | cut_short, st.just(Restart()))


def damages(space: Space) -> SearchStrategy[Damage | PlantFile]:
    """A file loses or zeroes bytes, or is gone; or one of others comes to be there."""

    def damage(
        target: tuple[str, DamageKind], at: int, size: int, age_ms: int
    ) -> Damage:
        file, kind = target
        if kind in ("delete", "touch"):
            return Damage(file, kind, age_ms if kind == "touch" else 0)
        return Damage(file, kind, at, 0 if kind == "truncate" else size)

    damaged = st.builds(
        damage,
        choices(space.damage_targets),
        numbers(space.damage_offsets),
        choices(space.damage_sizes),
        numbers(space.touch_ages_ms),
    )
    return damaged | choices(space.plants) if space.plants else damaged


def bursts(scenario: Scenario) -> SearchStrategy[tuple[Op, ...]]:
    """One put, or several alike: they shrink to one, and cost one draw more."""

    def burst(op: PutMessage, times: int) -> tuple[Op, ...]:
        return (op,) * times

    burst_sizes = (1, *scenario.space.burst_sizes)
    return st.builds(burst, put_messages(scenario), choices(burst_sizes))


def crash_phrases(scenario: Scenario) -> SearchStrategy[tuple[Op, ...]]:
    """A crash, perhaps crashes of its recovery, and a restart that is let be."""

    def crash_and_restart(op: During, restarts: tuple[During, ...]) -> tuple[Op, ...]:
        return (op, *restarts, Restart())

    space = scenario.space
    restarts = several(crashed_restarts(space), space.recovery_crashes)
    return st.builds(crash_and_restart, crashed_ops(scenario), restarts)


def fault_phrases(scenario: Scenario) -> SearchStrategy[tuple[Op, ...]]:
    """An op that meets a failing disk, and perhaps a crash that shows what it left."""
    failing = st.builds(_during, crowded_ops(scenario), faults(scenario.space))
    faulted = st.tuples(failing)
    if not scenario.space.crash_kinds:
        return faulted
    with_crash = st.builds(operator.add, faulted, crash_phrases(scenario))
    return faulted | with_crash


def damage_phrases(scenario: Scenario) -> SearchStrategy[tuple[Op, ...]]:
    """A stop or a crash, files damaged while the store is down, and a restart."""

    def damage_and_restart(
        served: bool, stop: Op, files: tuple[Op, ...]
    ) -> tuple[Op, ...]:
        first = (RunService("reput"),) if served else ()
        return (*first, stop, *files, Restart())

    space = scenario.space
    stops: SearchStrategy[Op] = st.just(Shutdown())
    if space.crash_kinds:
        stops = stops | crashed_ops(scenario)
    files = several(damages(space), space.damages_a_stop)
    return st.builds(damage_and_restart, choices(space.served_first), stops, files)


def phrases(scenario: Scenario) -> dict[str, SearchStrategy[tuple[Op, ...]]]:
    """Ops that belong together, by what a machine calls taking them.

    Only what the scenario's space lists is here. No phrase leaves the store down.
    """
    space = scenario.space
    kinds = space.kinds
    restarts: tuple[tuple[Op, ...], ...] = ((Restart(),), (Shutdown(), Restart()))
    found: dict[str, SearchStrategy[tuple[Op, ...]]] = {
        "put": bursts(scenario),
        "serve": st.tuples(service_runs(space)),
        "restart": choices(restarts),
    }
    if "batch" in kinds:
        found["batch"] = st.tuples(put_batches(scenario))
    if "pull" in kinds:
        found["pull"] = pull_phrases(space)
    if "look" in kinds:
        found["look"] = st.tuples(looks(space))
    if "search" in kinds:
        found["search"] = search_phrases(space)
    if "query" in kinds:
        found["query"] = st.tuples(queries(space))
    if "clock" in kinds:
        found["wait"] = st.tuples(clock_moves(space))
    if "crash" in kinds:
        found["crash"] = crash_phrases(scenario)
    if "interleave" in kinds:
        found["interleave"] = interleaved_phrases(scenario)
    if "together" in kinds:
        found["together"] = together_phrases(scenario)
    if "fault" in kinds:
        found["fail_disk"] = fault_phrases(scenario)
    if "expire" in kinds:
        found["expire"] = written_phrases(scenario, "expire")
    if "contend" in kinds:
        found["contend"] = written_phrases(scenario, "contend")
    if "overlap" in kinds:
        found["overlap"] = written_phrases(scenario, "overlap")
    if "fill" in kinds:
        found["fill"] = st.tuples(choices(space.fill_percents).map(FillDisk))
    if "delete" in kinds:
        gone = deletion_phrases(scenario)
        found["expire"] = found.get("expire", gone) | gone
    if "damage" in kinds:
        found["damage"] = damage_phrases(scenario)
    if len(found) > RULES_MAX and "wait" in found:
        found["serve"] |= found.pop("wait")
    return found


def several(
    strategy: SearchStrategy[T], counts: tuple[int, ...]
) -> SearchStrategy[tuple[T, ...]]:
    """As many of a strategy's values as one of ``counts`` says."""
    of_size = {count: st.tuples(*[strategy] * count) for count in sorted(set(counts))}
    return st.sampled_from(counts).flatmap(of_size.__getitem__)


def _during(interrupted: tuple[Op, int], event: Event) -> During:
    return During(*interrupted, event)
