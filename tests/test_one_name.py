"""Everything of ours is imported as ``crashmq``, once, and from this checkout."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import crashmq

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("engine", "harness", "models", "reports", "scenarios")


def test_it_is_this_checkout_that_is_tested() -> None:
    path = ROOT / ".ci" / "checkout"
    imported = Path(crashmq.__file__).resolve()

    assert imported.is_relative_to(path), f"set PYTHONPATH={path} to test this checkout"


def test_no_module_of_ours_goes_by_another_name() -> None:
    named = {
        name: Path(file).resolve()
        for name, module in list(sys.modules.items())
        if (file := getattr(module, "__file__", None))
    }
    rooms = [ROOT / room for room in ROOMS]

    assert [
        name
        for name, file in named.items()
        if any(file.is_relative_to(room) for room in rooms)
        and not name.startswith("crashmq.")
    ] == []


def test_each_file_of_a_room_is_imported_once() -> None:
    named: dict[Path, str] = {}
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file and name.startswith("crashmq."):
            path = Path(file).resolve()
            assert named.setdefault(path, name) == name


@pytest.mark.slow
def test_whatever_a_command_imports_of_ours_is_below_the_one_name() -> None:
    asked = (
        "import sys\n"
        "import crashmq.harness.cli, crashmq.harness.commands.check\n"
        "import crashmq.harness.commands.mutants, crashmq.harness.pytest_plugin\n"
        f"print([name for name in sys.modules if name.partition('.')[0] in {ROOMS!r}])"
    )
    path = str(Path(crashmq.__file__).parents[1])
    told = subprocess.run(
        [sys.executable, "-c", asked],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": path},
    )

    assert told.stdout.strip() == "[]"
