"""Episodes one at a time, for a shard whose processes have died twice.

A shard whose process was killed is begun again by another one. If that happens
repeatedly, an episode must be the cause, but which one is unknown: so from the second
death on each episode is noted before it begins, and one that was begun and never ended
too often is not begun again; its row says that it was ``killed``. Random kills from
outside hit the same episode that often only if nothing else runs.
"""

from __future__ import annotations

from collections.abc import Iterator

from crashmq.reports.errors import NotARun
from crashmq.reports.files import write_json
from crashmq.reports.places import Place
from crashmq.reports.records import EpisodeRecord, Shard
from crashmq.reports.task import Task
from crashmq.reports.trust import is_count, read_object

IN_FLIGHT_DIR = "in_flight"
KILLED = "killed"
_NOTED_DEATHS_MAX = 2  # beside the one that nobody had noted


def rows_of(task: Task, shard: Shard, notes: Place) -> Iterator[EpisodeRecord]:
    """The rows of a shard; if the process dies on the way, ``notes`` are left."""
    for number in range(shard.first_episode, shard.end):
        deaths = deaths_in(notes)
        if deaths.get(number, 0) >= _NOTED_DEATHS_MAX:
            yield task.lost(number, KILLED)
            continue
        write_json(notes, _by_text(deaths | {number: deaths.get(number, 0) + 1}))
        rows = list(task.run_shard(Shard(number, 1)))
        write_json(notes, _by_text(deaths))
        yield from rows


def deaths_in(notes: Place) -> dict[int, int]:
    """How often each episode was begun and never ended, by its notes."""
    try:
        said = read_object(notes)
        return {int(key): said[key] for key in said if is_count(said[key])}
    except (NotARun, ValueError):
        return {}


def deaths_noted(out: Place) -> int:
    """How many deaths the notes of a run record."""
    notes = (out / IN_FLIGHT_DIR).glob("*.json")
    return sum(sum(deaths_in(path).values()) for path in notes)


def _by_text(deaths: dict[int, int]) -> dict[str, int]:
    return {str(number): times for number, times in deaths.items()}
