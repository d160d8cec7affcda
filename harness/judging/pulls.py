"""Judging what pulls return: the queue's messages, and no others."""

from __future__ import annotations

from itertools import pairwise

from harness.interpreter import Report
from models.appended import Appended
from models.invariants import marks, reading
from models.observations import Pulled
from models.ops import PullMessage
from models.program import Setup
from models.reference import ReferenceModel


def judge_pull(
    checks: dict[str, int],
    model: ReferenceModel,
    pull: PullMessage,
    pulled: Pulled,
    confirm_offset: int,
    setup: Setup | None,
    gone_below: int,
    log_end: int,
) -> None:
    """Judge one pull.

    Args:
        checks: how often each law was judged.
        model: what the store must hold.
        pull: what was asked for.
        pulled: the answer.
        confirm_offset: how far records may be shown; -1 if nobody knows.
        setup: the store's; None if it is not certain how far the queue was dispatched
            when it was read, so that less can be asked.
        gone_below: before this place messages may have expired while it was read.
        log_end: where the log ends, be it with a filler.

    Raises:
        InvariantViolated: it was answered wrongly.
        InvariantUnknown: a law failed itself.
    """
    key = (pull.topic, pull.queue_id)
    queue = _behind_gaps(model.queues.get(key, []))
    reading.pulled_messages_are_right.hold(
        checks, pulled, pull.queue_offset, queue, pull.tags, gone_below
    )
    if pulled.messages and queue and confirm_offset >= 0:
        first = pull.queue_offset - queue[0].queue_offset
        marks.served_is_confirmed.hold(
            checks,
            pull.queue_offset,
            queue[first : first + len(pulled.messages)],
            confirm_offset,
        )
    if setup is not None:
        reading.pull_is_answered_right.hold(
            checks,
            pulled,
            pull.queue_offset,
            pull.max_msg_nums,
            model.visible(key),
            setup.queue_file_units,
            pull.tags,
            log_end - setup.in_memory_size,
        )


def _behind_gaps(queue: list[Appended]) -> list[Appended]:
    """What follows on each other up to the last message.

    Where damage took expired messages and a queue's last file is all that says how far
    it has counted, numbers are left that no message has.
    """
    if not queue or queue[-1].queue_offset - queue[0].queue_offset == len(queue) - 1:
        return queue
    begins = [n for n, (a, b) in enumerate(pairwise(queue), 1) if not _follows(a, b)]
    return queue[begins[-1] :]


def _follows(before: Appended, after: Appended) -> bool:
    return after.queue_offset == before.queue_offset + 1


def judge_proofs(checks: dict[str, int], setup: Setup, report: Report) -> None:
    """Judge that each answer proves itself, of a store that is to see to it."""
    for _, pulled in report.pulls if setup.checks_crc else ():
        reading.pulled_messages_prove_themselves.hold(checks, pulled)
