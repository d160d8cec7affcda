"""The walk through what a broker has written of its topics and groups."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from crashmq.models.files.config_files import (
    GROUPS_PATH,
    TOPICS_PATH,
    config_pair,
    version_of,
)
from crashmq.models.files.record import Bytes
from crashmq.models.history import StartBegan
from crashmq.models.knowledge.group_configs import GroupConfigs
from crashmq.models.knowledge.moments import At
from crashmq.models.knowledge.moments_of_consumers import (
    GroupConfigsSeen,
    TableTurned,
    TopicsNeeded,
)
from crashmq.models.knowledge.progress import TopicsWritten
from crashmq.models.knowledge.walk_tables import walk_tables
from crashmq.models.observations import Done
from crashmq.models.ops import ConfigureGroup, DeleteGroup


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
    yield TopicsNeeded(*at, group, written, progress.tables.topics)
    progress.tables.topics = written


_OF_GROUPS = GroupConfigs.SEES | {StartBegan}


def walk_config_files(at: At) -> Iterator[GroupConfigsSeen | TableTurned]:
    """Lead what is known of tables through a step; stop where it can be compared."""
    yield from walk_groups(at)
    yield from walk_tables(at)


def walk_groups(at: At) -> Iterator[GroupConfigsSeen]:
    """Lead what is known of groups through a step; stop where it can be compared."""
    step, groups = at.step, at.known.progress.groups
    if not step.kinds.isdisjoint(_OF_GROUPS):
        for _, _, event in step.entries:
            if type(event) in groups.SEES:
                groups.saw(event, step, at.known.promises)
            elif isinstance(event, StartBegan) and groups.of:
                yield _seen(at, event.found)
    is_written = isinstance(step.op, ConfigureGroup | DeleteGroup)
    if is_written and step.seen == Done() and groups.of:
        yield _seen(at, at.look.files())


def _seen(at: At, files: Mapping[str, Bytes]) -> GroupConfigsSeen:
    rows = config_pair(files, GROUPS_PATH).rows
    return GroupConfigsSeen(*at, rows, dict(at.known.progress.groups.of))
