"""The walk through the data versions of the tables in a broker's config files."""

from __future__ import annotations

from collections.abc import Iterator

from crashmq.models.files.config_files import (
    BACKUP,
    GROUPS_PATH,
    TOPICS_PATH,
)
from crashmq.models.files.config_tables import (
    VERSIONED,
    TableSeen,
    TableTurn,
    table_seen,
    tables_found,
)
from crashmq.models.files.delays import DELAYS_PATH
from crashmq.models.history import DeletionAsked, OpBegan, ProgressAsked, Step
from crashmq.models.knowledge.moments import At
from crashmq.models.knowledge.moments_of_consumers import TableTurned
from crashmq.models.observations import Done
from crashmq.models.ops import (
    ChangeTopic,
    ConfigureGroup,
    DeleteGroup,
    RunService,
)

_NEVER = TableSeen()
_AT_EACH_CHANGE = (TOPICS_PATH, GROUPS_PATH)
_PERSISTS = ("persist_consumer_offset", "persist_delay_offset")


def walk_tables(at: At) -> Iterator[TableTurned]:
    """Yield a moment for each table whose file has changed in the step."""
    step, tables = at.step, at.known.progress.tables
    tables.was_set_back |= step.sets_back
    tables.changes_most += len(step.entries)
    if step.starts:
        tables.seen = tables_found(step.starts[-1].found)
    if step.crash is not None:
        tables.seen = None
    if tables.seen is None:
        return
    files = at.look.files()
    for path in VERSIONED:
        before, data = tables.seen.get(path, _NEVER), files.get(path, b"")
        now = table_seen(path, bytes(data)) if data != before.data else None
        if now is not None:
            yield TableTurned(*at, _turn(at, path, before, now))
            tables.seen[path] = now


def _turn(at: At, path: str, before: TableSeen, now: TableSeen) -> TableTurn:
    step, known = at.step, at.known
    began = step.entries[0].event
    began_ms = began.world.now_ms if isinstance(began, OpBegan) else 0
    certain_rises, possible_rises = _rises(at, path)
    level_max = known.setup.delay_levels.level_max
    levels = level_max if path == DELAYS_PATH else 1
    first = at.look.epoch_ms
    if path in _AT_EACH_CHANGE and before.is_there:
        first = began_ms  # each change is written at once
    backup = None
    if _is_written_once(step, path, before, now):
        backup = bytes(at.look.files().get(path + BACKUP, b""))
    return TableTurn(
        path,
        before,
        now,
        certain_rises,
        possible_rises,
        known.progress.tables.changes_most * levels,
        None if known.progress.tables.was_set_back else first,
        step.world.now_ms,
        backup,
    )


def _is_written_once(step: Step, path: str, before: TableSeen, now: TableSeen) -> bool:
    """Whether a table whose file has changed in a step was written just once in it.

    Topics and groups are written at each change, which raises their version; offsets
    by a round of their service.
    """
    op = step.op
    if not before.is_there or not step.is_undisturbed or step.is_stopping:
        return False
    if path in _AT_EACH_CHANGE:
        return now.counter == before.counter + 1
    return isinstance(op, RunService) and op.service in _PERSISTS and op.times == 1


def _rises(at: At, path: str) -> tuple[int, int]:
    """How often a step certainly, and how often it possibly, raised a version."""
    events = [one.event for one in at.step.entries]
    if path == TOPICS_PATH:
        deletions = [one for one in events if isinstance(one, DeletionAsked)]
        changes = [
            one
            for one in events
            if isinstance(one, ProgressAsked) and isinstance(one.op, ChangeTopic)
        ]
        return 0, 2 * len(deletions) + 2 * len(changes)
    requests = [one.op for one in events if isinstance(one, ProgressAsked)]
    of_groups = [
        one for one in requests if isinstance(one, ConfigureGroup | DeleteGroup)
    ]
    if path != GROUPS_PATH or not of_groups:
        return 0, 0
    is_certain = isinstance(at.step.op, ConfigureGroup) and at.step.seen == Done()
    return int(is_certain), 2 * len(of_groups)
