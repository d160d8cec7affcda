"""What a command says of its progress where nobody sees a bar move."""

from __future__ import annotations

import pytest

from crashmq.harness.commands import output
from crashmq.harness.commands.output import Progress


@pytest.fixture(autouse=True)
def always_due(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "_QUIET_S", 0.0)
    monkeypatch.setattr(output, "_SAID_OF_ALL", float("inf"))


def test_no_line_is_said_again_while_nothing_moves(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with Progress("check") as progress:
        for done, detail in (
            (0, "9 s left"),
            (1, "8 s left"),
            (1, "7 s left"),
            (2, ""),
        ):
            progress.update(done, 44, detail)
        progress.tell("shrink", 2, 3)

    assert capsys.readouterr().err.splitlines() == [
        "check: 0 of 44, 9 s left",
        "check: 1 of 44, 8 s left",
        "check: 2 of 44",
        "shrink: 2 of 3",
    ]


def test_a_long_run_speaks_at_each_tenth_of_its_time(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(output, "_SAID_OF_ALL", 1e-9)

    with Progress("soak") as progress:
        progress.update(1, 9)

    assert capsys.readouterr().err == ""
