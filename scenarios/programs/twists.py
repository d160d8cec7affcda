"""Twists: things that may happen to any store, and that few scenarios contain.

Each scenario has its own subject, so its programs lack those of others: only one of
forty sets the clock back, though every store keeps times over its starts. A search that
tries each scenario a few times rarely combines such a thing with another. So one
program in ``TWISTED`` gets one, in any scenario.

The added ops are legal in every state, and no op is removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from crashmq.models.files.checkpoint import SUMS_MAX
from crashmq.models.limits import NEAR_TRANSFER, PUT_TIMES_MS
from crashmq.models.ops import (
    CAN_BE_TOGETHER,
    EVERYTHING,
    SILENT,
    AdvanceClock,
    Capability,
    ChangeConfig,
    ConsumerTask,
    Crash,
    Damage,
    DeleteManually,
    DiskFault,
    During,
    Event,
    LookMessage,
    Op,
    PullMessage,
    PutBatch,
    PutMessage,
    QueryMessage,
    Restart,
    RunService,
    Schedule,
    SearchOffset,
    Session,
    Shutdown,
    StartConsumer,
    Together,
    TurnConsumer,
    innermost,
    needs,
    parts,
)
from crashmq.models.program import FLUSH_MODES, HOUR_MS, WRONG_VALUES, Program, Setup
from crashmq.scenarios.programs.brims import OFF, at_a_limit, payload_of
from crashmq.scenarios.programs.chance import Chance, SeededChance
from crashmq.scenarios.programs.draft import THOROUGH_MS
from crashmq.scenarios.programs.extremes import has_fields, with_an_odd_value
from crashmq.scenarios.programs.lapsing import lapse, limits_of
from crashmq.scenarios.programs.mixing import with_room
from crashmq.scenarios.programs.space import often, schedule_of

TWISTED = 4
"""Of so many programs one is twisted."""

SET_BACK_MS = (1, 999, 5_000, 20_000, 61_000, 600_000, 3_600_000, 86_400_000)
"""How far the clock stands behind what the life before has seen."""

MOMENTS_MS = (1, 250, 499, 500, 501, 999, 1001)
"""Between two messages of one second, or of two."""

CHANGES = often(
    (ChangeConfig("transient_store_pool", True), 3),
    (ChangeConfig("transient_store_pool", False), 3),
    (ChangeConfig("preallocate", True), 2),
    (ChangeConfig("preallocate", False), 1),
    (ChangeConfig("flush_least_pages", 0), 2),
    (ChangeConfig("flush_least_pages", 4), 2),
    (ChangeConfig("checks_crc", True), 1),
    (ChangeConfig("read_window", 600), 1),
    (ChangeConfig("in_memory_size", 150), 1),
    (ChangeConfig("start_window", 0), 1),
    (ChangeConfig("start_window", 4096), 1),
    (ChangeConfig("reserved_hours", 1), 1),
    (ChangeConfig("reserved_hours", 30), 1),
    (ChangeConfig("delete_batch", 1), 1),
    (ChangeConfig("cleans_forcibly", True), 1),
    (ChangeConfig("delete_hours", "00;12;23"), 1),
    (ChangeConfig("max_message_size", 500), 1),
    (ChangeConfig("transient_store_buffers", 1), 1),
    (ChangeConfig("multi_dispatch", True), 1),
    (ChangeConfig("multi_dispatch", False), 1),
    (ChangeConfig("on_damage", "serve"), 1),
    (ChangeConfig("on_damage", "refuse"), 1),
    (ChangeConfig("lets_read", False), 1),
    (ChangeConfig("takes_lite_pulls", False), 1),
)
"""What an operator may change in a configuration between two runs of a store."""

BESIDE = often(
    (Schedule("preempt", depth=1, steps=10), 3),
    (Schedule("preempt", depth=1, steps=40), 2),
    (Schedule("pct", depth=2, steps=40), 2),
    (Schedule("pct", depth=2, steps=60, grain="lines"), 1),
)

ROLLED_BY = 24
"""Messages that fill a log file, as a rule."""

AGAIN_MAX = 6

ODD_MAX = 4

WRONG_MAX = 8
"""Starts in a row with a value that no store can have, at most."""

LONG = 200
"""Units of a queue file that holds all that a program puts."""

LEAST_SIZE = 256
"""What every store must take: an episode ends with small messages."""

STALLED_MAX = 3

STALLED_AT = 4  # at one of so many disk actions

BESIDE_A_BORDER_MS = (-1, 0, 0, 1)
"""How far a stall ends from where one range of counted times ends."""

TIMED: tuple[ConsumerTask, ...] = ("pull", "clean")
"""The tasks of a consumer that look at its clock."""

READS = (PullMessage, LookMessage, SearchOffset, QueryMessage)

_APART = 2 << 32  # from the seeds that programs are drawn by, and aimed by

Twist = Callable[[Program, Chance], Program]


def twisted(
    program: Program,
    run: int,
    number: int,
    can: frozenset[Capability] = EVERYTHING,
) -> Program:
    """The program, or, for one number in ``TWISTED``, with a twist.

    It depends on the arguments alone. Ops that need more than the store ``can`` do are
    left out.
    """
    chance = SeededChance(run + _APART, number)
    if program.setup.begins_with or not chance.one_in(TWISTED):
        return program
    found = chance.pick(TWISTS)(program, chance)
    return _with(found, [op for op in found.ops if needs(op) <= can])


def _with(program: Program, ops: Iterable[Op]) -> Program:
    """The program with these ops instead of its own."""
    return replace(program, ops=tuple(ops))


def _set_back(program: Program, chance: Chance) -> Program:
    """The clock is set back while the store is down, before one of its starts."""
    ops = [*program.ops]
    before, after = _around_a_start(ops, chance)
    back = _back(chance)
    return _with(program, [*before, *back, *after, *_last_put(ops)])


def _around_a_start(ops: list[Op], chance: Chance) -> tuple[list[Op], list[Op]]:
    """The ops up to where the store is down, and those from one of its starts on.

    If there is no start, a stop and a start are added at the end.
    """
    starts = [at for at, op in enumerate(ops) if _begins_with_a_start(op)]
    if not starts:
        return [*ops, Shutdown()], [Restart()]
    at = chance.pick(tuple(starts))
    down = () if at and _takes_down(ops[at - 1]) else (Shutdown(),)
    return [*ops[:at], *down], ops[at:]


def _back(chance: Chance) -> tuple[Op, ...]:
    return (AdvanceClock(-chance.pick(SET_BACK_MS)),)


def _configured_anew(program: Program, chance: Chance) -> Program:
    """Before one of its starts the store is given other values of some options.

    What the life before has left, the next one finds under another configuration.
    """
    ops = [*program.ops]
    changes = [chance.pick(CHANGES) for _ in range(chance.integer(1, 3))]
    if chance.coin():
        changes.append(ChangeConfig("flush_mode", chance.pick(FLUSH_MODES)))
    if any(map(_spoils, ops)):  # what a start leaves unread may be damaged
        changes = [one for one in changes if one.option != "start_window"]
    before, after = _around_a_start(ops, chance)
    has_start = any(map(_begins_with_a_start, ops))
    asked = () if has_start else (*_last_put(ops), *_telling())
    return _with(program, [*before, *changes, *after, *asked])


def _misconfigured(program: Program, chance: Chance) -> Program:
    """Before one of its starts others come, each with a value that no store can have.

    They change nothing, so the next one finds what the life before has left.
    """
    before, after = _around_a_start([*program.ops], chance)
    wrong: list[Op] = []
    for _ in range(chance.integer(1, WRONG_MAX)):
        value = chance.pick(WRONG_VALUES)
        wrong += [ChangeConfig("wrong_value", value), Restart()]
    wrong.append(ChangeConfig("wrong_value", ""))
    return _with(program, [*before, *wrong, *after])


def _back_while_it_runs(program: Program, chance: Chance) -> Program:
    """The clock is set back amid a life, between two rounds of all that have intervals.

    What is put after that waits for rounds that count from a time to come. Perhaps the
    store has write buffers, of which a part may wait as well, and all others have
    rounds too: the other services, and the tasks of consumers that were started.
    """
    ops, setup = [*program.ops], program.setup
    at = chance.below(len(ops) + 1)
    put = _last_put(ops[:at]) or _last_put(ops)
    if chance.coin():
        setup = replace(setup, transient_store_pool=True)
    rounds = _rounds() if chance.coin() else _rounds_of_all(setup, ops[:at])
    around = (*put, *_telling(), *_back(chance), *put, *rounds)
    return Program(setup, (*ops[:at], *around, *ops[at:]))


def _rounds_of_all(setup: Setup, before: list[Op]) -> tuple[Op, ...]:
    """A round of each service, and of the tasks of consumers that were started."""
    clients = {op.client: op for op in before if isinstance(op, StartConsumer)}
    return (
        *[RunService(name) for name in sorted(setup.services)],
        *[TurnConsumer(one, task) for one in clients for task in TIMED],
    )


def _part_of_a_second(program: Program, chance: Chance) -> Program:
    """Part of a second passes after each message, so no two have the same time."""
    found: list[Op] = []
    for op in program.ops:
        found.append(op)
        if isinstance(op, PutMessage | PutBatch):
            found.append(AdvanceClock(chance.pick(MOMENTS_MS)))
    return _with(program, found)


def _record_durable(program: Program, chance: Chance) -> Program:
    """Before one of the ops, and after the next, what is durable is recorded."""
    ops = [*program.ops]
    at = chance.below(len(ops) + 1)
    around = [*_telling(), *ops[at : at + 1], *_telling()]
    return _with(program, [*ops[:at], *around, *ops[at + 1 :]])


def _telling() -> tuple[Op, ...]:
    return (RunService("reput"), AdvanceClock(THOROUGH_MS), *_rounds())


def _rounds() -> tuple[Op, ...]:
    """One round of each service that makes durable what there is."""
    return (
        *(RunService("commit"), RunService("flush_commit_log", 3)),
        *(RunService("reput"), RunService("flush_consume_queue")),
        RunService("checkpoint"),
    )


def _grown_old(program: Program, chance: Chance) -> Program:
    """At some time files expire and are deleted, whatever happened before.

    Perhaps a read that was asked before is asked again meanwhile. Some of the ops are
    done again afterwards: what they were about may be gone.
    """
    ops, setup = [*program.ops], program.setup
    if not setup.cleans:
        setup = replace(setup, cleans=True, reserved_hours=2)
    at = len(ops) - chance.below(len(ops) + 1)
    before = ops[:at]
    of_log = RunService("clean_commit_log", 3)
    of_queues = RunService("clean_consume_queue", 3)
    cleans: tuple[Op, ...] = (of_log, of_queues)
    reads = tuple([op for op in ops if isinstance(op, READS)])
    if reads and chance.coin():
        read, when = chance.pick(reads), chance.pick(BESIDE)
        schedule = schedule_of(when, 2, chance.word())
        session = Session((read, read))
        if chance.coin():
            cleans = (Together((session, Session(cleans)), schedule),)
        else:
            cleans = (of_log, Together((session, of_queues), schedule))
    aged = (
        *(RunService("reput"), RunService("flush_commit_log", 3)),
        *(AdvanceClock((setup.reserved_hours + 1) * HOUR_MS), DeleteManually()),
        *cleans,
    )
    aged = (*_until_files_roll(before), *aged, *_again(before, chance))
    return Program(setup, (*before, *aged, *ops[at:]))


def _until_files_roll(ops: list[Op]) -> list[Op]:
    """The puts of a program once more, up to ``ROLLED_BY``, so that files are full."""
    puts: list[Op] = [op for op in ops if isinstance(op, PutMessage | PutBatch)]
    return (puts * ROLLED_BY)[:ROLLED_BY]


def _again(ops: list[Op], chance: Chance) -> list[Op]:
    """A few of the ops, in their order, that do not take the store up or down."""
    able = [op for op in ops if isinstance(op, CAN_BE_TOGETHER) and not _is_wait(op)]
    count = min(len(able), chance.below(AGAIN_MAX + 1))
    picked = sorted({chance.below(len(able)) for _ in range(count)})
    return [able[at] for at in picked]


def _of_many_files(program: Program, chance: Chance) -> Program:
    """At some time the log has more files than a checkpoint has room for.

    A mark holds the sums of at most ``SUMS_MAX`` of them.
    """
    ops = [*program.ops]
    put = _last_put(ops)
    if not put:
        return _record_durable(program, chance)
    at = chance.below(len(ops) + 1)
    count = SUMS_MAX + chance.integer(-1, 2)
    size = program.setup.log_file_size // 2
    one = replace(put[0], body_size=size, delay_level=0, multi_dispatch="")
    return _with(program, [*ops[:at], *[one] * count, *_telling(), *ops[at:]])


def _at_once(program: Program, chance: Chance) -> Program:
    """Two or three ops that follow each other begin at the same time."""
    ops = [*program.ops]
    able = [isinstance(op, CAN_BE_TOGETHER) and not _is_wait(op) for op in ops]
    begins = [at for at in range(len(ops) - 1) if able[at] and able[at + 1]]
    if not begins:
        return _record_durable(program, chance)
    at = chance.pick(tuple(begins))
    end = at + 2
    if end < len(ops) and able[end] and chance.coin():
        end += 1
    when = schedule_of(chance.pick(BESIDE), end - at, chance.word())
    both = Together(tuple(ops[at:end]), when)
    return _with(program, [*ops[:at], both, *ops[end:]])


def _of_another_range(program: Program, chance: Chance) -> Program:
    """A few ops are done again, each with one field anywhere in its range.

    Where files are spoilt no queue is new, since a start may not miss one of which it
    reads no record.
    """
    ops = [*program.ops]
    is_spoilt = any(map(_spoils, ops))
    able = [at for at, op in enumerate(ops) if has_fields(op)]
    if not able:
        return _record_durable(program, chance)
    for _ in range(chance.integer(1, ODD_MAX)):
        at = chance.pick(tuple(able))
        odd = with_an_odd_value(ops[at], chance, keeps_queue=is_spoilt)
        ops.insert(at + 1, odd)
        able = [one + (one > at) for one in able]
    return _with(program, ops)


def _to_the_brim(program: Program, chance: Chance) -> Program:
    """A few messages are put again, with one part just as large as it may be."""
    ops, setup = [*program.ops], program.setup
    is_spoilt = any(map(_spoils, ops))
    for _ in range(chance.integer(1, ODD_MAX)):
        puts = [
            at for at, op in enumerate(ops) if isinstance(op, PutMessage | PutBatch)
        ]
        if not puts:
            return _record_durable(program, chance)
        at = chance.pick(tuple(puts))
        put = ops[at]
        assert isinstance(put, PutMessage | PutBatch), put
        ops.insert(at + 1, at_a_limit(put, setup, chance, keeps_queue=is_spoilt))
    return _with(program, ops)


def _of_the_largest_message(program: Program, chance: Chance) -> Program:
    """A message or a batch is the largest that the store takes, or is too large."""
    puts = [op for op in program.ops if isinstance(op, PutMessage | PutBatch)]
    batches = [op for op in puts if isinstance(op, PutBatch)]
    asked = batches if batches and chance.coin() else puts
    sizes = [size for size in map(payload_of, asked) if size > LEAST_SIZE]
    if not sizes:
        return _to_the_brim(program, chance)
    size = chance.pick(tuple(sizes)) - chance.pick(OFF)
    return Program(replace(program.setup, max_message_size=size), program.ops)


def _of_a_long_queue(program: Program, chance: Chance) -> Program:
    """A queue gets more messages than one answer holds, and pulls ask for more.

    They lie in one file of the queue, as an answer does, unless files are damaged.
    """
    ops, setup = [*program.ops], program.setup
    if not any(map(_spoils, ops)):
        setup = with_room(replace(setup, queue_file_units=LONG))
    put = _last_put(ops)
    if not put:
        return _record_durable(program, chance)
    at = chance.below(len(ops) + 1)
    most, _ = NEAR_TRANSFER
    count = most + chance.integer(1, most)
    one = replace(put[0], body_size=1, delay_level=0, multi_dispatch="", keys="")
    pulls = [
        PullMessage(
            one.topic,
            one.queue_id,
            chance.below(most),
            most + chance.integer(-1, most + 1),
            chance.pick(("*", "*", one.tags or "*")),
        )
        for _ in range(chance.integer(1, 3))
    ]
    asked = [*ops[:at], *[one] * count, *_telling(), *pulls, *ops[at:]]
    return Program(setup, tuple(asked))


def _stalled(program: Program, chance: Chance) -> Program:
    """A few ops take a while: at a disk action they stand still while others go on."""
    ops = [*program.ops]
    able = [
        at
        for at, op in enumerate(ops)
        if isinstance(op, CAN_BE_TOGETHER) and not _is_wait(op)
    ]
    if not able:
        return _record_durable(program, chance)
    stalled = [chance.pick(tuple(able)) for _ in range(chance.integer(1, STALLED_MAX))]
    for at in dict.fromkeys(stalled):
        took_ms = chance.pick(PUT_TIMES_MS) + chance.pick(BESIDE_A_BORDER_MS)
        stall = AdvanceClock(took_ms)
        ops[at] = During(ops[at], chance.integer(1, STALLED_AT), stall)
    return _with(program, ops)


def _is_wait(op: Op) -> bool:
    """Whether the op is there for the time that passes before the next one."""
    return isinstance(op, AdvanceClock)


def _again_beside_a_stop(program: Program, chance: Chance) -> Program:
    """One of the ops is done again, while the store is shut down."""
    ops = [*program.ops]
    able = [at for at, op in enumerate(ops) if isinstance(op, CAN_BE_TOGETHER)]
    if not able:
        return _record_durable(program, chance)
    at = chance.pick(tuple(able)) + 1
    when = schedule_of(chance.pick(BESIDE), 2, chance.word())
    both = Together((ops[at - 1], Shutdown()), when)
    return _with(program, [*ops[:at], both, Restart(), *ops[at:]])


def _about_a_limit(program: Program, chance: Chance) -> Program:
    """Amid a life the time of a limit passes, with rounds on both sides of its end.

    Every service has a round, and so have the tasks of the consumers that were started.
    Perhaps they had one before, too, and a message waits since then.
    """
    ops, setup = [*program.ops], program.setup
    at = chance.below(len(ops) + 1)
    rounds = _rounds_of_all(setup, ops[:at])
    passes = lapse(chance, chance.pick(limits_of(setup)), rounds)
    begins = (*rounds, *_last_put(ops)) if chance.coin() else ()
    return _with(program, [*ops[:at], *begins, *passes, *ops[at:]])


TWISTS: tuple[Twist, ...] = (
    *(_set_back, _set_back, _back_while_it_runs, _back_while_it_runs),
    *(_configured_anew, _configured_anew, _misconfigured),
    *(_again_beside_a_stop, _again_beside_a_stop),
    *(_at_once, _at_once),
    *(_about_a_limit, _about_a_limit),
    *(_part_of_a_second, _record_durable, _grown_old, _grown_old),
    *(_of_another_range, _of_another_range, _of_many_files, _stalled),
    *(_to_the_brim, _of_the_largest_message, _of_a_long_queue),
)


def _last_put(ops: list[Op]) -> list[PutMessage]:
    """A put at the end, at the clock's time then."""
    puts = [op for op in ops if isinstance(op, PutMessage)]
    return puts[-1:]


def _spoils(op: Event) -> bool:
    """Whether the op may change a file so that only who reads it knows."""
    if isinstance(op, DiskFault):
        return op.call in SILENT
    return isinstance(op, Damage) or any(map(_spoils, parts(op)))


def _begins_with_a_start(op: Event) -> bool:
    return isinstance(innermost(op), Restart)


def _takes_down(op: Event) -> bool:
    """Whether the store is probably down after the op."""
    return isinstance(op, Shutdown | Crash) or any(map(_takes_down, parts(op)))
