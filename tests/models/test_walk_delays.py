"""Which message a delivery was, when a level has several of one unique key."""

from __future__ import annotations

from dataclasses import replace

import pytest

from crashmq.harness.disk.profiles import PROFILES
from crashmq.harness.judging.judge import Judge
from crashmq.harness.subjects.python_store import PythonStore
from crashmq.models.files.record import SCHEDULE_TOPIC
from crashmq.models.history import Entry, PutAnswered, PutAsked, Step
from crashmq.models.knowledge.knowledge import Knowledge
from crashmq.models.knowledge.moments import At
from crashmq.models.knowledge.walk_delays import walk_delivery
from crashmq.models.messages import MessageToPut, message_for
from crashmq.models.observations import Done, Positions, Put
from crashmq.models.ops import PutMessage
from crashmq.models.program import Setup

LEVEL = 3
SETUP = Setup()
OF_G = replace(message_for(PutMessage("%RETRY%g", 0, 8), 0, 0, 0), reconsume_times=1)
OF_H = replace(OF_G, topic="%RETRY%h")


def delayed(message: MessageToPut) -> MessageToPut:
    return replace(
        message,
        topic=SCHEDULE_TOPIC,
        queue_id=LEVEL - 1,
        delay_level=LEVEL,
        real_topic=message.topic,
        real_queue_id=message.queue_id,
    )


def delivered(known: Knowledge, message: MessageToPut) -> int | None:
    """At which offset the message waited that is delivered now; None: at none."""
    message = replace(message, delay_level=LEVEL)
    answer = Put("PUT_OK", 1000, 100, 0)
    step = Step.that_saw(Done())
    step.entries = (
        Entry(0, 0, PutAsked((message,))),
        Entry(0, 0, PutAnswered(0, (answer,), of_batch=None, waited_ms=0)),
    )
    at = At(step, known, Judge(SETUP, PythonStore(SETUP)), Positions(0, 0, 0, 0))
    (moment,) = walk_delivery(at, message, answer)
    return None if moment.waited is None else moment.waited.queue_offset


@pytest.mark.parametrize(
    ("waiting", "deliveries", "expected"),
    [
        ((OF_G, OF_H), (OF_G, OF_H), [0, 1]),
        ((OF_H, OF_G), (OF_H, OF_G), [0, 1]),
        ((OF_G, OF_G), (OF_G, OF_G, OF_G), [0, 1, 1]),
        ((OF_G, OF_H), (OF_H, OF_G), [1, 0]),
        ((), (OF_G,), [None]),
    ],
)
def test_a_delivery_is_of_the_first_copy_that_is_due_and_alike(
    waiting: tuple[MessageToPut, ...],
    deliveries: tuple[MessageToPut, ...],
    expected: list[int | None],
) -> None:
    known = Knowledge.of_new_store(SETUP, PROFILES[SETUP.disk_profile])
    for number, message in enumerate(waiting):
        put = Put("PUT_OK", 100 * number, 100, number)
        known.model.put(delayed(message), put, stored_ms=0)

    assert [delivered(known, message) for message in deliveries] == expected
