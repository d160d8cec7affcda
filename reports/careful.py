"""Runs the episodes of a shard one at a time, after its process has died twice.

A shard whose process was killed is run again by another process. If it dies repeatedly,
one of its episodes must be the cause, but it is unknown which. So from the second death
on a note is written before each episode begins. An episode that began and did not end
too often is not run again; its row has the outcome ``killed``. A process that is killed
for other reasons hits the same episode that often only if nothing else runs.
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
    """The rows of a shard; ``notes`` count an episode's death if the process dies."""
    for number in range(shard.first_episode, shard.end):
        deaths = deaths_in(notes)
        if deaths.get(number, 0) >= _NOTED_DEATHS_MAX:
            yield task.lost(number, KILLED)
            continue
        write_json(notes, _by_text(deaths | {number: deaths.get(number, 0) + 1}))
        try:
            rows = list(task.run_shard(Shard(number, 1)))
        finally:  # an error is no death
            write_json(notes, _by_text(deaths))
        yield from rows


def deaths_in(notes: Place) -> dict[int, int]:
    """How often each episode began and did not end, by the notes."""
    try:
        said = read_object(notes)
        return {int(key): said[key] for key in said if is_count(said[key])}
    except (NotARun, ValueError):
        return {}


def deaths_noted(out: Place) -> int:
    """How many deaths of processes the notes of a run record."""
    notes = (out / IN_FLIGHT_DIR).glob("*.json")
    return sum(sum(deaths_in(path).values()) for path in notes)


def _by_text(deaths: dict[int, int]) -> dict[str, int]:
    return {str(number): times for number, times in deaths.items()}
