"""Fixtures for the whole suite: store directories that Apache RocketMQ wrote.

And RocketMQ itself, where there is a JVM.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from unpacking import unpacked

GOLDEN = Path(__file__).parent / "golden"

JVM_SECONDS_MAX = 300

GoldenStore: TypeAlias = Callable[[str], tuple[Path, list[dict[str, Any]]]]
GoldenWriter: TypeAlias = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def golden_store(tmp_path: Path) -> GoldenStore:
    """Unpacks ``rocketmq-5.3.0-<name>``: the store's root, and its manifest's rows."""

    def unpack(name: str) -> tuple[Path, list[dict[str, Any]]]:
        target = tmp_path / name
        unpacked(GOLDEN / f"rocketmq-5.3.0-{name}.tar.xz", target)
        manifest = (target / "manifest.jsonl").read_text("utf-8")
        return target / "store", [json.loads(line) for line in manifest.splitlines()]

    return unpack


@pytest.fixture(scope="session")
def golden_writer(tmp_path_factory: pytest.TempPathFactory) -> GoldenWriter:
    """Runs a verb of ``golden/writer`` on the released jars; needs Maven Central."""
    return built_writer("writer", tmp_path_factory)


@pytest.fixture(scope="session")
def golden_config_writer(tmp_path_factory: pytest.TempPathFactory) -> GoldenWriter:
    """Runs a verb of ``golden/config_writer``, on the released broker's jar."""
    return built_writer("config_writer", tmp_path_factory)


def built_writer(name: str, tmp_path_factory: pytest.TempPathFactory) -> GoldenWriter:
    """Builds a Java program of ``golden``; skips where no JVM or Maven is."""
    java, maven = shutil.which("java"), shutil.which("mvn")
    if java is None or maven is None:
        pytest.skip("needs `java` and `mvn` on the PATH: RocketMQ runs in a JVM")
    build = tmp_path_factory.mktemp(f"golden-{name}")
    home = tmp_path_factory.mktemp("home")

    def ran(*command: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, capture_output=True, encoding="utf-8", timeout=JVM_SECONDS_MAX
        )

    settings = ("-q", "-B", f"-Dgolden.build={build}")
    done = ran(maven, *settings, "-f", GOLDEN / name / "pom.xml", "package")
    assert done.returncode == 0, done.stdout + done.stderr
    (jar,) = build.glob("golden-*.jar")
    return lambda *verb: ran(java, f"-Duser.home={home}", "-jar", jar, *verb)
