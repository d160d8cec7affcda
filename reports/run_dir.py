"""The directory of a run, which can be continued.

::

    run.json                          the run's parameters; written first
    declared.json                     what could have happened
    sessions/0001.json                the result of each command that added to it
    episodes/0000000050-0000000100.parquet     the rows of these episodes
    manifests/0000000050-0000000100.parquet    what commits them, and their sums
    report.html, report.md, summary.json, cases/
    spark/                            log and scratch space of Spark

A run is identified by its definition, which does not contain its length: a command with
the same definition continues it. The name of a file says which episodes it has; a file
whose episodes are all in another one of the same kind is superseded. So files may be
added to a run, and none is ever changed. A reader reads only the files that manifests
name.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from crashmq.reports.errors import BadRequest, NotARun, OutputExists
from crashmq.reports.files import (
    RUN_FILE,
    RUN_FORMAT,
    check_output,
    read_elapsed_s,
    read_run_file,
    write_declared,
    write_json,
)
from crashmq.reports.places import Place, is_there, listed
from crashmq.reports.records import Declared, Shard, shards_of
from crashmq.reports.trust import (
    check_fields,
    is_seconds,
    is_text,
    read_object,
)

EPISODES_DIR = "episodes"
MANIFESTS_DIR = "manifests"
SESSIONS_DIR = "sessions"
# How a session ended; "" of one that was ended from outside, or has not yet.
DONE, TIME_WAS_UP = "done", "time was up"
INTERRUPTED, GAVE_UP = "interrupted", "gave up"  # the latter with a reason

_NAME = re.compile(r"(\d{10})-(\d{10})\.parquet")
_SESSION = {
    "began": (is_text, "a text"),
    "host": (is_text, "a text"),
    "command": (is_text, "a text"),
    "revision": (is_text, "a text"),
    "environment": (is_text, "a text"),
    "ended": (is_text, "a text"),
    "elapsed_s": (is_seconds, "seconds"),
}
_SAID_LATER = ("revision", "environment")  # what older sessions do not say


@dataclass(frozen=True, slots=True)
class Part:
    """Every ``of``-th shard of a run from that of this number on; all by default."""

    number: int = 0
    of: int = 1

    def has(self, shard_number: int) -> bool:
        """Whether the shard of this number, counted from 0, is in it."""
        return shard_number % self.of == self.number


WHOLE = Part()


@dataclass(frozen=True, slots=True)
class Wanted:
    """How much of a run a session shall do.

    Attributes:
        episodes: how many the whole run shall have.
        time_s: seconds after which no shard is begun; None: no limit.
        part: which of the shards.
    """

    episodes: int
    time_s: float | None = None
    part: Part = WHOLE


@dataclass(frozen=True, slots=True)
class Session:
    """One command that added to a run.

    ``revision`` is that of crashmq's checkout, "" if it ran from an installed package;
    ``environment`` says which Python and which system.
    """

    began: str  # date and time of day, UTC
    host: str
    command: str
    ended: str = ""
    elapsed_s: float = 0.0
    revision: str = ""
    environment: str = ""

    @property
    def identity(self) -> tuple[str, str, str]:
        """What stays the same while it lasts, on every machine with a copy of it."""
        return self.began, self.host, self.command

    @property
    def progress(self) -> tuple[bool, float]:
        """Of two states of one session the later one has the larger progress."""
        return self.ended != "", self.elapsed_s


def name_of(shard: Shard) -> str:
    """The name of the file of a shard, for its rows and for its manifest."""
    return f"{shard.first_episode:010d}-{shard.end:010d}.parquet"


def shard_named(name: str) -> Shard | None:
    """The shard of a file's name; None if it is not such a name."""
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    first, end = map(int, found.groups())
    return Shard(first, end - first) if first < end else None


def committed(out: Place) -> list[Shard]:
    """The committed shards of a run in order, without superseded ones."""
    names = (path.name for path in listed(out / MANIFESTS_DIR))
    there = [shard for shard in map(shard_named, names) if shard is not None]
    kept: list[Shard] = []
    for shard in sorted(there, key=lambda one: (one.first_episode, -one.end)):
        if not kept or kept[-1].end <= shard.first_episode:
            kept.append(shard)
    return kept


def missing(out: Place, episodes: int, part: Part = WHOLE) -> Iterator[Shard]:
    """The shards that this part of a run of so many episodes lacks, in order."""
    shards = enumerate(shards_of(episodes))
    return lacking(out, (shard for number, shard in shards if part.has(number)))


def lacking(out: Place, shards: Iterable[Shard]) -> Iterator[Shard]:
    """Those of the shards that a run has not committed, nor a larger one with them."""
    there = committed(out)
    firsts = [shard.first_episode for shard in there]
    for shard in shards:
        at = bisect_right(firsts, shard.first_episode) - 1
        if at < 0 or not there[at].holds(shard):
            yield shard


def check_run(out: Place, run_id: str, definition: Mapping[str, Any]) -> None:
    """Check that a run of this definition may begin or continue; writes nothing.

    Raises:
        OutputExists: ``out`` has something else.
        BadRequest: it cannot be looked at.
    """
    if not is_there(out / RUN_FILE):
        check_output(out)
        return
    try:
        run = read_run_file(out)
    except NotARun as error:
        raise OutputExists(f"{error} To run something, give --out a new one.") from None
    if run["format"] != RUN_FORMAT:
        raise OutputExists(
            f"{out} holds a run of an older crashmq, which can be reported, but "
            f"not gone on with: give --out a new directory."
        )
    if run["run_id"] == run_id:
        return
    names = sorted(definition.keys() | run["definition"].keys())
    was, now = run["definition"], definition
    other = [name for name in names if was.get(name) != now.get(name)]
    said = ", ".join(f"{name} {was.get(name)!r}" for name in other)
    raise OutputExists(
        f"{out} holds another run, of {said}; nothing was written: continue it with "
        "the options it was begun with, or give --out a new directory."
    )


def begin_run(
    out: Place,
    run_id: str,
    definition: Mapping[str, Any],
    episodes: int,
    declared: Declared,
) -> int:
    """Begin a run in ``out``, or continue the one that is there.

    Args:
        out: a new directory, or one with a run of the same definition.
        run_id: the definition's name.
        definition: everything that decides a row, except its episode's number.
        episodes: how many the run shall have; a longer run keeps its length.
        declared: everything that could happen in it.

    Returns:
        how many episodes it has already.

    Raises:
        OutputExists: ``out`` has something else; nothing was written.
    """
    check_run(out, run_id, definition)
    there = sum(shard.episodes for shard in committed(out))
    _write_run_file(out, run_id, definition, max(episodes, there))
    write_declared(out, declared)
    return there


def end_early(out: Place) -> None:
    """Set the number of requested episodes to those it has, since time is up."""
    run = read_run_file(out)
    there = sum(shard.episodes for shard in committed(out))
    _write_run_file(out, run["run_id"], run["definition"], there)


def new_session(out: Place) -> Place:
    """The file of the next session, with an unused number."""
    for number in range(1, 10_000):
        path = out / SESSIONS_DIR / f"{number:04d}.json"
        if isinstance(path, Path):
            try:
                path.touch(exist_ok=False)
            except FileExistsError:
                continue
            return path
        if not path.exists():  # nobody else begins just now, or tells the same file
            path.write_bytes(b"")
            return path
    raise BadRequest(f"{out} had 9,999 sessions; give --out a new directory.")


def latest_session(out: Place) -> str:
    """The name of the session that began last, "" before the first."""
    there = listed(out / SESSIONS_DIR, "*.json")
    return there[-1].name if there else ""


def write_session(path: Place, session: Session) -> None:
    """Write the state of a session to its file."""
    write_json(path, asdict(session))


def read_sessions(out: Place) -> list[Session]:
    """The sessions of a run by their start; see ``sessions_in``."""
    return sorted(sessions_in(out).values(), key=lambda session: session.began)


def sessions_in(out: Place) -> dict[Place, Session]:
    """The sessions of a run by file; one that ended before it wrote is left out.

    Raises:
        NotARun: a session's file has other content.
    """
    found: dict[Place, Session] = {}
    for path in listed(out / SESSIONS_DIR, "*.json"):
        if path.is_file() and path.stat().st_size == 0:
            continue
        value = read_object(path)
        needed = tuple(name for name in _SESSION if name not in _SAID_LATER)
        check_fields(path, value, _SESSION, needed)
        said = {name: value[name] for name in _SESSION if name in value}
        found[path] = Session(**said)
    return found


def elapsed_of(out: Place) -> float | None:
    """The duration of a run, all sessions together; None if its last did not end well.

    Raises:
        NotARun: a file with a duration cannot be read.
    """
    sessions = read_sessions(out)
    if not sessions:
        return read_elapsed_s(out)
    if sessions[-1].ended not in (DONE, TIME_WAS_UP):
        return None
    return round(sum(session.elapsed_s for session in sessions), 3)


def _write_run_file(
    out: Place, run_id: str, definition: Mapping[str, Any], episodes: int
) -> None:
    out.mkdir(parents=True, exist_ok=True)
    run = {"format": RUN_FORMAT, "run_id": run_id, "episodes": episodes}
    write_json(out / RUN_FILE, run | {"definition": dict(definition)})
    for name in (EPISODES_DIR, MANIFESTS_DIR, SESSIONS_DIR):
        (out / name).mkdir(exist_ok=True)
