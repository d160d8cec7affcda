"""A standalone cluster of Spark on this machine, from pyspark's own scripts."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

from crashmq.reports.jvm import java_home

_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
_DEPLOY = "org.apache.spark.deploy"
_BEGINS_WITHIN_S = 90.0
FIRST_COMPILER_ALONE = {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1"}
"""In the environment of JVMs that end before the second one pays, and of theirs."""


@contextmanager
def standalone_cluster(directory: Path, workers: int = 2) -> Iterator[str]:
    """A master with so many workers of one core each; its address."""
    port = _free_port()
    at = f"spark://127.0.0.1:{port}"
    master = ["master.Master", "--host", "127.0.0.1", "--port", str(port)]
    master += ["--webui-port", "0"]
    worker = ["worker.Worker", "--host", "127.0.0.1", "--webui-port", "0"]
    worker += ["--cores", "1", "--memory", "1g"]
    running: list[subprocess.Popen[bytes]] = []
    try:
        running.append(_started(directory / "master", master))
        _wait_for(directory / "master" / "log", "New state: ALIVE", 1)
        for number in range(workers):
            place = directory / f"worker{number}"
            words = [*worker, "--work-dir", str(place / "work"), at]
            running.append(_started(place, words))
        _wait_for(directory / "master" / "log", "Registering worker", workers)
        yield at
    finally:
        for process in reversed(running):
            process.terminate()
        for process in running:
            process.wait(30)


def _started(place: Path, words: list[str]) -> subprocess.Popen[bytes]:
    place.mkdir(parents=True)
    environment = os.environ | {
        "JAVA_HOME": str(java_home()),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_DAEMON_MEMORY": "256m",
        **FIRST_COMPILER_ALONE,
    }
    with (place / "log").open("wb") as log:
        return subprocess.Popen(
            [_CLASS, *(f"{_DEPLOY}.{words[0]}", *words[1:])],
            env=environment,
            cwd=place,
            stdout=log,
            stderr=log,
        )


def _wait_for(log: Path, said: str, times: int) -> None:
    until = time.monotonic() + _BEGINS_WITHIN_S
    while len(re.findall(said, log.read_text("utf-8", "replace"))) < times:
        if time.monotonic() > until:
            told = log.read_text("utf-8", "replace")[-2000:]
            raise TimeoutError(f"{log} does not say {said!r} {times} times: {told}")
        time.sleep(0.1)


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])
