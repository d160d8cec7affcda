from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from golden_kinds import Reader, Row, RunClient
from java_programs import JVM_SECONDS_MAX, built
from store_builder import StoreBuilder

AskFilters: TypeAlias = Callable[[Sequence[Row]], list[Any]]


@pytest.fixture
def store() -> StoreBuilder:
    return StoreBuilder()


@pytest.fixture
def rocketmq(
    golden_writer: Callable[..., subprocess.CompletedProcess[str]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Reader:
    """Lets the real store open a copy of a directory, and tells what it serves."""

    def read(root: Path, settings: Row | None = None, *more: str) -> list[Row]:
        copy = Path(shutil.copytree(root, tmp_path_factory.mktemp("copy") / "store"))
        sizes = (
            ()
            if settings is None
            else (
                *("--kind", settings["kind"]),
                *("--log-file-size", str(settings["log_file_size"])),
                *("--queue-file-size", str(settings["queue_file_size"])),
            )
        )
        done = golden_writer("read", copy, *sizes, *more)
        assert done.returncode == 0, done.stdout + done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    return read


def ran(*command: str | Path, told: str = "") -> str:
    done = subprocess.run(
        command,
        input=told,
        capture_output=True,
        encoding="utf-8",
        timeout=JVM_SECONDS_MAX,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="session")
def rocketmq_filters(tmp_path_factory: pytest.TempPathFactory) -> AskFilters:
    """Asks RocketMQ's own filter classes; ``golden/filters`` says what."""
    jar = built("filters")

    def ask(requests: Sequence[Row]) -> list[Any]:
        told = "".join(json.dumps(request) + "\n" for request in requests)
        home = tmp_path_factory.mktemp("home")
        answers = ran("java", f"-Duser.home={home}", "-jar", jar, told=told)
        return [json.loads(line) for line in answers.splitlines()]

    return ask


@pytest.fixture(scope="session")
def golden_client(tmp_path_factory: pytest.TempPathFactory) -> RunClient:
    """Runs a program of ``golden/client``; needs Maven Central.

    Takes java's arguments from the class on, and what is told on standard input.
    """
    java_home = f"-Duser.home={tmp_path_factory.mktemp('home')}"
    on_jar = ("java", java_home, "-cp", built("client"))
    return lambda *more, told="": ran(*on_jar, *more, told=told)
