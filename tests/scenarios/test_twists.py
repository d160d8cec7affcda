"""Twists: what a program gets that its scenario does not think of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from crashmq.harness.episodes.episode import run_program
from crashmq.models.files.checkpoint import SUMS_MAX
from crashmq.models.limits import NEAR_TRANSFER, PUT_TIMES_MS
from crashmq.models.observations import Done, Refused
from crashmq.models.ops import (
    EVERYTHING,
    AdvanceClock,
    Capability,
    ChangeConfig,
    Damage,
    DeleteManually,
    During,
    Op,
    PullMessage,
    PutBatch,
    PutMessage,
    Restart,
    RunService,
    Session,
    Together,
    all_parts,
    needs,
)
from crashmq.models.program import Program, Setup
from crashmq.models.verdict import Outcome
from crashmq.scenarios.catalogue.scenarios import SCENARIOS
from crashmq.scenarios.programs.brims import payload_of
from crashmq.scenarios.programs.twists import TWISTED, twisted
from crashmq.scenarios.programs.workload import program_for

COUNT = 300
PLAIN = [program_for(SCENARIOS["power_loss"], 5, number) for number in range(COUNT)]
FOUND = [twisted(program, 5, number) for number, program in enumerate(PLAIN)]
OTHERS = [
    (plain, found) for plain, found in zip(PLAIN, FOUND, strict=True) if found != plain
]


def _is_within(ops: tuple[Op, ...], more: tuple[Op, ...]) -> bool:
    left = _each(more)
    return all(op in left for op in ops)


def _each(ops: tuple[Op, ...]) -> Iterator[Op]:
    """The ops, those that begin together, and those that something happens in."""
    for op in ops:
        yield op
        if isinstance(op, Together):
            yield from op.ops
        elif isinstance(op, During):
            yield op.op


def test_one_program_of_so_many_is_twisted_and_always_the_same_way() -> None:
    again = [twisted(program, 5, number) for number, program in enumerate(PLAIN)]

    assert again == FOUND
    assert COUNT / TWISTED / 2 < len(OTHERS) < COUNT / TWISTED * 2


def test_a_twist_takes_nothing_away_and_leaves_the_store() -> None:
    for plain, found in OTHERS:
        own = plain.setup
        kept = own.queue_file_units, own.max_message_size, own.transient_store_pool
        setup = replace(found.setup, cleans=False, reserved_hours=72)
        setup = replace(setup, queue_file_units=kept[0], max_message_size=kept[1])
        assert replace(setup, transient_store_pool=kept[2]) == own
        assert _is_within(plain.ops, found.ops)


def test_some_clocks_are_set_back_right_before_a_start() -> None:
    set_back = [
        (at, found.ops)
        for _, found in OTHERS
        for at, op in enumerate(found.ops)
        if isinstance(op, AdvanceClock) and op.ms < 0
    ]

    assert set_back
    assert any(isinstance(ops[at + 1], Restart) for at, ops in set_back)
    assert any(isinstance(ops[-1], PutMessage) for _, ops in set_back)


def test_some_clocks_are_set_back_amid_a_life_before_a_flush() -> None:
    amid = [
        found.ops[at + 1 :]
        for _, found in OTHERS
        for at, op in enumerate(found.ops)
        if isinstance(op, AdvanceClock) and op.ms < 0
        if not isinstance(found.ops[at + 1], Restart)
    ]

    assert any(RunService("commit") in after[:2] for after in amid)


def _gives_a_wrong_value(op: Op) -> bool:
    return isinstance(op, ChangeConfig) and op.option == "wrong_value"


def test_some_stores_are_configured_anew_while_they_are_down() -> None:
    configured = [
        found
        for _, found in OTHERS
        if any(isinstance(op, ChangeConfig) for op in found.ops)
        and not any(map(_gives_a_wrong_value, found.ops))
    ]
    assert len(configured) > 3

    for program in configured[:4]:
        result = run_program(program, "power_loss")
        seen = [
            one.observation for one in result.trace if isinstance(one.op, ChangeConfig)
        ]
        assert result.outcome is Outcome.PASSED, result.message
        assert set(seen) == {Done()}


def test_some_ops_that_follow_each_other_begin_at_once() -> None:
    together = [
        op.ops
        for plain, found in OTHERS
        for op in found.ops
        if isinstance(op, Together) and op not in plain.ops
    ]
    follow = [plain.ops for plain, _ in OTHERS]

    assert any(
        ops == program[at : at + len(ops)]
        for ops in together
        for program in follow
        for at in range(len(program))
    )


def test_some_reads_are_asked_again_while_files_expire() -> None:
    numbers = range(4 * COUNT)
    plain = [program_for(SCENARIOS["expiry"], 5, number) for number in numbers]
    found = [twisted(program, 5, number) for number, program in enumerate(plain)]
    beside = [
        [part.ops for part in op.ops if isinstance(part, Session)]
        for program in found
        for op in program.ops
        if isinstance(op, Together)
    ]
    cleans = RunService("clean_commit_log", 3)

    assert any(its and cleans in its[-1] and len(its) == 2 for its in beside)


def test_some_messages_of_brokers_expire_before_what_comes_next() -> None:
    plain = [program_for(SCENARIOS["retries"], 5, number) for number in range(COUNT)]
    found = [twisted(program, 5, number) for number, program in enumerate(plain)]
    aged = [program for program in found if program.setup.cleans]

    assert aged
    assert all(DeleteManually() in program.ops for program in aged)
    assert any(
        program.ops[-1] != RunService("clean_consume_queue", 3) for program in aged
    )


def test_a_store_whose_files_are_damaged_may_begin_to_delete() -> None:
    plain = [program_for(SCENARIOS["bit_rot"], 5, number) for number in range(COUNT)]
    damaged = [
        (number, program)
        for number, program in enumerate(plain)
        if any(isinstance(op, Damage) for op in program.ops)
    ]

    assert any(
        twisted(program, 5, number).setup.cleans and not program.setup.cleans
        for number, program in damaged
    )


def test_some_starts_come_with_a_value_that_no_store_can_have() -> None:
    wrong = [found for _, found in OTHERS if any(map(_gives_a_wrong_value, found.ops))]
    assert wrong

    refused = []
    for program in wrong[:4]:  # a value may be of an option that this store has not
        result = run_program(program, "power_loss")
        assert result.outcome is Outcome.PASSED, result.message
        refused += [one for one in result.trace if isinstance(one.observation, Refused)]
    assert refused


def test_a_store_whose_files_are_damaged_is_given_no_window() -> None:
    plain = [program_for(SCENARIOS["bit_rot"], 5, number) for number in range(COUNT)]
    found = [twisted(program, 5, number) for number, program in enumerate(plain)]
    told = [
        [op.option for op in program.ops if isinstance(op, ChangeConfig)]
        for program in found
        if any(isinstance(one, Damage) for op in program.ops for one in all_parts(op))
    ]

    assert any(told)
    assert not any("start_window" in options for options in told)


def test_a_store_that_has_no_clock_is_given_no_time() -> None:
    can = EVERYTHING - {Capability.HAS_CLOCK}
    plain = [
        Program(program.setup, tuple(op for op in program.ops if needs(op) <= can))
        for program in PLAIN
    ]

    for number, program in enumerate(plain):
        found = twisted(program, 5, number, can)
        assert all(needs(op) <= can for op in found.ops)


def test_what_begins_with_files_of_others_stays_what_it_is() -> None:
    program = Program(Setup(begins_with="5.3.0-kinds"), PLAIN[0].ops)

    assert all(twisted(program, 5, number) is program for number in range(COUNT))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["retries", "disk_full", "clock_jumps"])
def test_twisted_programs_pass_on_the_shipped_engine(name: str) -> None:
    programs = [program_for(SCENARIOS[name], 7, number) for number in range(12)]

    for number, program in enumerate(programs):
        result = run_program(twisted(program, 7, number), name, keep_trace=False)
        assert result.outcome is Outcome.PASSED, result.message


def test_some_logs_have_more_files_than_a_checkpoint_has_sums() -> None:
    size = Setup().log_file_size // 2
    large = [
        sum(isinstance(op, PutMessage) and op.body_size == size for op in found.ops)
        for _, found in OTHERS
    ]

    assert max(large) > SUMS_MAX


def test_some_queues_are_longer_than_an_answer_and_pulls_ask_for_more() -> None:
    most, _ = NEAR_TRANSFER
    asked = [
        op
        for _, found in OTHERS
        for op in found.ops
        if isinstance(op, PullMessage) and op.max_msg_nums > most
    ]

    assert asked


def test_some_messages_are_the_largest_that_their_store_takes() -> None:
    sizes = [
        (found.setup.max_message_size, {payload_of(op) for op in _puts(found)})
        for _, found in OTHERS
        if found.setup.max_message_size != Setup().max_message_size
    ]

    assert any(most in payloads for most, payloads in sizes)


def _puts(program: Program) -> list[PutMessage | PutBatch]:
    return [op for op in program.ops if isinstance(op, PutMessage | PutBatch)]


def test_some_ops_take_as_long_as_where_a_range_of_counted_times_ends() -> None:
    took = {
        op.event.ms
        for plain, found in OTHERS
        for op in set(found.ops) - set(plain.ops)
        if isinstance(op, During) and isinstance(op.event, AdvanceClock)
    }

    assert took & {*PUT_TIMES_MS}
