"""Ctrl-C: exit code 130, no traceback, and what was found until then is told."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from toy_episode import PLANTED

from crashmq.harness.cli import main
from crashmq.harness.commands.output import Progress
from crashmq.harness.episodes.episode import Episode
from crashmq.harness.failures.case_file import CaseFile
from crashmq.harness.failures.shrink import ShrinkInterrupted, shrink
from crashmq.harness.guards.interrupts import INTERRUPTS
from crashmq.harness.mutants.mutation import applied
from crashmq.harness.searches import gate
from crashmq.harness.searches.gate import GateOptions, GateProgress, check
from crashmq.harness.searches.gate_parts import GateProfile
from crashmq.harness.searches.machine_search import first_failure
from crashmq.harness.searches.supervised import supervised
from crashmq.models.ops import PutMessage
from crashmq.models.program import Program, Setup

ROOT = Path(__file__).resolve().parents[2]
PATIENT_S = 60.0


@pytest.fixture(autouse=True)
def heard() -> Iterator[None]:
    """A job that a shell starts in the background does not hear interrupts."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
    with INTERRUPTS.heeded():  # so that none counts as seen by who runs here next
        pass


def interrupt(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGINT)


def interrupted_at(call: int) -> Callable[..., None]:
    """Interrupts in its n-th call and in no other."""
    calls = iter(range(1, 1_000_000))
    return lambda *_: interrupt() if next(calls) == call else None


def run_amid(
    monkeypatch: pytest.MonkeyPatch,
    place: object,
    name: str,
    inside: Callable[[], None],
) -> None:
    """Let ``inside`` happen in every call of one function."""
    real = getattr(place, name)

    def both(*args: object, **kwargs: object) -> object:
        inside()
        return real(*args, **kwargs)

    monkeypatch.setattr(place, name, both)


class Dying:
    """What is raised as it dies reaches nobody, as in callbacks of the collector."""


def test_an_interrupt_that_reached_nobody_is_raised_by_the_next_line_of_progress(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with INTERRUPTS.heeded(), Progress("work") as progress:
        dying = Dying()
        watched = weakref.ref(dying, interrupt)
        del dying
        with pytest.raises(KeyboardInterrupt):
            progress.update(1, 2)

    assert watched() is None
    assert INTERRUPTS.seen
    assert capsys.readouterr().err == ""
    INTERRUPTS.heed()  # the command is over: whoever works next in here is left alone


@pytest.mark.slow
def test_an_error_that_an_interrupt_became_is_no_defect(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def swaps_it() -> None:
        try:
            interrupt()
        except KeyboardInterrupt:
            raise ZeroDivisionError from None

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    run_amid(monkeypatch, gate, "runs_of", swaps_it)

    result = CliRunner().invoke(main, ["check", "reput_behind"])

    assert result.exit_code == 130, result.output
    assert "defect" not in result.stderr
    assert list(tmp_path.glob("crashmq-error-*")) == []


@pytest.mark.slow
def test_a_gate_that_swallows_an_interrupt_is_not_green(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def swallows_it() -> None:
        try:
            interrupt()
        except KeyboardInterrupt:
            return

    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(gate.PROFILES, "dev", GateProfile(2, 2, 300))
    run_amid(monkeypatch, gate, "GateRow", swallows_it)

    result = CliRunner().invoke(main, ["check", "reput_behind"])

    assert result.exit_code == 130, result.output
    assert "GREEN" not in result.stdout


@pytest.mark.slow
@pytest.mark.parametrize("call", [1, 3, 40])
def test_an_interrupt_amid_a_machine_ends_the_search_without_a_finding(
    monkeypatch: pytest.MonkeyPatch, call: int
) -> None:
    run_amid(monkeypatch, Episode, "step", interrupted_at(call))

    with INTERRUPTS.heeded(), pytest.raises(KeyboardInterrupt):
        first_failure("reput_behind", 20, None, lambda _: None)


@pytest.mark.slow
def test_a_shrinking_that_is_interrupted_gives_what_it_reached() -> None:
    program = Program(Setup(), (PutMessage("T0", 0, 7),) * 6)
    with (
        applied(PLANTED),
        INTERRUPTS.heeded(),
        pytest.raises(ShrinkInterrupted) as ended,
    ):
        shrink(program, "clean_restart", "PUT-1", progress=interrupted_at(3))

    so_far = ended.value.so_far
    assert so_far.exhausted
    assert so_far.result.law == "PUT-1"
    assert len(so_far.program.ops) < 6


@pytest.mark.slow
def test_what_the_gate_had_found_is_kept_and_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(gate.PROFILES, "dev", GateProfile(5, 2000, 300))

    def tell(far: GateProgress) -> None:
        if far.failures:
            interrupt()

    options = GateOptions(workers=2, artefacts=tmp_path, cases=tmp_path / "none")
    names = ["clean_restart", "reput_behind"]
    with INTERRUPTS.heeded():
        result = check(names, "dev", tell, mutant=PLANTED, options=options)

    assert result.interrupted
    assert [row.runs for row in result.rows if row.phase == "soak"] != [2000, 2000]
    assert result.failures
    assert all(CaseFile.load(one.case).violated for one in result.failures)


def test_a_child_leaves_interrupts_to_its_parent() -> None:
    def interrupted(number: int) -> int:
        interrupt()
        return number

    assert list(supervised(interrupted, range(3), PATIENT_S)) == [0, 1, 2]


COMMANDS = {
    "check": ("check", "reput_behind", "clean_restart"),
    "list": ("list", "laws"),
    "explore": ("explore", "power_loss", "--budget", "8", "--workers", "2"),
    # Two that eight seconds rarely find: it still searches when it is interrupted.
    "mutants": ("mutants", "--only", "E64,X21", "--budget", "8", "--workers", "2"),
}


@pytest.fixture(scope="module")
def starting_s() -> float:
    """How long Python and our door take before an interrupt is ours to hear."""
    began = time.monotonic()
    command = [sys.executable, "-m", "crashmq.harness.cli", "--version"]
    subprocess.run(command, check=True, capture_output=True)
    return time.monotonic() - began


@pytest.fixture(scope="module")
def whole_list() -> str:
    """What ``list`` tells if nobody interrupts it."""
    command = [sys.executable, "-m", "crashmq.harness.cli", *COMMANDS["list"]]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.mark.slow
def test_an_interrupt_while_python_ends_leaves_the_exit_code_alone() -> None:
    program = """
import os, signal, sys
from crashmq.harness.cli import main

class Last:
    def __del__(self, kill=os.kill, pid=os.getpid(), sigint=signal.SIGINT):
        kill(pid, sigint)

sys.modules["last"] = Last()
sys.argv = ["crashmq", "list", "laws"]
main()
"""
    command = [sys.executable, "-c", program]
    end = subprocess.run(command, capture_output=True, text=True)

    assert (end.returncode, end.stderr) == (0, "")


def test_an_interrupt_is_held_back_while_the_first_worker_starts() -> None:
    program = """
import os, signal
from multiprocessing import resource_tracker
from crashmq.harness.guards.interrupts import held_back, new_interpreters

signal.signal(signal.SIGINT, signal.default_int_handler)
new_interpreters()
try:
    with held_back():
        resource_tracker.getfd()  # as the start of each worker does
        os.kill(os.getpid(), signal.SIGINT)
        print("held back")
except KeyboardInterrupt:
    print("delivered")
"""
    command = [sys.executable, "-c", program]
    end = subprocess.run(command, check=True, capture_output=True, text=True)

    assert end.stdout.split("\n") == ["held back", "delivered", ""]


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("after_s", [0.1, 0.4, 1.1, 2.3, 4.1])
def test_an_interrupt_at_any_moment_ends_a_command(
    name: str, after_s: float, starting_s: float, whole_list: str, tmp_path: Path
) -> None:
    running = subprocess.Popen(
        [sys.executable, "-m", "crashmq.harness.cli", *COMMANDS[name]],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # Who runs the tests in the background may have interrupts ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    is_over = False
    try:
        running.wait(starting_s + after_s)
        is_over = True
    except subprocess.TimeoutExpired:
        os.killpg(running.pid, signal.SIGINT)
    told, said = running.communicate(timeout=PATIENT_S)
    # It came while Python was ending: the command had done all its work.
    is_over = is_over or (running.returncode == 0 and told == whole_list)

    assert "Traceback" not in said
    assert "Exception ignored" not in said
    assert is_over or running.returncode == 130
