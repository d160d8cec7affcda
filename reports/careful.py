"""Runs the episodes of a shard one at a time, after a process has died running it.

A shard whose process was killed is run again by another process. If it dies repeatedly,
one of its episodes must be the cause, but it is unknown which. So after the first death
a note is written before each episode begins. An episode that began and did not end in
three processes is not run again; its row has the outcome ``killed``.

A process may also be killed for other reasons, most likely while it begins: an episode
with which all began would be blamed then. So one that did not end is run after all
others of its shard, by a process that has run them well. Three, since of many processes
that are killed at random two may well be at the same episode of a few that are left.

A driver that is killed takes its processes with it, so an episode that had begun under
another session than this one is not to blame for that.
"""

from __future__ import annotations

from collections.abc import Iterator

from crashmq.reports.errors import NotARun
from crashmq.reports.files import write_json
from crashmq.reports.places import Place, listed
from crashmq.reports.records import EpisodeRecord, Shard
from crashmq.reports.run_dir import name_of
from crashmq.reports.task import Task
from crashmq.reports.trust import is_count, read_object

IN_FLIGHT_DIR = "in_flight"
KILLED = "killed"
_NOTED_DEATHS_MAX = 3  # beside the one that nobody had noted


def rows_of(
    task: Task, shard: Shard, notes: Place, session: str
) -> Iterator[EpisodeRecord]:
    """The rows of a shard; ``notes`` say which episode ended the process, if one does.

    Args:
        task: the work of the run.
        shard: which of its episodes.
        notes: the file of notes on this shard, which may be there already.
        session: the name of the session that this process belongs to.
    """
    rows: dict[int, list[EpisodeRecord]] = {}
    deaths = deaths_in(notes, session)
    noted = {str(number): times for number, times in deaths.items()}
    numbers = range(shard.first_episode, shard.end)
    for number in sorted(numbers, key=lambda number: deaths.get(number, 0)):
        if deaths.get(number, 0) >= _NOTED_DEATHS_MAX:
            rows[number] = [task.lost(number, KILLED)]
            continue
        begun = {"session": session, "begun": number}
        write_json(notes, {"deaths": noted} | begun)
        try:
            rows[number] = list(task.run_shard(Shard(number, 1)))
        finally:  # an error is no death
            write_json(notes, {"deaths": noted})
    for number in numbers:
        yield from rows[number]


def deaths_in(notes: Place, session: str) -> dict[int, int]:
    """How often each episode began and ended with its process, by the notes.

    That one had begun when the notes were left is a death in the same session only.
    """
    try:
        said = read_object(notes)
        noted = said["deaths"].items()
        deaths = {int(key): times for key, times in noted if is_count(times)}
    except (NotARun, AttributeError, LookupError, ValueError):
        return {}
    begun = said.get("begun", -1)
    if is_count(begun) and said.get("session") == session:
        deaths[begun] = deaths.get(begun, 0) + 1
    return deaths


def notes_of(out: Place, shard: Shard) -> Place:
    """The file of notes on a shard of a run; often there is none."""
    return out / IN_FLIGHT_DIR / f"{name_of(shard)}.json"


def deaths_noted(out: Place, session: str) -> int:
    """How many deaths of processes the notes of a run record."""
    notes = listed(out / IN_FLIGHT_DIR, "*.json")
    return sum(sum(deaths_in(path, session).values()) for path in notes)
