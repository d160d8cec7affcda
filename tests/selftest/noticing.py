"""Who notices a mutant of the harness: the self-test, run with the mutant in place.

The self-test is fixed for each area of the harness: the area's own tests first, since
they are quick to fail, then whole histories. Of these, the clean engine must pass all,
and each planted bug must still break the law it is known to break. A test is looked at
no further once one has failed. Each mutant has a process of its own:
``python tests/selftest/noticing.py D01``.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
from harness_mutant import HarnessMutant
from planted_disk import DISK
from planted_host import HOST
from planted_judging import EXPLORE, JUDGING
from planted_laws import LAWS
from planted_models import IMAGE, MODEL

import crashmq
from crashmq.harness.mutants.mutation import applied

HARNESS_MUTANTS: dict[str, HarnessMutant] = {
    mutant.id: mutant
    for mutant in (*DISK, *MODEL, *IMAGE, *LAWS, *JUDGING, *EXPLORE, *HOST)
}

EQUIVALENT: dict[str, str] = {}
"""Mutants that change nothing anybody could see, each with the reason."""

_TIMEOUT_S = 300.0
_TOLD = "noticed by: "
_TESTS = Path(__file__).parent.parent
_HISTORIES = (
    *("selftest/test_clean_engine.py", "selftest/test_firings.py"),
    "harness/test_mutants.py",
)
_OF_AREA: dict[str, tuple[str, ...]] = {
    "disk": (
        *("harness/test_sim_disk.py", "harness/test_sim_disk_actions.py"),
        *("harness/test_sim_disk_faults.py", "harness/test_sim_disk_units.py"),
        *("harness/test_disk_room.py", "harness/test_disk_litmus.py"),
        *("harness/test_disk_draws.py", "harness/test_disk_contract.py"),
        *("harness/test_sync_amid_others.py", "harness/test_unreadable_sectors.py"),
    ),
    "model": ("models",),
    "image": ("models", "engine/test_record_agreement.py"),
    "laws": ("models",),
    "judging": (
        *("harness/test_promises.py", "harness/test_what_a_disk_spoils.py"),
        *("harness/test_orderly_end.py", "harness/test_judging_excuses.py"),
    ),
    "explore": (
        *("models/test_plain_state.py", "harness/test_explore_crash_states.py"),
        *("harness/test_explore_sample.py", "harness/test_explore_certificate.py"),
        *("harness/test_explore_judges.py", "harness/test_explore_verdicts.py"),
        *("harness/test_explore_state_key.py", "harness/test_explore_sharing.py"),
    ),
    "host": (
        *("engine/test_service_wakes.py", "engine/test_threads.py"),
        *("engine/test_real_disk.py", "engine/test_resources.py"),
    ),
}
AREAS = tuple(_OF_AREA)


def noticed_by(name: str) -> str:
    """The first test that fails with a mutant in place; "" if none does.

    Args:
        name: of a mutant; or an area, whose self-test is then run without any.

    Raises:
        AssertionError: the mutant could not be put in place.
    """
    env = {key: value for key, value in os.environ.items() if "PYTEST" not in key}
    try:
        ran = subprocess.run(
            [sys.executable, __file__, name],
            capture_output=True,
            text=True,
            env=env | {"PYTHONPATH": str(Path(crashmq.__file__).parents[1])},
            timeout=_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"it had not come to its end after {_TIMEOUT_S:.0f} s"
    told = ran.stdout.rpartition("\n" + _TOLD)
    assert told[1], f"{name}: {ran.stdout}{ran.stderr}"
    return told[2].strip()


class _Failures:
    """What failed, as pytest tells it; a file that cannot be collected too."""

    def __init__(self) -> None:
        self.first = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Called after each part of each test."""
        if report.failed:
            self.first = self.first or report.nodeid

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Called after each file was read."""
        if report.failed:
            self.first = self.first or report.nodeid


def _main(name: str) -> None:
    mutant = HARNESS_MUTANTS.get(name)
    area = mutant.area if mutant else name
    failures = _Failures()
    files = [str(_TESTS / part) for part in (*_OF_AREA[area], *_HISTORIES)]
    options = ["-x", "-q", "--tb=no", "-p", "no:cacheprovider", "-m", "not slow"]
    with applied(mutant.as_mutant()) if mutant else nullcontext():
        code = pytest.main([*options, *files], plugins=[failures])
    assert code == pytest.ExitCode.OK or failures.first, code
    print(f"{_TOLD}{failures.first}")


if __name__ == "__main__":
    _main(sys.argv[1])
