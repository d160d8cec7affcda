"""The table of RocketMQ's unit tests names tests that are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "docs" / "rocketmq-unit-tests.md"


@pytest.mark.slow
def test_every_test_the_table_names_exists() -> None:
    named = re.findall(r"`(test_\w+\.py)::(test_\w+)`", TABLE.read_text("utf-8"))
    files = {path.name: path.read_text("utf-8") for path in ROOT.rglob("tests/**/*.py")}

    missing = [
        f"{file}::{test}"
        for file, test in named
        if f"def {test}(" not in files.get(file, "")
    ]

    assert len(named) > 40
    assert missing == []


def test_every_row_has_a_test_or_a_reason() -> None:
    rows = [
        line
        for line in TABLE.read_text("utf-8").splitlines()
        if line.startswith("| ") and not line.startswith("| RocketMQ's test")
    ]

    assert rows
    for row in rows:
        assert "::test_" in row or "left out: " in row, row
