"""What our engine and ``fsck`` get wrong of the corpus today, by the rules they break.

Each table maps a pattern of ``<version>-<feature>`` to a reason that begins with the
number of the defect. The tests are strict, but for directories that were just made:
whoever mends a defect removes its rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import pytest
from corpus_store import MADE

Table = Mapping[str, str]

UNREAD: Table = {}
"""Served by RocketMQ, and not what our decoder reads."""

FSCK: Table = {}
"""Healthy, and ``fsck`` finds violations."""

ENGINE: Table = {}
"""Our engine, configured as RocketMQ was, does not what the feature says."""

DEFAULTS: Table = {}
"""Our engine, told nothing but sizes, takes away or changes something."""

FSCK_AFTER: Table = {}
"""Served by our engine, and ``fsck`` finds violations once that has stopped."""

ROUND_TRIP: Table = {}
"""Served by our engine, and not by RocketMQ once ours has gone on."""


def marked(names: Sequence[str], table: Table) -> list[Any]:
    """The names as parameters; those in the table are expected to fail."""
    return [pytest.param(name, marks=_marks(name, table)) for name in names]


def _marks(name: str, table: Table) -> list[pytest.MarkDecorator]:
    reasons = [table[pattern] for pattern in table if fnmatchcase(name, pattern)]
    # What a kill leaves differs from one making to the next; an archive does not.
    strict = not MADE
    return [pytest.mark.xfail(strict=strict, reason=reason) for reason in reasons]


def right_today(names: Sequence[str], *tables: Table) -> list[str]:
    """The names that no table has a row of."""
    patterns = [one for table in tables for one in table]
    return [name for name in names if not any(fnmatchcase(name, p) for p in patterns)]
