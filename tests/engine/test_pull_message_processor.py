"""What a pull is answered: its checks, its codes, what it commits, when it is held."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from store_builder import StoreBuilder

from crashmq.engine.broker.broker_config import BrokerConfig
from crashmq.engine.broker.broker_controller import BrokerController
from crashmq.engine.broker.offset.consumer_offset_manager import ConsumerOffsetManager
from crashmq.engine.broker.offset.recovered_ends import RecoveredEnds
from crashmq.engine.broker.processor.pull_checks import (
    PullChecks,
    PullRefused,
)
from crashmq.engine.broker.processor.pull_message_processor import (
    PullMessageProcessor,
    code_of,
)
from crashmq.engine.remoting.heartbeat_data import ConsumerData, MessageModel
from crashmq.engine.remoting.pull_message import (
    PullMessageRequest,
    PullMessageResponse,
    PullSysFlag,
)
from crashmq.engine.remoting.response_code import ResponseCode
from crashmq.engine.remoting.subscription_data import SubscriptionData
from crashmq.engine.store.config import BrokerRole
from crashmq.engine.store.message.tags_filter import TagsFilter
from crashmq.engine.store.message_store import MessageStore
from crashmq.engine.store.results import GetMessageStatus

COMMIT, SUSPEND = PullSysFlag.COMMIT_OFFSET, PullSysFlag.SUSPEND
PULL = PullMessageRequest("g", "T0", 0, 0)
Answers = list[PullMessageResponse]


def broker_around(
    store: StoreBuilder, config: BrokerConfig | None = None
) -> BrokerController:
    """A started broker whose store the builder puts to and turns."""
    of_messages = MessageStore(store.config, store.mount, store.runtime)
    broker = BrokerController(of_messages, store.mount, store.runtime, config)
    broker.load()
    broker.start()
    for topic in ("T0", "T1"):
        broker.send_message_processor.topic_of(topic)
    topics = tuple([SubscriptionData(topic) for topic in ("T0", "T1", "%LMQ%a")])
    groups = [ConsumerData(group, subscriptions=topics) for group in "gabc"]
    broker.client_manage_processor.heart_beat("c", groups)
    store._store = broker.message_store
    return broker


def asked(broker: BrokerController, request: PullMessageRequest) -> Answers:
    """Ask; the list gets the answer whenever it comes."""
    answers: Answers = []
    broker.pull_message_processor.process_request(request, answers.append)
    return answers


def codes(answers: Answers) -> list[ResponseCode]:
    return [answer.code for answer in answers]


def test_each_status_has_its_code() -> None:
    assert {status.value: code_of(status, 7).value for status in GetMessageStatus} == {
        "FOUND": 0,
        "NO_MATCHED_MESSAGE": 20,
        "MESSAGE_WAS_REMOVING": 20,
        "OFFSET_FOUND_NULL": 19,
        "OFFSET_OVERFLOW_BADLY": 21,
        "OFFSET_OVERFLOW_ONE": 19,
        "OFFSET_TOO_SMALL": 21,
        "NO_MATCHED_LOGIC_QUEUE": 21,
        "NO_MESSAGE_IN_QUEUE": 21,
        "OFFSET_RESET": 21,
    }
    for status in ("NO_MATCHED_LOGIC_QUEUE", "NO_MESSAGE_IN_QUEUE"):
        assert code_of(GetMessageStatus[status], 0).value == 19


@pytest.mark.parametrize(
    ("queue_offset", "code", "next_begin"),
    [(0, "SUCCESS", 3), (2, "SUCCESS", 3), (3, "PULL_NOT_FOUND", 3)],
)
def test_a_pull_says_where_to_go_on(
    store: StoreBuilder, queue_offset: int, code: str, next_begin: int
) -> None:
    broker = broker_around(store)
    store.put(3).reput()

    (answer,) = asked(broker, replace(PULL, queue_offset=queue_offset))

    assert answer.code is ResponseCode[code]
    assert answer.next_begin_offset == next_begin
    assert (answer.min_offset, answer.max_offset) == (0, 3)
    assert len(answer.messages) == 3 - queue_offset


def test_a_pull_beyond_the_end_is_sent_back(store: StoreBuilder) -> None:
    broker = broker_around(store)
    store.put(3).reput()

    (answer,) = asked(broker, replace(PULL, queue_offset=9, sys_flag=SUSPEND))

    assert answer.code is ResponseCode.PULL_OFFSET_MOVED
    assert answer.next_begin_offset == 3


def test_a_tag_expression_of_the_request_counts_with_its_bit(
    store: StoreBuilder,
) -> None:
    broker = broker_around(store)
    store.put(2).put(properties={"TAGS": "A"}).reput()
    by_tag = replace(PULL, subscription="A")

    (all_of_them,) = asked(broker, by_tag)
    (one,) = asked(broker, replace(by_tag, sys_flag=PullSysFlag.SUBSCRIPTION))
    (none,) = asked(
        broker, replace(PULL, subscription="B", sys_flag=PullSysFlag.SUBSCRIPTION)
    )

    assert [len(a.messages) for a in (all_of_them, one, none)] == [3, 1, 0]
    assert none.code is ResponseCode.PULL_RETRY_IMMEDIATELY
    assert none.next_begin_offset == 3


def test_a_pull_commits_when_it_first_arrives_and_never_again(
    store: StoreBuilder,
) -> None:
    broker = broker_around(store)
    offsets = broker.consumer_offset_manager

    store.put(6).reput()
    pull = replace(PULL, queue_offset=6, sys_flag=COMMIT | SUSPEND, commit_offset=4)
    answers = asked(broker, pull)
    assert offsets.query_offset("g", "T0", 0) == 4
    offsets.commit_offset("g", "T0", 0, 6)
    store.put().reput()

    assert codes(answers) == [ResponseCode.SUCCESS]
    assert offsets.query_offset("g", "T0", 0) == 6
    assert offsets.query_pull_offset("g", "T0", 0) == 7


@pytest.mark.parametrize("flag", [PullSysFlag.NONE, SUSPEND])
def test_a_pull_without_the_bit_commits_nothing(
    store: StoreBuilder, flag: PullSysFlag
) -> None:
    broker = broker_around(store)

    asked(broker, replace(PULL, sys_flag=flag, commit_offset=4))

    assert broker.consumer_offset_manager.query_offset("g", "T0", 0) == -1


def test_a_pull_to_a_slave_commits_nothing_and_is_not_sent_elsewhere(
    store: StoreBuilder,
) -> None:
    store.put(3).reput().stop()
    store.configured(broker_role=BrokerRole.SLAVE)
    broker = broker_around(store)

    (answer,) = asked(
        broker, replace(PULL, queue_offset=9, sys_flag=COMMIT, commit_offset=2)
    )

    assert answer.code is ResponseCode.PULL_RETRY_IMMEDIATELY
    assert answer.next_begin_offset == 9
    assert broker.consumer_offset_manager.query_offset("g", "T0", 0) == -1


def test_a_pull_that_meets_a_reset_does_not_undo_it(store: StoreBuilder) -> None:
    broker = broker_around(store)
    offsets = broker.consumer_offset_manager
    store.put(3).reput()
    offsets.commit_offset("g", "T0", 0, 3)
    offsets.assign_reset_offset("T0", "g", 0, 1)
    request = replace(PULL, queue_offset=3, sys_flag=COMMIT | SUSPEND, commit_offset=3)

    (answer,) = asked(broker, request)

    assert answer.code is ResponseCode.PULL_OFFSET_MOVED
    assert answer.next_begin_offset == 1
    assert offsets.query_offset("g", "T0", 0) == 1
    assert not offsets.has_offset_reset("T0", "g", 0)
    assert asked(broker, replace(request, sys_flag=SUSPEND)) == []


def test_what_cannot_be_read_is_answered_as_an_error(store: StoreBuilder) -> None:
    broker = broker_around(store)
    store.put(3).reput().fail("read", "EIO")

    (answer,) = asked(broker, PULL)

    assert answer.code is ResponseCode.SYSTEM_ERROR
    assert "EIO" in answer.remark or "Input/output" in answer.remark


def test_a_stopped_broker_answers_that_it_is(store: StoreBuilder) -> None:
    broker = broker_around(store)
    store.runtime.run(broker.shutdown)

    (answer,) = asked(broker, replace(PULL, sys_flag=SUSPEND))

    assert answer.code is ResponseCode.SYSTEM_ERROR
    assert "not started" in answer.remark


@dataclass(frozen=True)
class _Topic:
    is_readable: bool = True
    read_queue_nums: int = 4


@dataclass(frozen=True)
class _Group:
    consume_enable: bool = True
    consume_broadcast_enable: bool = True


_SUBSCRIBED = SubscriptionData("T0", sub_version=5)


@dataclass(frozen=True)
class _Consumers:
    message_model: MessageModel = "CLUSTERING"
    subscription: SubscriptionData | None = _SUBSCRIBED


@dataclass(frozen=True)
class _Known:
    """Topics, groups and consumers of a broker, of one kind each."""

    topic: _Topic | None = _Topic()
    group: _Group | None = _Group()
    consumers: _Consumers | None = _Consumers()

    def select_topic_config(self, topic: str) -> _Topic | None:
        return self.topic

    def find_or_default(self, group: str) -> _Group | None:
        return self.group

    def message_model_of(self, group: str) -> MessageModel | None:
        return self.consumers.message_model if self.consumers else None

    def find_subscription_data(self, group: str, topic: str) -> SubscriptionData | None:
        return self.consumers.subscription if self.consumers else None


def code_with(
    store: StoreBuilder,
    known: _Known,
    request: PullMessageRequest = PULL,
    config: BrokerConfig | None = None,
) -> ResponseCode:
    config = config or BrokerConfig()
    processor = PullMessageProcessor(
        store.live,
        ConsumerOffsetManager(store.mount, store.runtime),
        store.runtime,
        config,
        PullChecks(config, known, known, known),
        RecoveredEnds(store.mount, store.runtime),
        lambda _, subscription: TagsFilter(
            frozenset(subscription.tags), frozenset(subscription.codes)
        ),
    )
    answers: Answers = []
    processor.process_request(request, answers.append)
    (answer,) = answers
    assert bool(answer.remark) is (answer.code is not ResponseCode.PULL_NOT_FOUND)
    return answer.code


@pytest.mark.parametrize(
    ("known", "request_", "code"),
    [
        (_Known(), PULL, "PULL_NOT_FOUND"),
        (_Known(group=None), PULL, "SUBSCRIPTION_GROUP_NOT_EXIST"),
        (_Known(group=_Group(consume_enable=False)), PULL, "NO_PERMISSION"),
        (_Known(topic=None), PULL, "TOPIC_NOT_EXIST"),
        (_Known(topic=None, group=None), PULL, "SUBSCRIPTION_GROUP_NOT_EXIST"),
        (_Known(topic=_Topic(is_readable=False)), PULL, "NO_PERMISSION"),
        (_Known(), replace(PULL, queue_id=4), "INVALID_PARAMETER"),
        (_Known(), replace(PULL, queue_id=-1), "INVALID_PARAMETER"),
        (_Known(consumers=None), PULL, "SUBSCRIPTION_NOT_EXIST"),
        (
            _Known(consumers=_Consumers(subscription=None)),
            PULL,
            "SUBSCRIPTION_NOT_EXIST",
        ),
        (_Known(), replace(PULL, sub_version=6), "SUBSCRIPTION_NOT_LATEST"),
        (_Known(), replace(PULL, sub_version=5), "PULL_NOT_FOUND"),
        (
            _Known(
                group=_Group(consume_broadcast_enable=False),
                consumers=_Consumers("BROADCASTING"),
            ),
            PULL,
            "NO_PERMISSION",
        ),
        (
            _Known(),
            replace(PULL, subscription="||", sys_flag=PullSysFlag.SUBSCRIPTION),
            "SUBSCRIPTION_PARSE_FAILED",
        ),
        (
            _Known(
                consumers=_Consumers(
                    subscription=SubscriptionData(
                        "T0", "a > 1", expression_type="SQL92"
                    )
                )
            ),
            PULL,
            "SYSTEM_ERROR",
        ),
    ],
)
def test_a_pull_is_refused_for_the_first_check_that_it_fails(
    store: StoreBuilder, known: _Known, request_: PullMessageRequest, code: str
) -> None:
    assert code_with(store, known, request_) is ResponseCode[code]


def test_a_broker_refuses_what_it_may_not_answer(store: StoreBuilder) -> None:
    lite = replace(PULL, sys_flag=PullSysFlag.LITE_PULL_MESSAGE)
    none_lite = BrokerConfig(lite_pull_message_enable=False)

    unreadable = BrokerConfig(is_readable=False)
    no_permission = ResponseCode.NO_PERMISSION
    assert code_with(store, _Known(group=None), config=unreadable) is no_permission
    assert code_with(store, _Known(), lite, none_lite) is no_permission
    assert code_with(store, _Known(), lite) is ResponseCode.PULL_NOT_FOUND
    assert code_with(store, _Known(), config=none_lite) is ResponseCode.PULL_NOT_FOUND


def test_checks_without_managers_know_everybody() -> None:
    checks = PullChecks(BrokerConfig())

    assert checks.check(replace(PULL, queue_id=99)) == SubscriptionData("T0")
    with pytest.raises(PullRefused) as refused:
        checks.check(replace(PULL, queue_id=-1))
    assert refused.value.code is ResponseCode.INVALID_PARAMETER
