"""Sessions: a caller's ops, one after the other, among others that begin with it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from lockless import APPENDS_WITHOUT_LOCK

from crashmq.harness.episodes.episode import EpisodeResult, run_program
from crashmq.harness.failures.case_bounds import OutOfBounds, check_program
from crashmq.harness.failures.shrink import shrink
from crashmq.harness.failures.simplify import unwrapped
from crashmq.harness.mutants.mutation import applied
from crashmq.models.describe import describe
from crashmq.models.observations import (
    Interleaved,
    InTurn,
    Observation,
    Pulled,
    Put,
    Skipped,
    describe_observation,
    status_of,
)
from crashmq.models.ops import (
    Crash,
    During,
    Op,
    PullMessage,
    PutMessage,
    Restart,
    RunService,
    Schedule,
    Session,
    Shutdown,
    Together,
    all_parts,
    needs,
    nesting,
)
from crashmq.models.program import BadProgram, Program, Setup
from crashmq.models.program_json import from_json, to_json
from crashmq.models.verdict import Outcome
from crashmq.scenarios.programs.chance import SeededChance
from crashmq.scenarios.programs.drawn_ops import in_sessions

PUT, OTHER = PutMessage("T0", 0, 16), PutMessage("T1", 0, 16)
REPUT, PULL = RunService("reput"), PullMessage("T0", 0, 0)
TWO = Session((PUT, PULL))


def run(*ops: Op) -> EpisodeResult:
    result = run_program(Program(Setup(), ops))
    assert result.outcome is Outcome.PASSED, result.message
    return result


def counts(*ops: Op) -> dict[tuple[str, str], int]:
    """What the record of an episode says of ops, by kind and status."""
    return {(one.op, one.status): one.times for one in run(*ops).record.op_counts}


def seen(result: EpisodeResult, number: int = 0) -> Observation:
    return next(s.observation for s in result.trace if s.number == number)


def callers(result: EpisodeResult) -> tuple[Observation, ...]:
    observed = seen(result)
    assert isinstance(observed, Interleaved), observed
    return observed.observations


def test_a_caller_s_ops_come_one_after_the_other() -> None:
    of_session, other = callers(run(Together((Session((PUT, REPUT, PULL)), OTHER))))

    assert isinstance(of_session, InTurn)
    assert [status_of(one) for one in of_session.observations[::2]] == [
        "PUT_OK",
        "FOUND",
    ]
    assert status_of(of_session) == "PUT_OK;Ran;FOUND"
    assert describe_observation(of_session).endswith(
        "; work 131; FOUND, 1 messages, next 1"
    )
    assert isinstance(other, Put)


@pytest.mark.slow
def test_another_caller_may_come_between_two_of_them() -> None:
    reads = Session((PULL, PULL, PULL, PULL))
    shown = set()
    for point in range(1, 90, 4):
        schedule = Schedule(preemptions=((point, 1),), grain="lines")
        result = run(PUT, Together((reads, REPUT), schedule))
        observed = seen(result, 1)
        assert isinstance(observed, Interleaved)
        of_session = observed.observations[0]
        assert isinstance(of_session, InTurn)
        pulls = [p for p in of_session.observations if isinstance(p, Pulled)]
        shown.add(tuple(pull.max_offset for pull in pulls))

    assert {(0, 0, 0, 0), (1, 1, 1, 1)} <= shown
    assert any(first < last for first, *_, last in shown)


@pytest.mark.parametrize("inner", [Restart(), Session((PUT,)), Together((PUT,))])
def test_what_nobody_does_beside_others_is_skipped_in_a_session_too(inner: Op) -> None:
    of_session, _ = callers(run(Together((Session((inner, PUT)), PUT))))

    assert isinstance(of_session, InTurn)
    assert isinstance(of_session.observations[0], Skipped)
    assert status_of(of_session.observations[1]) == "PUT_OK"


@pytest.mark.parametrize("op", [TWO, During(TWO, 1, PUT), During(PUT, 1, TWO)])
def test_a_session_by_itself_is_skipped(op: Op) -> None:
    assert "Skipped" in status_of(seen(run(op)))


@pytest.mark.slow
def test_a_session_goes_on_while_the_store_stops() -> None:
    for point in range(1, 25):
        schedule = Schedule(preemptions=((point, 1),))
        run(
            PUT, Together((Session((PULL, PUT, PULL)), Shutdown()), schedule), Restart()
        )


def test_a_session_ends_with_its_store() -> None:
    op = During(Together((Session((PUT, PUT, PUT)), OTHER)), 4, Crash("process_kill"))

    assert status_of(seen(run(op, Restart(), PUT))) == "Crashed"


def test_a_session_survives_a_case_file_and_is_told_in_words() -> None:
    op = Together((TWO, OTHER), Schedule(preemptions=((3, 1),)))
    program = Program(Setup(), (op,))

    assert from_json(to_json(program)) == program
    assert "(put 16 B to T0/0 then pull T0/0 from 0, at most 32)" in describe(op)


@pytest.mark.parametrize(
    "given",
    [
        {"op": "Session"},
        {"op": "Session", "session": 3},
        {"op": "Session", "session": [{"op": "Crash", "kind": "process_kill"}]},
        {"op": "Session", "session": [], "schedule": {}},
    ],
)
def test_a_session_that_is_none_is_told_so(given: dict[str, object]) -> None:
    with pytest.raises(BadProgram, match=r"\$\.ops\[0\]"):
        from_json({"setup": {}, "ops": [given]})


def test_what_a_session_is_made_of_counts_as_its_parts() -> None:
    deep = During(PUT, 1, During(PUT, 1, PUT))

    assert all_parts(TWO) == (TWO, PUT, PULL)
    assert nesting(Session((PUT, deep))) == 2
    assert needs(Session((PUT, REPUT))) == needs(REPUT)


def test_a_case_asks_for_no_endless_session() -> None:
    check_program(Program(Setup(), (Session((PUT,) * 64),)))

    with pytest.raises(OutOfBounds, match="65 ops in turn"):
        check_program(Program(Setup(), (Session((PUT,) * 65),)))
    wrong = Program(Setup(), (Session((PUT, replace(PUT, body_size=-1))),))
    with pytest.raises(OutOfBounds, match=r"session\[1\]\.body_size"):
        check_program(wrong)


@pytest.mark.slow
def test_shrinking_takes_callers_ops_and_preemptions_away() -> None:
    drawn = Schedule("pct", seed=4, depth=4, steps=12)
    many = Together(
        (Session((PULL, PUT, REPUT)), Session((REPUT, OTHER, PULL)), PULL, PUT), drawn
    )
    with applied(APPENDS_WITHOUT_LOCK):
        large = Program(Setup(), (PUT, many, PUT))
        small = shrink(large, "interleavings", "PUT-1").program

    together = small.ops[-1]
    assert isinstance(together, Together)
    assert [type(one) for one in together.ops] == [PutMessage, PutMessage]
    assert len(together.schedule.preemptions) <= 1


def test_each_op_of_a_session_can_be_taken_away() -> None:
    op = Together((Session((PUT, PULL, REPUT)), OTHER))
    shorter = [one for one in unwrapped(op) if isinstance(one, Together)]

    left = [one.ops[0] for one in shorter if len(one.ops) == 2]
    assert Session((PULL, REPUT)) in left
    assert Session((PUT, REPUT)) in left
    assert PULL in left


def test_drawn_sessions_keep_every_op_and_leave_two_callers() -> None:
    ops: tuple[Op, ...] = (PUT, REPUT, PULL, OTHER)
    lengths = set()
    for number in range(60):
        drawn = in_sessions(SeededChance(5, number), ops)
        flat = [
            part
            for one in drawn
            for part in (one.ops if isinstance(one, Session) else (one,))
        ]
        assert tuple(flat) == ops
        lengths.add(len(drawn))

    assert lengths == {2, 3, 4}
    assert in_sessions(SeededChance(5, 0), ops[:2]) == ops[:2]


def test_a_record_counts_each_op_of_a_session_by_itself() -> None:
    assert counts(REPUT, Together((TWO, OTHER))) == {
        ("RunService", "Ran"): 1,
        ("Together", "Interleaved"): 1,
        ("Session", "InTurn"): 1,
        ("PutMessage", "PUT_OK"): 2,
        ("PullMessage", "NO_MATCHED_LOGIC_QUEUE"): 1,
    }


def test_a_record_counts_what_happened_during_an_op_and_the_op() -> None:
    assert counts(During(PUT, 1, REPUT)) == {
        ("During", "Ran"): 1,
        ("PutMessage", "PUT_OK"): 1,
        ("RunService", "Ran"): 1,
    }
    assert counts(During(PUT, 1, Crash("process_kill")), Restart()) == {
        ("During", "Crashed"): 1,
        ("Restart", "Started"): 1,
    }
