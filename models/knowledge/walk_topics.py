"""The walk through the files of topics and groups that a broker has written."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from crashmq.models.files.config_files import (
    GROUPS_PATH,
    TOPICS_PATH,
    config_pair,
    version_of,
)
from crashmq.models.files.record import Bytes
from crashmq.models.history import (
    ProgressAnswered,
    SendAnswered,
    StartBegan,
    Step,
)
from crashmq.models.knowledge.group_configs import GroupConfigs
from crashmq.models.knowledge.knowledge import CONFIG
from crashmq.models.knowledge.moments import (
    At,
    Moment,
)
from crashmq.models.knowledge.moments_of_consumers import (
    ChangeAnswered,
    GroupConfigsSeen,
    TopicsChanged,
    TopicsNeeded,
)
from crashmq.models.knowledge.progress import TopicsWritten
from crashmq.models.knowledge.promises import SPOILT
from crashmq.models.knowledge.topics import Topics
from crashmq.models.knowledge.walk_tables import walk_tables
from crashmq.models.observations import Done
from crashmq.models.ops import (
    ChangeTopic,
    ConfigureGroup,
    DeleteGroup,
    SendMessage,
)


def saw_topics_needed(at: At, group: str) -> Iterator[TopicsNeeded]:
    """Yield a moment for a message sent back, since its group needs a topic for it."""
    progress = at.known.progress
    if not at.step.is_alone or at.step.fails_calls or at.known.promises.reverts:
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


def walk_config_files(at: At) -> Iterator[Moment]:
    """Update what is known of the config files; yield a moment for each check."""
    yield from walk_groups(at)
    if at.step.fails_calls:
        at.known.progress.topics.may_be_made_in_vain(at.step)
    _saw_what_was_lost(at)
    yield from walk_tables(at)


def _saw_what_was_lost(at: At) -> None:
    """Record what the disk may have lost of tables though no call has failed."""
    progress, damaged = at.known.progress, at.known.tampering.damaged
    is_lost = [one for one in damaged if one == SPOILT or one.path.startswith(CONFIG)]
    if at.known.promises.reverts or is_lost:
        progress.groups.forget()
        progress.topics.is_doubtful = True
        progress.tables.topics = None


def walk_groups(at: At) -> Iterator[GroupConfigsSeen]:
    """Update the known group configurations; yield a moment for each check."""
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


_NAME = re.compile("[%|a-zA-Z0-9_-]{1,127}")
"""Source: TopicValidator#validateTopic."""


def walk_changes(at: At) -> Iterator[ChangeAnswered]:
    """Yield a moment for the answer to a change that the broker must carry out."""
    step = at.step
    is_up = ProgressAnswered in step.kinds and step.crash is None
    if not is_up or at.now.max_phy_offset < 0:
        return
    match step.op:
        case ChangeTopic() as op if _is_legal(op):
            yield ChangeAnswered(*at, op, step.seen == Done())
        case ConfigureGroup() as op:
            yield ChangeAnswered(*at, op, step.seen == Done())
        case _:
            pass


def _is_legal(op: ChangeTopic) -> bool:
    return Topics.is_carried_out(op) and _NAME.fullmatch(op.topic) is not None


def walk_changed_topics(at: At) -> Iterator[TopicsChanged]:
    """Yield a moment of the file of topics, where a change must be in it."""
    step, topics = at.step, at.known.progress.topics
    if not topics.shapes or topics.is_doubtful:
        return
    if step.is_alone and step.starts:
        found = [one.event for one in step.entries if isinstance(one.event, StartBegan)]
        yield _changed(at, found[0].found)
    elif at.now.max_phy_offset >= 0 and _may_have_changed(step):
        yield _changed(at, at.look.files())


def _may_have_changed(step: Step) -> bool:
    """Whether a step has changed a topic, or may have, and the disk has worked."""
    if isinstance(step.op, ChangeTopic) and step.seen == Done():
        return True
    is_disturbed = step.fails_calls or step.crash is not None or step.starts
    kinds = (ChangeTopic, SendMessage)
    is_asked = any(isinstance(act, kinds) for act in step.acts)
    is_answered = not step.kinds.isdisjoint({ProgressAnswered, SendAnswered})
    return is_asked and is_answered and not is_disturbed


def _changed(at: At, files: Mapping[str, Bytes]) -> TopicsChanged:
    rows = config_pair(files, TOPICS_PATH).rows
    return TopicsChanged(*at, rows, dict(at.known.progress.topics.shapes))


def _seen(at: At, files: Mapping[str, Bytes]) -> GroupConfigsSeen:
    rows = config_pair(files, GROUPS_PATH).rows
    return GroupConfigsSeen(*at, rows, dict(at.known.progress.groups.of))
