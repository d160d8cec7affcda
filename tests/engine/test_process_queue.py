"""ProcessQueue: what it counts, what it commits, beside a model of two sets."""

from __future__ import annotations

import pytest
from fake_broker import queue_of
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from messages import message_of

from crashmq.engine.client.consumer.store.offset_store import (
    OffsetTable,
    ReadOffsetType,
)
from crashmq.engine.client.consumer.store.remote_broker_offset_store import (
    RemoteBrokerOffsetStore,
)
from crashmq.engine.client.impl.consumer.process_queue import (
    NOTHING_TO_COMMIT,
    PULL_MAX_IDLE_TIME,
    REBALANCE_LOCK_MAX_LIVE_TIME,
    OffsetTree,
    ProcessQueue,
    QueueLease,
)
from crashmq.engine.common.message_ext import NOT_BEGUN
from crashmq.engine.common.message_queue import MessageQueue
from crashmq.harness.scheduling.sim_runtime import SimRuntime

T = queue_of("T")


def filled(*offsets: int) -> ProcessQueue:
    queue = ProcessQueue(SimRuntime(0))
    queue.put_message([message_of(offset) for offset in offsets])
    return queue


def test_e1_out_of_order_completions_commit_the_smallest_that_is_left() -> None:
    queue, table = filled(100, 101, 102, 103), OffsetTable(SimRuntime(0))
    table.update(T, 100, increase_only=False)
    results, memory = [], []

    for offset in (102, 103, 100, 101):
        results.append(queue.remove_message([message_of(offset)]))
        table.update(T, results[-1], increase_only=True)
        memory.append(table.get(T))

    assert results == [100, 100, 101, 104]
    assert memory == [100, 100, 101, 104]


def test_a_completion_of_an_emptied_queue_commits_nothing() -> None:
    queue = filled(5, 6)
    queue.clear()

    assert queue.remove_message([message_of(5)]) == NOTHING_TO_COMMIT
    assert (queue.msg_count, queue.msg_size, queue.offsets) == (0, 0, ())


def test_the_span_is_that_of_the_messages_that_wait() -> None:
    queue = filled(10, 12, 2011)

    assert queue.max_span == 2001
    queue.take_messages(1)
    assert queue.max_span == 1999
    assert ProcessQueue(SimRuntime(0)).max_span == 0


def test_a_run_is_begun_by_the_first_message_and_ended_by_an_empty_take() -> None:
    queue = ProcessQueue(SimRuntime(0))

    assert queue.put_message([message_of(0)])
    assert not queue.put_message([message_of(1)])
    assert [m.queue_offset for m in queue.take_messages(9)] == [0, 1]
    assert not queue.put_message([])
    assert queue.take_messages(9) == []
    assert queue.put_message([message_of(2)])


def test_what_is_dropped_notes_no_offset() -> None:
    queue = filled(7)
    store = RemoteBrokerOffsetStore("g", None, SimRuntime(0))  # type: ignore[arg-type] # never asked
    memory = ReadOffsetType.READ_FROM_MEMORY

    assert queue.commit_offset(T, 8, store, increase_only=True)
    queue.drop()
    assert not queue.commit_offset(T, 9, store, increase_only=True)
    assert store.read_offset(T, memory) == 8


class SlowStore(RemoteBrokerOffsetStore):
    """A store during whose update another activity drops the queue."""

    def __init__(self, runtime: SimRuntime, queue: ProcessQueue) -> None:
        super().__init__("g", None, runtime)  # type: ignore[arg-type] # never asked
        self.runtime, self.queue = runtime, queue
        self.seen: list[str] = []

    def update_offset(
        self, queue: MessageQueue, offset: int, *, increase_only: bool
    ) -> None:
        self.runtime.spawn(self._drop)
        self.seen.append("updated")

    def _drop(self) -> None:
        self.queue.drop()
        self.seen.append("dropped")


def test_a_queue_is_not_dropped_between_the_look_and_the_commit() -> None:
    runtime = SimRuntime(0)
    queue = ProcessQueue(runtime)
    store = SlowStore(runtime, queue)

    runtime.run(lambda: queue.commit_offset(T, 8, store, increase_only=True))

    assert store.seen == ["updated", "dropped"]


def test_what_is_dropped_or_held_is_not_held_again() -> None:
    queue = filled(7)

    assert queue.hold()
    assert not queue.hold()
    queue.let_go()
    queue.drop()
    assert not queue.hold()


def test_the_first_message_is_told_only_once_a_listener_has_it() -> None:
    queue = filled(3, 4)
    first = next(iter(queue._tree))
    assert queue.first_begun() is None

    first.consume_start_timestamp = 1
    assert queue.first_begun() is first
    queue.remove_if_first(message_of(4))
    assert list(queue.offsets) == [3, 4]
    queue.remove_if_first(first)
    assert list(queue.offsets) == [4]
    assert message_of(4).consume_start_timestamp == NOT_BEGUN


def test_a_lease_runs_out_and_does_not_survive_a_clock_set_back() -> None:
    lease = QueueLease()
    assert not lease.holds(0)

    lease.grant(1000)
    end = 1000 + REBALANCE_LOCK_MAX_LIVE_TIME
    assert lease.holds(1000)
    assert lease.holds(end)
    assert not lease.holds(end + 1)
    assert not lease.holds(999)
    lease.refuse()
    assert not lease.holds(1000)


def test_nobody_pulls_a_queue_whose_request_is_lost() -> None:
    queue = ProcessQueue(SimRuntime(1000))

    assert not queue.is_pull_expired(1000 + PULL_MAX_IDLE_TIME)
    assert queue.is_pull_expired(1001 + PULL_MAX_IDLE_TIME)
    assert not queue.is_pull_expired(500)  # the clock was set back
    assert queue.is_pull_expired(501 + PULL_MAX_IDLE_TIME)


def test_a_tree_keeps_its_order() -> None:
    tree = OffsetTree()
    for offset in (5, 1, 3):
        assert tree.put(message_of(offset))
    assert not tree.put(message_of(3, b"another"))

    assert [message.queue_offset for message in tree] == [1, 3, 5]
    assert (tree.first, tree.last, len(tree)) == (1, 5, 3)
    assert tree.pop(4) is None
    assert tree.pop(3) is not None
    assert 3 not in tree


class ProcessQueueModel(RuleBasedStateMachine):
    """A queue that is consumed in any order and in its order, beside two sets.

    ``unfinished`` are the offsets that nobody has finished; an offset to commit must
    never be above any of them.
    """

    @initialize(start=st.integers(0, 5))
    def begin(self, start: int) -> None:
        self.queue = ProcessQueue(SimRuntime(0))
        self.next_offset = start
        self.waiting: set[int] = set()
        self.taken: set[int] = set()
        self.bodies: dict[int, int] = {}

    @rule(gaps=st.lists(st.integers(0, 3), max_size=6), size=st.integers(0, 40))
    def put(self, gaps: list[int], size: int) -> None:
        messages = []
        for gap in gaps:
            offset = self.next_offset + gap
            messages.append(message_of(offset, b"y" * size))
            self.bodies[offset] = size
            self.waiting.add(offset)
            self.next_offset = offset + 1
        self.queue.put_message(messages)

    @rule(count=st.integers(1, 4))
    def put_again_what_is_there(self, count: int) -> None:
        there = sorted(self.waiting)[:count]
        self.queue.put_message([message_of(o, b"y" * self.bodies[o]) for o in there])

    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        known = sorted(self.bodies)
        some = data.draw(st.sets(st.sampled_from(known), max_size=5) if known else NONE)
        was_empty = not self.waiting

        offset = self.queue.remove_message([message_of(o) for o in sorted(some)])

        self.waiting -= some
        if was_empty:
            assert offset == NOTHING_TO_COMMIT
        elif self.waiting:
            assert offset == min(self.waiting)
        else:
            assert offset == max(self.bodies) + 1 <= self.next_offset

    @rule(batch=st.integers(1, 4))
    def take(self, batch: int) -> None:
        expected = sorted(self.waiting)[:batch]

        taken = [message.queue_offset for message in self.queue.take_messages(batch)]

        assert taken == expected
        self.waiting -= set(expected)
        self.taken |= set(expected)

    @rule()
    def commit(self) -> None:
        expected = max(self.taken) + 1 if self.taken else NOTHING_TO_COMMIT

        assert self.queue.commit() == expected
        self.taken.clear()

    @rule()
    def rollback(self) -> None:
        self.queue.rollback()
        self.waiting |= self.taken
        self.taken.clear()

    @rule(data=st.data(), again=st.booleans())
    def some_of_what_was_taken(self, data: st.DataObject, again: bool) -> None:
        there = sorted(self.taken)
        some = data.draw(st.sets(st.sampled_from(there)) if there else NONE)
        messages = [message_of(o, b"y" * self.bodies[o]) for o in sorted(some)]
        if again:
            self.queue.make_message_to_consume_again(messages)
            self.waiting |= some
        else:
            self.queue.forget_taken(messages)
        self.taken -= some

    @rule()
    def clear(self) -> None:
        self.queue.clear()
        self.waiting.clear()
        self.taken.clear()
        self.bodies.clear()

    @invariant()
    def its_accounts_are_right(self) -> None:
        if not hasattr(self, "queue"):
            return
        there = self.waiting | self.taken
        assert self.queue.offsets == tuple(sorted(there))
        assert self.queue.msg_count == len(there)
        assert self.queue.msg_size == sum(self.bodies[offset] for offset in there)
        span = max(self.waiting) - min(self.waiting) if self.waiting else 0
        assert self.queue.max_span == span
        self.queue._check()


NONE: st.SearchStrategy[set[int]] = st.just(set())
TestProcessQueueModel = pytest.mark.slow(ProcessQueueModel.TestCase)
