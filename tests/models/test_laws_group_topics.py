"""Laws of groups' topics: when they are written, and what their version counts."""

from __future__ import annotations

from crashmq.models.files.config_files import TOPICS_PATH, version_of
from crashmq.models.knowledge.progress import TopicsWritten
from crashmq.models.laws.group_topics import (
    a_topic_is_written_before_it_is_used,
    the_version_counts_changes,
)

WRITTEN = TopicsWritten(frozenset({"%RETRY%g"}), frozenset({"g"}), "a table", 3)


def test_a_group_and_its_topics_are_written_before_they_are_used() -> None:
    judge = a_topic_is_written_before_it_is_used.violations

    assert not judge("g", WRITTEN, frozenset({"%RETRY%g"}))
    assert judge("g", WRITTEN, frozenset({"%DLQ%g"}))
    assert judge("h", WRITTEN, frozenset())


def test_the_same_topics_have_the_same_version() -> None:
    judge = the_version_counts_changes.violations

    assert not judge(WRITTEN, WRITTEN)
    assert not judge(WRITTEN._replace(version=4, rows="another table"), WRITTEN)
    assert judge(WRITTEN._replace(version=4), WRITTEN)


def test_the_version_of_a_config_file_is_the_counter_that_it_says() -> None:
    text = b'{"dataVersion":{"counter":7},"topicConfigTable":{}}'

    assert version_of({TOPICS_PATH: text}, TOPICS_PATH) == 7
    assert version_of({TOPICS_PATH: b"torn"}, TOPICS_PATH) == -1
    assert version_of({}, TOPICS_PATH) == -1
