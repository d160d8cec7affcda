"""The walk through what a broker has written of its topics, when one was needed."""

from __future__ import annotations

import json
from collections.abc import Iterator

from crashmq.models.files.config_files import (
    GROUPS_PATH,
    TOPICS_PATH,
    config_pair,
    version_of,
)
from crashmq.models.knowledge.moments import At
from crashmq.models.knowledge.moments_of_consumers import TopicsNeeded
from crashmq.models.knowledge.progress import TopicsWritten


def saw_topics_needed(at: At, group: str) -> Iterator[TopicsNeeded]:
    """Stop where a message was given back, for which its group needed a topic."""
    progress = at.known.progress
    if not at.step.is_alone or at.step.fails_calls:
        return
    files = at.look.files()
    rows = config_pair(files, TOPICS_PATH).rows
    written = TopicsWritten(
        frozenset(rows),
        frozenset(config_pair(files, GROUPS_PATH).rows),
        json.dumps(rows, sort_keys=True),
        version_of(files, TOPICS_PATH),
    )
    yield TopicsNeeded(*at, group, written, progress.topics_written)
    progress.topics_written = written
