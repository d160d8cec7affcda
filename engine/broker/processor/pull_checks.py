"""PullChecks: what a pull must satisfy before anything is read for it.

The managers of topics, groups, consumers and filters are asked through small
interfaces; if a broker has no such manager, everything is known and allowed.

Source: org.apache.rocketmq.broker.processor.PullMessageProcessor#processRequest,
RocketMQ 5.3. Differs: a pull that carries an invalid SQL92 expression is refused, where
RocketMQ's returns every message.
"""

from __future__ import annotations

from typing import Protocol

from crashmq.engine.broker.broker_config import BrokerConfig
from crashmq.engine.filter.selector_parser import parse as parse_selector
from crashmq.engine.host.probe import probe
from crashmq.engine.remoting.filter_api import build_subscription_data
from crashmq.engine.remoting.heartbeat_data import MessageModel
from crashmq.engine.remoting.pull_message import PullMessageRequest, PullSysFlag
from crashmq.engine.remoting.response_code import ResponseCode
from crashmq.engine.remoting.subscription_data import SubscriptionData

REFUSED = probe("pull_checks.refused", "a pull was refused before anything was read")


class PullRefused(Exception):
    """A pull is refused with ``code``; the message says why."""

    def __init__(self, code: ResponseCode, why: str) -> None:
        super().__init__(why)
        self.code = code


class ReadableTopic(Protocol):
    """What the checks need to know of a topic. Source: TopicConfig."""

    @property
    def is_readable(self) -> bool:
        """Whether its messages may be read."""

    @property
    def read_queue_nums(self) -> int:
        """How many queues may be read, from 0 on."""


class KnownTopics(Protocol):
    """The topics of a broker."""

    def select_topic_config(self, topic: str) -> ReadableTopic | None:
        """A topic; None: there is none. Source: TopicConfigManager."""


class ConsumingGroup(Protocol):
    """What the checks need to know of a group. Source: SubscriptionGroupConfig."""

    @property
    def consume_enable(self) -> bool:
        """Whether the group may consume."""

    @property
    def consume_broadcast_enable(self) -> bool:
        """Whether it may consume as a broadcast."""


class KnownGroups(Protocol):
    """What the checks ask of the groups that a broker has configurations of."""

    def find_or_default(self, group: str) -> ConsumingGroup | None:
        """A group; None: there is none. Source: SubscriptionGroupManager."""


class KnownConsumers(Protocol):
    """What the checks ask of the broker's living consumers.

    Source: ConsumerManager.
    """

    def message_model_of(self, group: str) -> MessageModel | None:
        """Whether a group clusters or broadcasts; None: it has no member."""

    def find_subscription_data(self, group: str, topic: str) -> SubscriptionData | None:
        """A group's subscription to a topic; None: none."""


class RegisteredFilter(Protocol):
    """What the checks need to know of a group's filter. Source: ConsumerFilterData."""

    @property
    def client_version(self) -> int:
        """The version of the subscription that it was made for."""


class KnownFilters(Protocol):
    """The filters of a broker. Source: ConsumerFilterManager."""

    def get(self, topic: str, group: str) -> RegisteredFilter | None:
        """The filter of a group on a topic; None: it has none."""


class PullChecks:
    """Refuses a pull, or returns the subscription to filter it by."""

    def __init__(
        self,
        config: BrokerConfig,
        topics: KnownTopics | None = None,
        groups: KnownGroups | None = None,
        consumers: KnownConsumers | None = None,
        filters: KnownFilters | None = None,
    ) -> None:
        """Ask these managers; None: a broker without such a manager."""
        self._filters = filters
        self._config = config
        self._topics = topics
        self._groups = groups
        self._consumers = consumers

    def check(self, request: PullMessageRequest) -> SubscriptionData:
        """The subscription to filter a pull by.

        Raises:
            PullRefused: it must not be read.
        """
        try:
            self._check_broker(request)
            group = self._check_group(request)
            self._check_topic(request)
            if PullSysFlag.SUBSCRIPTION in request.sys_flag:
                subscription = self._from_request(request)
            else:
                subscription = self._from_heartbeat(request, group)
            if subscription.expression_type != "TAG":
                self._check_filter(request, subscription)
        except PullRefused:
            REFUSED.hit()
            raise
        return subscription

    def _check_filter(
        self, request: PullMessageRequest, subscription: SubscriptionData
    ) -> None:
        kind, topic = subscription.expression_type, subscription.topic
        name = request.consumer_group
        if self._filters is None or not self._config.enable_property_filter:
            raise PullRefused(
                ResponseCode.SYSTEM_ERROR,
                f"the broker does not filter by {kind}: subscribe by tags.",
            )
        if PullSysFlag.SUBSCRIPTION in request.sys_flag:
            return  # it carries its filter itself
        known = self._filters.get(topic, name)
        if known is None:
            raise PullRefused(
                ResponseCode.FILTER_DATA_NOT_EXIST,
                f"group {name} has no filter on {topic}: send a heartbeat.",
            )
        if known.client_version < subscription.sub_version:
            raise PullRefused(
                ResponseCode.FILTER_DATA_NOT_LATEST,
                f"the filter of group {name} on {topic} is older than what it "
                f"subscribes: send a heartbeat.",
            )

    def is_broadcasting(self, group: str) -> bool:
        """Whether each consumer of a group gets every message."""
        consumers = self._consumers
        return (
            consumers is not None
            and consumers.message_model_of(group) == "BROADCASTING"
        )

    def _check_broker(self, request: PullMessageRequest) -> None:
        is_lite = PullSysFlag.LITE_PULL_MESSAGE in request.sys_flag
        if not self._config.is_readable:
            raise PullRefused(
                ResponseCode.NO_PERMISSION, "the broker must not be read."
            )
        if is_lite and not self._config.lite_pull_message_enable:
            raise PullRefused(
                ResponseCode.NO_PERMISSION, "the broker takes no lite pulls."
            )

    def _check_group(self, request: PullMessageRequest) -> ConsumingGroup | None:
        name = request.consumer_group
        if self._groups is None:
            return None
        group = self._groups.find_or_default(name)
        if group is None:
            raise PullRefused(
                ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
                f"there is no group {name}: create it.",
            )
        if not group.consume_enable:
            raise PullRefused(
                ResponseCode.NO_PERMISSION, f"group {name} must not consume."
            )
        return group

    def _check_topic(self, request: PullMessageRequest) -> None:
        name = request.topic
        if self._topics is None:
            if request.queue_id < 0:
                raise PullRefused(
                    ResponseCode.INVALID_PARAMETER,
                    f"queue {request.queue_id}: queues are counted from 0.",
                )
            return
        topic = self._topics.select_topic_config(name)
        if topic is None:
            raise PullRefused(
                ResponseCode.TOPIC_NOT_EXIST, f"there is no topic {name}: create it."
            )
        if not topic.is_readable:
            raise PullRefused(
                ResponseCode.NO_PERMISSION, f"topic {name} must not be read."
            )
        if not 0 <= request.queue_id < topic.read_queue_nums:
            raise PullRefused(
                ResponseCode.INVALID_PARAMETER,
                f"topic {name} has no queue {request.queue_id} to read, only those "
                f"below {topic.read_queue_nums}.",
            )

    def _from_request(self, request: PullMessageRequest) -> SubscriptionData:
        expression, kind = request.subscription, request.expression_type
        try:
            if kind != "TAG":
                parse_selector(expression)
            version = request.sub_version
            return build_subscription_data(request.topic, expression, kind, version)
        except ValueError as error:
            raise PullRefused(
                ResponseCode.SUBSCRIPTION_PARSE_FAILED,
                f"the expression {expression!r} is none: {error}",
            ) from None

    def _from_heartbeat(
        self, request: PullMessageRequest, group: ConsumingGroup | None
    ) -> SubscriptionData:
        if self._consumers is None:
            return SubscriptionData(request.topic)
        name, topic = request.consumer_group, request.topic
        model = self._consumers.message_model_of(name)
        if model is None:
            raise PullRefused(
                ResponseCode.SUBSCRIPTION_NOT_EXIST,
                f"no consumer of group {name} is alive: send a heartbeat.",
            )
        is_broadcast = model == "BROADCASTING"
        if group is not None and is_broadcast and not group.consume_broadcast_enable:
            raise PullRefused(
                ResponseCode.NO_PERMISSION, f"group {name} must not broadcast."
            )
        found = self._consumers.find_subscription_data(name, topic)
        if found is None:
            raise PullRefused(
                ResponseCode.SUBSCRIPTION_NOT_EXIST,
                f"group {name} does not subscribe {topic}: send a heartbeat.",
            )
        if found.sub_version < request.sub_version:
            raise PullRefused(
                ResponseCode.SUBSCRIPTION_NOT_LATEST,
                f"group {name} has changed what it subscribes of {topic} at "
                f"{request.sub_version}, after {found.sub_version}: send a heartbeat.",
            )
        return found
