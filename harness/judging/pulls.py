"""Judging what pulls return: the queue's messages, and no others."""

from __future__ import annotations

from harness.interpreter import Report
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

    Raises:
        InvariantViolated: it was answered wrongly.
        InvariantUnknown: a law failed itself.
    """
    key = (pull.topic, pull.queue_id)
    queue = model.queues.get(key, [])
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
            model.end - setup.in_memory_size,
        )


def judge_proofs(checks: dict[str, int], setup: Setup, report: Report) -> None:
    """Judge that each answer proves itself, of a store that is to see to it."""
    for _, pulled in report.pulls if setup.checks_crc else ():
        reading.pulled_messages_prove_themselves.hold(checks, pulled)
