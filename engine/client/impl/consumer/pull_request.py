"""PullRequest: the next pull of one queue.

Source: org.apache.rocketmq.client.impl.consumer.PullRequest, RocketMQ 5.3.
"""

from __future__ import annotations

from dataclasses import dataclass

from crashmq.engine.client.impl.consumer.process_queue import ProcessQueue
from crashmq.engine.common.message_queue import MessageQueue


@dataclass(slots=True, eq=False)
class PullRequest:
    """The next pull of a queue; there is one for each process queue in use.

    Attributes:
        previously_locked: the offset was read again after the queue was locked.
    """

    group: str
    queue: MessageQueue
    process_queue: ProcessQueue
    next_offset: int
    previously_locked: bool = False
