"""Fixtures for the whole suite: store directories that Apache RocketMQ wrote.

And RocketMQ itself, where there is a JVM.
"""

from __future__ import annotations

import gc
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from java_programs import OneJvm, built, java_on, ran
from unpacking import unpacked

from crashmq.harness.mutants.living import settle

GOLDEN = Path(__file__).parent / "golden"

# Hundreds of commands are started, and each would compile all of ours again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

GoldenStore: TypeAlias = Callable[[str], tuple[Path, list[dict[str, Any]]]]
GoldenWriter: TypeAlias = Callable[..., "subprocess.CompletedProcess[str]"]


_SETTLED_EVERY = 50  # tests
_ended = count(1)

_IN_MEMORY = Path("/dev/shm")
_ROOM_IN_MEMORY = 8 << 30


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--deep",
        action="store_true",
        help="try all of what the gate takes a sample of: crash states of a repair, "
        "kills, damaged copies, random records (an hour more)",
    )


@pytest.fixture(scope="session")
def deep(pytestconfig: pytest.Config) -> bool:
    """Whether all is tried of which the gate takes a sample."""
    return bool(pytestconfig.getoption("--deep"))


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Put temporary directories into memory if there is room.

    Nobody cuts the power amid a test, and thousands of directories are synced and
    removed; on a disk the tests wait for that longer than they run. They are removed at
    the end: ``--basetemp`` keeps them.
    """
    is_worker = hasattr(config, "workerinput")
    if is_worker or config.option.basetemp is not None or not _IN_MEMORY.is_dir():
        return
    if shutil.disk_usage(_IN_MEMORY).free >= _ROOM_IN_MEMORY:
        made = tempfile.mkdtemp(prefix="crashmq-tests-", dir=_IN_MEMORY)
        config.option.basetemp = made
        config.add_cleanup(lambda: shutil.rmtree(made, ignore_errors=True))


def pytest_xdist_auto_num_workers() -> int:
    """Half as many again as there are cores, since JVMs and threads are waited for."""
    cores = len(os.sched_getaffinity(0))
    return cores + cores // 2


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What starts a JVM is slow; the longest first, so that all workers end together.

    A group is one worker's, however long it takes; then what is slow, then the rest.
    """
    for item in items:
        if item.get_closest_marker("spark") or item.get_closest_marker("rocketmq"):
            item.add_marker(pytest.mark.slow)

    def rank(item: pytest.Item) -> int:
        if item.get_closest_marker("xdist_group"):
            return 0
        return 1 if item.get_closest_marker("slow") else 2

    items.sort(key=rank)


def pytest_collection_finish() -> None:
    """Hide the thousands of tests from who searches all that lives for functions."""
    settle()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    """Hide what tests have left in caches, too."""
    if next(_ended) % _SETTLED_EVERY == 0:
        settle()


def pytest_unconfigure() -> None:
    """Let Python end as usual: some libraries complain of what was not freed then."""
    gc.unfreeze()


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
def golden_writer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GoldenWriter]:
    """Runs a verb of ``golden/writer`` on the released jars; needs Maven Central.

    One process answers all: a JVM starts once, and an orderly end of RocketMQ, which
    sleeps for seconds, goes on behind.
    """
    jar = built("writer")
    home = tmp_path_factory.mktemp("home")
    with OneJvm(jar, home) as jvm:
        yield jvm.ask


@pytest.fixture(scope="session")
def golden_config_writer(tmp_path_factory: pytest.TempPathFactory) -> GoldenWriter:
    """Runs a verb of ``golden/config_writer``, on the released broker's jar."""
    jar = built("config_writer")
    home = tmp_path_factory.mktemp("home")
    return lambda *verb: ran(*java_on(jar, home), *map(str, verb))
