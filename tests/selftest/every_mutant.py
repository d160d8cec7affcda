"""Every mutant of the harness must be noticed; a quarter of an hour on two cores.

Not collected by its name: ``pytest -n 2 tests/selftest/every_mutant.py`` runs it. The
suite itself does a sample, in ``test_selftest.py``.
"""

from __future__ import annotations

import pytest
from noticing import AREAS, EQUIVALENT, HARNESS_MUTANTS, noticed_by


@pytest.mark.slow
@pytest.mark.parametrize("area", AREAS)
def test_the_harness_as_it_is_passes_the_self_test(area: str) -> None:
    assert noticed_by(area) == ""


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in HARNESS_MUTANTS if n not in EQUIVALENT])
def test_a_mutant_is_noticed(name: str) -> None:
    assert noticed_by(name), f"nobody noticed {HARNESS_MUTANTS[name].edit}"
