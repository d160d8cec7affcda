"""Writes files that are whole or absent, and reads the JSON of a run's directory.

A file is written under a temporary name that readers skip, synced, and renamed, so a
kill or a power loss leaves the old file, the new one, or none. The files of a run's
directory are listed in ``run_dir``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any
from uuid import uuid4

from crashmq.reports.errors import NotARun, OutputExists, cannot_write
from crashmq.reports.places import Place, Remote, is_there, looking_at
from crashmq.reports.records import Declared
from crashmq.reports.trust import (
    Kind,
    are,
    are_by_name,
    check_fields,
    is_count,
    is_name,
    is_seconds,
    is_seed,
    is_text,
    read_object,
)

RUN_FILE = "run.json"
DECLARED_FILE = "declared.json"
FINISHED_FILE = "finished.json"  # of format 1
SPARK_DIR = "spark"
RUN_FORMAT = 2
FORMATS = (1, RUN_FORMAT)
_TEMPORARY = ".tmp"

_NAMES = (are(is_text), "a list of texts")
_SENTENCES = (are_by_name(is_text), "texts by name")
_LISTS = (are_by_name(are(is_text)), "lists of texts by name")
_COUNT = (is_count, "a count")
_RUN: dict[str, tuple[Kind, str]] = {
    "run_id": (is_name, "a name"),
    "definition": (lambda value: isinstance(value, dict), "an object"),
    "episodes": _COUNT,
}
_DEFINED = ("scenarios", "seed", "mutant")
_DEFINITION: dict[str, tuple[Kind, str]] = {
    "scenarios": (are(is_name), "a list of names"),
    "seed": (is_seed, "a seed"),
    "mutant": (is_name, "a name"),
    "code_version": (is_name, "a name"),
    "episodes": _COUNT,
    "explore": _COUNT,
    "episode_timeout_s": (is_seconds, "seconds"),
}
_FINISHED = {"elapsed_s": (is_seconds, "seconds")}
_DECLARED: dict[str, tuple[Kind, str]] = {
    "ops": _NAMES,
    "required_probes": _LISTS,
    "required_laws": _LISTS,
    **dict.fromkeys(
        ("probes", "unreachable", "laws", "catalogue", "scenarios", "mutants"),
        _SENTENCES,
    ),
}


@contextmanager
def changing(directory: Place) -> Iterator[None]:
    """Turn an error of the file system, as something in a directory is changed.

    Raises:
        CannotWrite: the disk is full, say.
    """
    try:
        yield
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else str(error)
        raise cannot_write(directory, why) from None


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary file to write, which then replaces ``path``, atomically and durably.

    Its name is one that readers of Parquet skip.

    Raises:
        CannotWrite: the disk is full, say; an older file is there still.
    """
    temporary = path.with_name(f".{path.name}.{uuid4().hex}{_TEMPORARY}")
    try:
        with changing(path.parent):
            yield temporary
            _sync(temporary)
            temporary.replace(path)
            _sync(path.parent)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def write_text(path: Place, text: str) -> None:
    """Replace ``path`` by ``text``, atomically.

    Raises:
        CannotWrite: the disk is full, say.
    """
    write_bytes(path, text.encode())


def write_bytes(path: Place, data: bytes) -> None:
    """Replace ``path`` by ``data``, atomically.

    Raises:
        CannotWrite: the disk is full, say.
    """
    if isinstance(path, Remote):
        path.write_bytes(data)
        return
    with replacing(path) as temporary:
        temporary.write_bytes(data)


def write_json(path: Place, value: object) -> None:
    """Replace ``path`` by ``value`` as indented JSON, keys in the order given.

    Raises:
        CannotWrite: the disk is full, say.
    """
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def check_output(out: Place) -> None:
    """Check that a run may be written to ``out``; writes nothing.

    Spark's own directory and temporary files are allowed there, since a failed start
    leaves them.

    Raises:
        OutputExists: ``out`` is a file, or a directory with anything else in it.
        BadRequest: it cannot be looked at.
    """
    with looking_at(out):
        if out.exists() and not out.is_dir():
            raise OutputExists(f"{out} is a file; give --out a new directory.")
        taken = sorted(path.name for path in out.iterdir()) if out.exists() else []
    taken = [
        name for name in taken if name != SPARK_DIR and not name.endswith(_TEMPORARY)
    ]
    if taken:
        more = f" and {len(taken) - 1} more" if len(taken) > 1 else ""
        raise OutputExists(
            f"{out} already holds {taken[0]}{more}; nothing was written: give --out "
            f"a new directory, or remove this one yourself."
        )


def read_json(out: Place, name: str) -> dict[str, Any]:
    """One of a run's JSON files.

    Raises:
        NotARun: it is absent, unreadable or of another format.
    """
    return read_object(out / name)


def read_run_file(out: Place) -> dict[str, Any]:
    """``run.json``: format, run_id, definition, episodes.

    Raises:
        NotARun: it is absent, or its format is unknown to this version.
    """
    run = read_json(out, RUN_FILE)
    if run.get("format") not in FORMATS:
        raise NotARun(
            f"{out / RUN_FILE} is of another format than {FORMATS[0]} and "
            f"{FORMATS[1]}, which this version reads; report it with the version that "
            f"wrote it."
        )
    path, needed = out / RUN_FILE, ("run_id", "definition", "episodes")
    check_fields(path, run, _RUN, needed)
    check_fields(path, run["definition"], _DEFINITION, _DEFINED, "$.definition")
    return run


def read_elapsed_s(out: Place) -> float | None:
    """How long a run of format 1 took; None if it was interrupted.

    Raises:
        NotARun: ``finished.json`` has other content.
    """
    path = out / FINISHED_FILE
    if not is_there(path):
        return None
    finished = read_object(path)
    check_fields(path, finished, _FINISHED, ("elapsed_s",))
    return float(finished["elapsed_s"])


def write_declared(out: Place, declared: Declared) -> None:
    """Write ``declared.json``: everything that could have happened in this run."""
    write_json(out / DECLARED_FILE, asdict(declared))


def read_declared(out: Place) -> Declared:
    """Everything that could have happened in the run of ``out``.

    Raises:
        NotARun: ``declared.json`` is absent or has other content.
    """
    value = read_json(out, DECLARED_FILE)
    check_fields(out / DECLARED_FILE, value, _DECLARED, ())
    try:
        return Declared(**value)
    except TypeError:
        raise NotARun(
            f"{out / DECLARED_FILE} does not say what this version needs; report it "
            f"with the version that wrote it."
        ) from None


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
