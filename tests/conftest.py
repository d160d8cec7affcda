"""Fixtures for the whole suite: store directories that Apache RocketMQ wrote."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

GOLDEN = Path(__file__).parent / "golden"

GoldenStore: TypeAlias = Callable[[str], tuple[Path, list[dict[str, Any]]]]


@pytest.fixture
def golden_store(tmp_path: Path) -> GoldenStore:
    """Unpacks ``rocketmq-5.3.0-<name>``: the store's root, and its manifest's rows."""

    def unpack(name: str) -> tuple[Path, list[dict[str, Any]]]:
        target = tmp_path / name
        with tarfile.open(GOLDEN / f"rocketmq-5.3.0-{name}.tar.xz") as archive:
            archive.extractall(target, filter="data")
        manifest = (target / "manifest.jsonl").read_text("utf-8")
        return target / "store", [json.loads(line) for line in manifest.splitlines()]

    return unpack
