"""What a session of a soak leaves behind: when, where, by what, and how it ended."""

from __future__ import annotations

import platform
import shlex
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime

from crashmq.harness.searches.revisions import revision_here
from crashmq.reports.errors import EnvironmentMissing
from crashmq.reports.places import Place
from crashmq.reports.run_dir import Session, new_session, write_session


def noting(out: Place) -> Callable[[float, str], None]:
    """A new session of the run in ``out``: a callback that writes its state.

    It is given the seconds so far, and how the session ended; "" while it lasts.
    """
    path = new_session(out)
    session = Session(
        datetime.now(UTC).isoformat(timespec="seconds"),
        socket.gethostname(),
        shlex.join(["crashmq", *sys.argv[1:]]),
        revision=revision_here(),
        environment=f"Python {platform.python_version()}, {platform.platform()}",
    )

    def note(elapsed_s: float, ended: str) -> None:
        elapsed_s = round(elapsed_s, 3)
        # Shards say what is wrong with the disk.
        with suppress(OSError, EnvironmentMissing):
            write_session(path, replace(session, elapsed_s=elapsed_s, ended=ended))

    note(0.0, "")
    return note
