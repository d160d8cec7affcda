"""A session of Spark for the length of a command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from crashmq.harness.commands.arguments import writing
from crashmq.harness.guards.interrupts import INTERRUPTS
from crashmq.reports.places import Place


@contextmanager
def spark_session(master: str | None, place: Place) -> Iterator[Any]:
    """Spark at ``master``, with its own files at ``place``; stopped at the end."""
    from crashmq.reports.spark import open_session

    with writing():
        session = open_session(master, place)
    INTERRUPTS.rearm()  # Spark has set its own handler
    try:
        yield session
    finally:
        with suppress(Exception):  # Spark may be gone, which the error in progress says
            session.stop()
