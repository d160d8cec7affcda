"""Equivalent mutants: survivors that a person has judged, each with the reason.

A mutant is equivalent if no client, no operator and no file can show that it is there:
it changes nothing, or only a cost, a statistic or a text. ``equivalent.toml`` has ours;
a file of that name in a campaign's directory adds to it. An id stays the same while the
line and its function do, so a reason is lost when they are rewritten.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

from crashmq.reports.errors import BadRequest

EQUIVALENT_FILE = "equivalent.toml"
PACKAGED = Path(__file__).with_name(EQUIVALENT_FILE)


class NotReasons(BadRequest):
    """A file with reasons cannot be read; the message says where and why."""


def equivalent_mutants(out: Path) -> dict[str, str]:
    """Why each mutant is equivalent, by id: our reasons, and those in ``out``.

    Raises:
        NotReasons: a file is no TOML of ``ID = "reason"``.
    """
    return {**_read(PACKAGED), **_read(out / EQUIVALENT_FILE)}


def _read(path: Path) -> dict[str, str]:
    if not path.exists():
        return {}
    try:
        found = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise NotReasons(f"{path} cannot be read: {error}.") from None
    for name, why in found.items():
        if not isinstance(why, str) or not why.strip():
            raise NotReasons(f'{path}: {name} needs a reason, {name} = "why".')
    return found
