"""What an episode asks at its end, so that a border that is wrong shows."""

from __future__ import annotations

from crashmq.harness.episodes.episode import run_program
from crashmq.models.ops import (
    AdvanceClock,
    DeleteManually,
    PullMessage,
    PutMessage,
    RunService,
    SearchOffset,
)
from crashmq.models.program import Program, Setup

HOUR_MS = 3_600_000
LARGE = PutMessage("T0", 0, 3000)  # one to a log file


def test_times_beyond_a_queue_that_begins_late_are_searched_for() -> None:
    later = AdvanceClock(10)
    ops = (
        *(LARGE, later, LARGE, later, LARGE),
        *(RunService("flush_commit_log", 9), RunService("reput")),
        *(AdvanceClock(3 * HOUR_MS), DeleteManually()),
        RunService("clean_commit_log"),
    )
    keeping = Setup(cleans=True, reserved_hours=2, flush_least_pages=0)

    trace = run_program(Program(keeping, ops)).trace

    searched = [s.op for s in trace if isinstance(s.op, SearchOffset)]
    of_queue = [op for op in searched if (op.topic, op.queue_id) == ("T0", 0)]
    times = [op.at_ms for op in of_queue if op.boundary == "UPPER"]
    assert min(times) == 19
    assert max(op.at_ms for op in of_queue) == max(times) + 1


def test_a_queue_is_pulled_by_few_at_a_time_and_by_its_newest_tag() -> None:
    ops = [PutMessage("T0", 0, 16, tags="TagA")] * 3
    ops += [PutMessage("T0", 0, 16, tags="TagB")]

    trace = run_program(Program(Setup(), tuple(ops))).trace

    pulls = [s.op for s in trace if isinstance(s.op, PullMessage)]
    assert PullMessage("T0", 0, 0, 1, "TagB") in pulls
    assert any(op.max_msg_nums == 2 and op.tags == "*" for op in pulls)
