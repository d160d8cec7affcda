"""Episodes that hang, eat memory, leave and fork, in one soak of the real kind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="pip install 'crashmq[reports]' brings it")
ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts what it gave")
def test_each_bad_episode_is_a_row_and_the_run_ends() -> None:
    bad = ("--hang", "8", "--eat", "1", "--leave", "2", "--fork", "4")
    script = [sys.executable, str(ROOT / "benchmarks" / "bad_episodes.py"), *bad]

    told = subprocess.run(
        [*script, "--episodes", "120", "--timeout", "1"],
        capture_output=True,
        text=True,
        check=False,
    )

    # It complains of rows and of processes by itself, and of another exit code than 1.
    assert told.returncode == 0, told.stdout + told.stderr
    assert "Hung or died: 1" in told.stdout
    assert "120 rows; " in told.stdout
