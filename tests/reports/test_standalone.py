"""A standalone cluster, and spark-submit, come to what processes here come to."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed")
cluster = pytest.importorskip("standalone_cluster")
pack = pytest.importorskip("packed_environment")
jvm = pytest.importorskip("crashmq.reports.jvm")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.spark,
    pytest.mark.xdist_group("spark"),
]
CRASHMQ = (sys.executable, "-m", "crashmq.harness.cli")
SOAK = ("soak", "clean_restart", "--mutant", "R22", "--episodes", "24")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the cluster keeps its logs, and executors their working directories."""
    return tmp_path_factory.mktemp("cluster")


@pytest.fixture(scope="module")
def master(place: Path) -> Iterator[str]:
    with cluster.standalone_cluster(place) as address:
        yield address


def ran(
    command: list[str],
    environment: dict[str, str] | None = None,
    directory: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=directory,
        env=os.environ | cluster.FIRST_COMPILER_ALONE | (environment or {}),
        capture_output=True,
        text=True,
        check=False,
    )


def digest_of(done: subprocess.CompletedProcess[str], out: Path) -> object:
    assert done.returncode == 1, done.stdout + done.stderr
    return json.loads((out / "summary.json").read_text())["digest"]


def test_executors_judge_the_store_that_lies_where_the_soak_was_begun(
    master: str, tmp_path: Path
) -> None:
    example = Path(__file__).resolve().parents[2] / "docs/examples/note_store.py"
    shutil.copy(example, tmp_path / "my_notes.py")
    # Somebody's own Python, by another name, as that of a packed environment has.
    named = tmp_path / "environment" / "bin" / "python"
    named.parent.mkdir(parents=True)
    named.write_text(
        f'#!/bin/sh\necho met >>"{tmp_path}/met"\nexec "{sys.executable}" "$@"\n'
    )
    named.chmod(0o755)
    soak = ["soak", "process_kill", "--subject", "my_notes:NoteStore"]
    soak += ["--episodes", "24"]
    manners = {"here": ["--local"], "there": ["--master", master]}

    came_to = [
        digest_of(
            ran(
                [*CRASHMQ, *soak, *manner, "--out", name],
                {"PYSPARK_PYTHON": str(named)},
                tmp_path,
            ),
            tmp_path / name,
        )
        for name, manner in manners.items()
    ]

    assert came_to[0] == came_to[1]
    assert (tmp_path / "met").exists()


def test_under_spark_submit_a_packed_environment_is_all_that_executors_need(
    master: str, place: Path, tmp_path: Path
) -> None:
    here = tmp_path / "here"
    digest = digest_of(ran([*CRASHMQ, *SOAK, "--local", "--out", str(here)]), here)
    out, night = tmp_path / "run", tmp_path / "night"
    pack.environment_at(night)
    archive = pack.packed(night)
    python, submit = night / "bin" / "python", "pyspark/bin/spark-submit"
    (packages,) = night.glob("lib/python*/site-packages")
    cli = packages / "crashmq" / "harness" / "cli.py"

    settings = ["--master", master, "--archives", f"{archive}#night"]
    settings += ["--conf", "spark.executor.memory=512m"]
    settings += ["--conf", "spark.cores.max=1"]  # to unpack it once is enough
    done = ran(
        [str(packages / submit), *settings, str(cli), *SOAK, "--out", str(out)],
        {
            "JAVA_HOME": str(jvm.java_home()),
            "PYSPARK_DRIVER_PYTHON": str(python),
            "PYSPARK_PYTHON": "./night/bin/python",
            "PYTHONPATH": "",
            "SPARK_LOCAL_IP": "127.0.0.1",
        },
    )

    assert digest_of(done, out) == digest
    assert not (out / "spark").exists()
    unpacked = place.glob("worker*/work/*/*/night/bin/python")
    assert [each.parents[2].name for each in unpacked] != []
