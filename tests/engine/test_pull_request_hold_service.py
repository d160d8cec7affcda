"""Held pulls: each is answered once, when something comes, in time, or at a stop."""

from __future__ import annotations

from dataclasses import replace

import pytest
from store_builder import StoreBuilder
from test_pull_message_processor import PULL, Answers, asked, broker_around, codes

from crashmq.engine.broker.broker_config import BrokerConfig
from crashmq.engine.broker.longpolling.pull_request import PullRequest
from crashmq.engine.broker.longpolling.pull_request_hold_service import (
    PullRequestHoldService,
)
from crashmq.engine.host.probe import recording
from crashmq.engine.remoting.pull_message import PullMessageResponse, PullSysFlag
from crashmq.engine.remoting.response_code import ResponseCode
from crashmq.engine.store.errors import StoreStopped
from crashmq.engine.store.message_arriving_listener import ArrivedMessage

SUSPEND = PullSysFlag.SUSPEND
HELD = replace(PULL, sys_flag=SUSPEND)
FOR_A = replace(HELD, sys_flag=SUSPEND | PullSysFlag.SUBSCRIPTION, subscription="A")
NOT_FOUND, RETRY = ResponseCode.PULL_NOT_FOUND, ResponseCode.PULL_RETRY_IMMEDIATELY
SUCCESS = ResponseCode.SUCCESS


def test_a_message_wakes_the_pull_that_waits_for_it(store: StoreBuilder) -> None:
    broker = broker_around(store)
    here, there = asked(broker, HELD), asked(broker, replace(HELD, queue_id=1))

    store.put()
    assert here == []
    store.reput()

    assert codes(here) == [SUCCESS]
    assert there == []
    store.put().reput()
    assert len(here) == 1


def test_a_pull_without_the_bit_is_not_held(store: StoreBuilder) -> None:
    broker = broker_around(store)

    assert codes(asked(broker, PULL)) == [NOT_FOUND]


def test_all_who_wait_for_a_message_get_it(store: StoreBuilder) -> None:
    broker = broker_around(store)
    waiting = [asked(broker, replace(HELD, consumer_group=g)) for g in "abc"]

    store.put().reput()

    assert [codes(answers) for answers in waiting] == [[SUCCESS]] * 3


def test_a_message_that_does_not_match_wakes_nobody_but_the_look_does(
    store: StoreBuilder,
) -> None:
    broker = broker_around(store)
    answers = asked(broker, FOR_A)

    with recording() as hits:
        store.put(2).reput()
    assert answers == []
    assert hits["pull_request_hold.unmatched"] == 2

    assert broker.pull_message_processor.hold.run_once() == 1
    assert codes(answers) == [RETRY]
    assert answers[0].next_begin_offset == 2


def test_tags_that_share_a_hash_do_not_wake(store: StoreBuilder) -> None:
    broker = broker_around(store)
    answers = asked(broker, replace(FOR_A, subscription="Aa"))

    store.put(properties={"TAGS": "BB"}).reput()
    assert answers == []
    store.put(properties={"TAGS": "Aa"}).reput()

    assert codes(answers) == [SUCCESS]
    assert len(answers[0].messages) == 1


def test_a_look_answers_whose_time_is_up_and_nobody_else(store: StoreBuilder) -> None:
    broker = broker_around(store)
    hold = broker.pull_message_processor.hold
    short, long = (
        asked(broker, replace(HELD, suspend_timeout_millis=n)) for n in (5, 6)
    )

    store.runtime.advance(4)
    assert hold.run_once() == 0
    store.runtime.advance(1)
    assert hold.run_once() == 1

    assert codes(short) == [NOT_FOUND]
    assert long == []


def test_without_long_polling_a_pull_is_held_for_a_second(store: StoreBuilder) -> None:
    broker = broker_around(store, BrokerConfig(long_polling_enable=False))
    hold = broker.pull_message_processor.hold
    woken, in_vain = asked(broker, HELD), asked(broker, replace(HELD, queue_id=1))

    store.put().reput()
    assert woken == []
    assert hold.interval_ms == 1000
    hold.run_once()
    assert codes(woken) == [SUCCESS]

    assert in_vain == []
    store.runtime.advance(1000)
    hold.run_once()
    assert codes(in_vain) == [NOT_FOUND]


def test_a_stop_answers_each_and_holds_none_any_more(store: StoreBuilder) -> None:
    broker = broker_around(store)
    waiting = [asked(broker, replace(HELD, queue_id=n)) for n in range(3)]
    hold = broker.pull_message_processor.hold

    assert store.runtime.run(broker.shutdown)

    assert [codes(answers) for answers in waiting] == [[NOT_FOUND]] * 3
    assert hold.run_once() == 0
    late: Answers = []
    assert not hold.suspend_pull_request(pull_to(late))


def test_a_message_between_the_read_and_the_hold_is_found(store: StoreBuilder) -> None:
    broker = broker_around(store)
    of_messages = broker.message_store
    read = of_messages.get_message

    def read_and_let_one_come(*args: object) -> object:
        found = read(*args)  # type: ignore[arg-type]
        of_messages.get_message = read  # type: ignore[method-assign]
        store.put().reput()
        return found

    of_messages.get_message = read_and_let_one_come  # type: ignore[assignment,method-assign]

    with recording() as hits:
        assert codes(asked(broker, HELD)) == [SUCCESS]
    assert hits["pull_request_hold.came_meanwhile"] == 1


class _Ends:
    """A store that says where its queues end, or that it cannot be read."""

    def __init__(self) -> None:
        self.end = 0
        self.is_readable = True

    def get_max_offset_in_queue(self, topic: str, queue_id: int) -> int:
        if not self.is_readable:
            raise StoreStopped("it must not be read")
        return self.end


class _Everything:
    """A filter that lets everything through."""

    def is_matched_by_consume_queue(self, *args: object) -> bool:
        return True

    def is_matched_by_commit_log(self, *args: object) -> bool:
        return True


def pull_to(answers: Answers, offset: int = 0, timeout_ms: int = 15_000) -> PullRequest:
    return PullRequest(HELD, answers.append, timeout_ms, 0, offset, _Everything())


def held(ends: _Ends, store: StoreBuilder) -> PullRequestHoldService:
    def execute(pull: PullRequest) -> None:
        pull.answer(PullMessageResponse(NOT_FOUND))

    return PullRequestHoldService(ends, BrokerConfig(), store.runtime, execute)


def test_a_queue_whose_end_nobody_tells_keeps_its_pulls(store: StoreBuilder) -> None:
    ends, answers = _Ends(), list[PullMessageResponse]()
    hold = held(ends, store)
    store.runtime.advance(-store.runtime.now_ms())
    hold.suspend_pull_request(pull_to(answers))

    ends.is_readable, ends.end = False, 1
    assert hold.run_once() == 0
    ends.is_readable = True
    assert hold.run_once() == 1

    assert len(answers) == 1


def test_a_filter_that_raises_loses_no_pull(store: StoreBuilder) -> None:
    class Broken(_Everything):
        def is_matched_by_consume_queue(self, *args: object) -> bool:
            raise ZeroDivisionError

    ends, answers = _Ends(), list[PullMessageResponse]()
    hold = held(ends, store)
    broken = Broken()
    hold.suspend_pull_request(replace(pull_to(answers), message_filter=broken))
    ends.end = 1

    with pytest.raises(ZeroDivisionError):
        hold.notify_message_arriving(ArrivedMessage("T0", 0, 1, 0))
    hold.stop()

    assert len(answers) == 1


def test_a_client_that_raises_takes_no_answer_from_others(store: StoreBuilder) -> None:
    ends, answers = _Ends(), list[PullMessageResponse]()
    hold = held(ends, store)

    def raises(response: PullMessageResponse) -> None:
        raise ConnectionError("gone")

    hold.suspend_pull_request(replace(pull_to(answers), answer=raises))
    hold.suspend_pull_request(pull_to(answers))
    ends.end = 1

    with pytest.raises(ConnectionError):
        hold.run_once()

    assert len(answers) == 1
    assert hold.run_once() == 0


def test_a_message_that_its_queue_does_not_have_wakes_nobody(
    store: StoreBuilder,
) -> None:
    answers: Answers = []
    ends = _Ends()
    hold = held(ends, store)
    hold.suspend_pull_request(replace(pull_to(answers), suspend_timestamp=1 << 60))

    assert hold.notify_message_arriving(ArrivedMessage("T0", 0, 1, 0)) == 0
    ends.end = 1
    assert hold.notify_message_arriving(ArrivedMessage("T0", 0, 1, 0)) == 1

    assert len(answers) == 1


def test_a_prepared_message_wakes_nobody(store: StoreBuilder) -> None:
    broker = broker_around(store)
    answers = asked(broker, HELD)

    store.put(sys_flag=0x4).reput()
    assert answers == []
    store.put(sys_flag=0x8).reput()

    assert codes(answers) == [SUCCESS]


def test_a_message_wakes_who_waits_in_a_light_queue(store: StoreBuilder) -> None:
    store.configured(enable_multi_dispatch=True)
    broker = broker_around(store)
    answers = asked(broker, replace(HELD, topic="%LMQ%a"))

    store.put(properties={"INNER_MULTI_DISPATCH": "%LMQ%a"}).reput()

    assert codes(answers) == [SUCCESS]
