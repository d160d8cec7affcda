from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from golden_kinds import Reader, Row
from store_builder import StoreBuilder


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
