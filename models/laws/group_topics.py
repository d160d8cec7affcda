"""Laws of the topics that a broker makes for groups: for retries and dead letters."""

from __future__ import annotations

from collections.abc import Iterator

from crashmq.models.knowledge.progress import TopicsWritten
from crashmq.models.laws.registry import law
from crashmq.models.verdict import Violation


@law(
    "TOP-1",
    "a broker has written a group and its topics before it answers that a message was "
    "put there",
    catalogue="I12 I8",
)
def a_topic_is_written_before_it_is_used(
    group: str, now: TopicsWritten, topics: frozenset[str]
) -> Iterator[Violation]:
    """``topics`` are those to which messages of the group were put.

    A start that does not find the topic gives its messages to nobody.

    Source: TopicConfigManager#createTopicInSendMessageBackMethod,
    SubscriptionGroupManager#findSubscriptionGroupConfig.
    """
    if group not in now.groups:
        seen = "it is used and not written"
        yield Violation(f"group {group}", seen, "in subscriptionGroup.json")
    for topic in sorted(topics):
        if topic not in now.names:
            seen = f"{topic} is used and not written"
            yield Violation(f"group {group}", seen, "in topics.json")


@law(
    "TOP-2",
    "the version of a broker's topics counts changes of them, and nothing else",
    catalogue="I12",
)
def the_version_counts_changes(
    now: TopicsWritten, before: TopicsWritten
) -> Iterator[Violation]:
    """Brokers and name servers compare it, and take over what is newer.

    Source: DataVersion, TopicConfigManager#updateTopicConfig.
    """
    if now.rows == before.rows and now.version != before.version:
        seen = f"version {now.version} of the same topics"
        yield Violation("config/topics.json", seen, f"version {before.version}")
