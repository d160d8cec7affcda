"""Clients that pass on what their consumers have not done."""

from __future__ import annotations

from misreporting import Lie, bug, does

from crashmq.models.ops import (
    AdvanceClock,
    Consume,
    Crash,
    During,
    EndConsumer,
    PutBatch,
    Restart,
    RunService,
    StartConsumer,
    TurnConsumer,
)
from crashmq.models.program import Setup

POWER_LOSS = Crash("power_loss")
_CONSUMED = does(
    Setup(keeps_progress=True),
    *(PutBatch("T0", 0, (1, 1)), RunService("reput"), StartConsumer("c0", "g", "T0")),
    *(TurnConsumer("c0", "rebalance"), AdvanceClock(500)),
    *(TurnConsumer("c0", "pull", 2), Consume("c0", times=2)),
    TurnConsumer("c0", "persist"),
)
_CONSUMED_IN_ORDER = does(
    Setup(keeps_progress=True),
    *(PutBatch("T0", 0, (1, 1)), RunService("reput")),
    StartConsumer("c0", "g", "T0", is_orderly=True),
    *(TurnConsumer("c0", "rebalance"), AdvanceClock(500)),
    *(TurnConsumer("c0", "pull", 8), Consume("c0", times=2)),
    TurnConsumer("c0", "persist"),
)


def _lie(law: str, function: str, before: str, after: str) -> Lie:
    place = f"crashmq.harness.subjects.clients:_Client.{function}"
    in_order = law in ("CON-12", "CON-13", "CON-14", "CON-40")
    return bug(law, place, before, after, _CONSUMED_IN_ORDER if in_order else _CONSUMED)


_SILENT = does(
    Setup(keeps_progress=True),
    *(StartConsumer("c0", "g", "T0"), StartConsumer("c1", "g", "T0")),
    *(EndConsumer("c1", "vanish"), AdvanceClock(130_000)),
    *(TurnConsumer("c0", "heartbeat"), RunService("client_housekeeping")),
    TurnConsumer("c0", "rebalance"),
)
_KEPT = does(
    Setup(keeps_progress=True),
    *(PutBatch("T0", 0, (1, 1)), RunService("reput"), StartConsumer("c0", "g", "T0")),
    *(TurnConsumer("c0", "rebalance"), AdvanceClock(500)),
    *(TurnConsumer("c0", "pull", 2), Consume("c0", status="later")),
    *(AdvanceClock(5000), Consume("c0", times=2)),
)
_STOPPED = does(
    Setup(keeps_progress=True), StartConsumer("c0", "g", "T0"), EndConsumer("c0")
)
_TWO = does(
    Setup(keeps_progress=True),
    *(StartConsumer("c0", "g", "T0"), StartConsumer("c1", "g", "T0")),
    EndConsumer("c1"),
)
_CUT = does(
    Setup(keeps_progress=True, topic_queues=1),
    *(PutBatch("T0", 0, (1, 1)), AdvanceClock(10_000), RunService("flush_commit_log")),
    *(PutBatch("T0", 0, (1,)), RunService("reput"), StartConsumer("c0", "g", "T0")),
    *(TurnConsumer("c0", "rebalance"), AdvanceClock(500)),
    *(TurnConsumer("c0", "pull", 2), During(RunService("reput"), 1, POWER_LOSS)),
    *(Restart(), TurnConsumer("c0", "heartbeat"), AdvanceClock(31_000)),
    *(TurnConsumer("c0", "pull"), AdvanceClock(1000), TurnConsumer("c0", "pull", 2)),
)
_NAMED = "broker.consumer_manager.consumer_id_list(group)"

LIES_OF_CONSUMERS = (
    *(
        bug(
            "MBR-3",
            "crashmq.harness.subjects.clients:_Client.consumer_id_list",
            _NAMED,
            after,
            _SILENT,
        )
        for after in (f"[*{_NAMED}, 'c1']", "['c1', self.op.client]")
    ),
    *(
        bug(
            "MBR-4",
            "crashmq.harness.subjects.connections:Notified.consumer_ids_changed",
            "(*client_ids,)",
            after,
            _TWO,
        )
        for after in ("(*client_ids[1:],)", "(*client_ids, 'c1')")
    ),
    *(
        bug(
            "CON-42",
            "crashmq.engine.broker.processor.pull_message_processor"
            ":PullMessageProcessor._where_to_begin_again",
            "return min(begin, end)",
            after,
            _CUT,
        )
        for after in ("return max(begin, end)", "return end")
    ),
    *(
        bug(
            "RTY-4",
            "crashmq.harness.subjects.clients:_Client.take",
            "message.reconsume_times",
            after,
            _KEPT,
        )
        for after in ("0", "2 * message.reconsume_times")
    ),
    _lie(
        "CON-41",
        "tell_when_next",
        "self.op.client, after_ms",
        "self.op.client, after_ms // 2",
    ),
    _lie(
        "CON-40",
        "take",
        "self._calls.count(queue) - 1",
        "self._calls.count(queue)",
    ),
    _lie("CON-35", "take", "message.body,", "message.body[:-1],"),
    bug(
        "CON-37",
        "crashmq.harness.subjects.clients:Clients.end",
        "running.consumer.shutdown()",
        "running.consumer.shutdown() or self.runtime.sleep_ms(10)",
        _STOPPED,
    ),
    bug(
        "CON-38",
        "crashmq.harness.subjects.clients:Clients.turn",
        "return Ran(work)",
        "return Ran(0)",
        _CONSUMED,
    ),
    bug(
        "CON-39",
        "crashmq.harness.subjects.clients:Clients.end",
        "work = running.work_by_itself()",
        "work = 1 + running.work_by_itself()",
        _STOPPED,
    ),
    _lie(
        "CON-3",
        "pull_message",
        "PullSent(queue, request.queue_offset, told)",
        "PullSent(queue, 2 * request.queue_offset, told)",
    ),
    _lie("CON-4", "take", "message.record,", "message.record[::-1],"),
    _lie("CON-25", "tell_queues", "if not its.dropped", "if its.dropped"),
    _lie(
        "CON-9",
        "update_consumer_offset_oneway",
        "kept = self._kept(broker, queue)",
        "kept = 3 * self._kept(broker, queue)",
    ),
    _lie(
        "CON-18",
        "update_consumer_offset_oneway",
        "kept = self._kept(broker, queue)",
        "kept = self._kept(broker, queue) - 1",
    ),
    _lie(
        "CON-12",
        "lock_batch",
        "_keys(granted), _keys(refused)",
        "(), _keys(queues)",
    ),
    _lie(
        "CON-13",
        "take",
        "where = self.queue_of_mine(queue)",
        """
        where = self.queue_of_mine(queue)
        self._clients.note(LocksReturned(where.client, where.group, (where[2:],)))
        """,
    ),
    _lie("CON-14", "lock_batch", "_keys(granted), _keys(refused)", "(), ()"),
    _lie(
        "CON-16",
        "update_consumer_offset_oneway",
        "self._clients.note(OffsetSent(self.queue_of_mine(queue), offset, kept))",
        "pass",
    ),
)
