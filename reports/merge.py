"""Joins runs of one definition that several machines have made.

A shard is copied as it was committed: its rows, then its manifest. So whoever dies amid
it leaves a run that is whole as far as it goes, and the same command continues.
"""

from __future__ import annotations

from collections.abc import Sequence

from crashmq.reports.errors import BadRequest
from crashmq.reports.files import RUN_FORMAT, read_declared, read_run_file, write_bytes
from crashmq.reports.places import Place
from crashmq.reports.run_dir import (
    EPISODES_DIR,
    MANIFESTS_DIR,
    begin_run,
    committed,
    lacking,
    name_of,
    new_session,
    read_sessions,
    sessions_in,
    write_session,
)


def merge(out: Place, others: Sequence[Place]) -> int:
    """Copy the shards that ``out`` lacks from the other runs, and their sessions.

    Of a session that ``out`` has the later state is kept.

    Args:
        out: a run of the same definition, or a new place.
        others: where the runs are, at least one; they are only read.

    Returns:
        how many shards were copied.

    Raises:
        NotARun: one of the others holds no run.
        BadRequest: it is of an old format, or the definitions differ.
        CannotWrite: the disk is full, say.
    """
    runs = [read_run_file(other) for other in others]
    for other, run in zip(others, runs, strict=True):
        if run["format"] != RUN_FORMAT:
            raise BadRequest(f"{other} holds a run of an older crashmq; it stays so.")
        if run["run_id"] != runs[0]["run_id"]:
            raise BadRequest(
                f"{other} holds another run than {others[0]}; only runs of one "
                "definition are one run: `crashmq nights` compares others."
            )
    length = max(run["episodes"] for run in runs)
    begun = runs[0]["run_id"], runs[0]["definition"], length, read_declared(others[0])
    begin_run(out, *begun)
    copied = sum(_copy(out, other) for other in others)
    begin_run(out, *begun)  # it may be longer than any of them was asked for
    return copied


def _copy(out: Place, other: Place) -> int:
    known = {one.identity: (path, one) for path, one in sessions_in(out).items()}
    for session in read_sessions(other):
        if session.identity not in known:
            write_session(new_session(out), session)
            continue
        path, there = known[session.identity]
        if there.progress < session.progress:
            write_session(path, session)
    copied = 0
    for shard in lacking(out, committed(other)):
        for kind in (EPISODES_DIR, MANIFESTS_DIR):
            data = (other / kind / name_of(shard)).read_bytes()
            write_bytes(out / kind / name_of(shard), data)
        copied += 1
    return copied
