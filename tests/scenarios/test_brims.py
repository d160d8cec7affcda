"""Messages that are just as large as may be: what the store says to each."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from crashmq.harness.episodes.episode import run_program
from crashmq.models.observations import Put
from crashmq.models.ops import Op, PutBatch, PutMessage
from crashmq.models.program import Program, Setup
from crashmq.models.verdict import Outcome
from crashmq.scenarios.programs.brims import at_a_limit, payload_of
from crashmq.scenarios.programs.chance import SeededChance

ONE = PutMessage("T0", 0, 16, tags="TagA")
BATCH = PutBatch("T0", 0, (16, 60))
SMALL = Setup(prop_crc=True, multi_dispatch=True)
LARGE = replace(SMALL, log_file_size=1 << 16, prop_crc=False)


def statuses(setup: Setup, op: PutMessage | PutBatch, seed: int) -> Counter[str]:
    """What the store says to some puts at their limits; every law has to hold."""
    puts: list[Op] = [
        at_a_limit(op, setup, SeededChance(seed, number), keeps_queue=False)
        for number in range(12)
    ]
    result = run_program(Program(setup, tuple(puts)))
    assert result.outcome is Outcome.PASSED, result.message
    seen = [step.observation for step in result.trace[1 : len(puts) + 1]]
    return Counter([one.status for one in seen if isinstance(one, Put)])


def test_a_message_is_taken_up_to_its_limit_and_refused_behind_it() -> None:
    found = statuses(SMALL, ONE, 1) + statuses(LARGE, ONE, 2)

    assert {*found} == {"PUT_OK", "MESSAGE_ILLEGAL", "PROPERTIES_SIZE_EXCEEDED"}


def test_a_batch_is_taken_up_to_its_limit_and_refused_behind_it() -> None:
    found = statuses(SMALL, BATCH, 3) + statuses(LARGE, BATCH, 4)

    assert {*found} == {"PUT_OK", "MESSAGE_ILLEGAL", "PROPERTIES_SIZE_EXCEEDED"}


def test_the_payload_of_a_put_is_what_the_store_counts() -> None:
    for op in (replace(ONE, body_size=300), replace(BATCH, body_sizes=(300, 7))):
        for off, status in ((0, "PUT_OK"), (-1, "MESSAGE_ILLEGAL")):
            setup = Setup(max_message_size=payload_of(op) + off)
            result = run_program(Program(setup, (op,)))

            seen = result.trace[1].observation
            assert result.outcome is Outcome.PASSED, result.message
            assert isinstance(seen, Put)
            assert seen.status == status
