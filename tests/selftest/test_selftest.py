"""The harness is itself examined: a test must notice each edit of its own rules."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from noticing import AREAS, EQUIVALENT, HARNESS_MUTANTS, noticed_by

# One of each area; ``every_mutant.py`` does them all.
SAMPLE = ("D03", "M27", "I02", "L16", "J12", "X05", "H06")

PLACES_EACH = """
from noticing import HARNESS_MUTANTS
from crashmq.harness.mutants.check_edits import check_edits
for told in check_edits({one.id: one.as_mutant() for one in HARNESS_MUTANTS.values()}):
    print(told)
"""


def test_there_are_enough_mutants_of_every_area() -> None:
    assert len(HARNESS_MUTANTS) - len(EQUIVALENT) >= 60
    assert {mutant.area for mutant in HARNESS_MUTANTS.values()} == {*AREAS}
    assert set(EQUIVALENT) <= set(HARNESS_MUTANTS)


@pytest.mark.slow
def test_every_mutant_can_be_put_in_place() -> None:
    """In a process of its own: each placing looks through all that is in memory."""
    names = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

    told = subprocess.run(
        [sys.executable, "-c", PLACES_EACH],
        env=names,
        capture_output=True,
        text=True,
        check=True,
    )

    assert told.stdout == ""


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLE)
def test_one_mutant_of_each_area_is_noticed(name: str) -> None:
    assert noticed_by(name)
