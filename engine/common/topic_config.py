"""TopicConfig: how many queues a topic has, and what clients may do with them.

Source: org.apache.rocketmq.common.TopicConfig, RocketMQ 5.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from crashmq.engine.common.bean import Bean, map_of_texts
from crashmq.engine.common.fastjson import Json
from crashmq.engine.common.mix_all import READ_WRITE, Perm

QUEUE_NUMS = 16  # TopicConfig#defaultReadQueueNums


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """The configuration of one topic.

    Attributes:
        read_queue_nums: consumers pull queue ids below it.
        write_queue_nums: producers put to queue ids below it.
        topic_filter_type: SINGLE_TAG or MULTI_TAG.
        order: whether the order of its messages is configured at a name server.
    """

    topic_name: str
    read_queue_nums: int = QUEUE_NUMS
    write_queue_nums: int = QUEUE_NUMS
    perm: Perm = READ_WRITE
    topic_filter_type: str = "SINGLE_TAG"
    topic_sys_flag: int = 0
    order: bool = False
    attributes: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_readable(self) -> bool:
        """Whether consumers may pull from it."""
        return Perm.READ in self.perm

    @property
    def is_writeable(self) -> bool:
        """Whether messages may be put to it."""
        return Perm.WRITE in self.perm


def topic_to_json(topic: TopicConfig) -> Json:
    """A topic's configuration as a bean."""
    return {
        "attributes": map_of_texts(topic.attributes),
        "order": topic.order,
        "perm": int(topic.perm),
        "readQueueNums": topic.read_queue_nums,
        "topicFilterType": topic.topic_filter_type,
        "topicName": topic.topic_name,
        "topicSysFlag": topic.topic_sys_flag,
        "writeQueueNums": topic.write_queue_nums,
    }


def topic_from_json(name: str, found: Json) -> TopicConfig:
    """The configuration of the topic ``name`` from a parsed bean.

    Raises:
        ValueError: it is no configuration of a topic.
    """
    bean = Bean(found, f"topic {name}")
    read = bean.integer("readQueueNums", QUEUE_NUMS)
    write = bean.integer("writeQueueNums", QUEUE_NUMS)
    if read < 0 or write < 0:
        raise ValueError(f"topic {name} has {read} and {write} queues")
    return TopicConfig(
        bean.text("topicName", name),
        read,
        write,
        Perm(bean.integer("perm", READ_WRITE)),
        bean.text("topicFilterType", "SINGLE_TAG"),
        bean.integer("topicSysFlag", 0),
        bean.boolean("order", default=False),
        bean.texts("attributes"),
    )
