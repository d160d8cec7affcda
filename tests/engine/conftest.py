from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from golden_kinds import Reader, Row, RunClient
from store_builder import StoreBuilder

JVM_SECONDS_MAX = 300
GOLDEN = Path(__file__).parents[1] / "golden"
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


def java_and_maven() -> tuple[str, str]:
    java, maven = shutil.which("java"), shutil.which("mvn")
    if java is None or maven is None:
        pytest.skip("needs `java` and `mvn` on the PATH: RocketMQ runs in a JVM")
    return java, maven


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
    java, maven = java_and_maven()
    build = tmp_path_factory.mktemp("golden-filters")
    settings = ("-q", "-B", f"-Dgolden.build={build}")
    ran(maven, *settings, "-f", GOLDEN / "filters" / "pom.xml", "package")

    def ask(requests: Sequence[Row]) -> list[Any]:
        told = "".join(json.dumps(request) + "\n" for request in requests)
        home = tmp_path_factory.mktemp("home")
        jar = build / "golden-filters.jar"
        answers = ran(java, f"-Duser.home={home}", "-jar", jar, told=told)
        return [json.loads(line) for line in answers.splitlines()]

    return ask


@pytest.fixture(scope="session")
def golden_client(tmp_path_factory: pytest.TempPathFactory) -> RunClient:
    """Runs a program of ``golden/client``; needs Maven Central.

    Takes java's arguments from the class on, and what is told on standard input.
    """
    java, maven = java_and_maven()
    build = tmp_path_factory.mktemp("golden-client")
    java_home = f"-Duser.home={tmp_path_factory.mktemp('home')}"
    pom = GOLDEN / "client" / "pom.xml"
    ran(maven, "-q", "-B", f"-Dgolden.build={build}", "-f", pom, "package")
    on_jar = (java, java_home, "-cp", build / "golden-client.jar")
    return lambda *more, told="": ran(*on_jar, *more, told=told)
