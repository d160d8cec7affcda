"""Ctrl-C at moments drawn by a seed, over all commands: 130, at once, no traceback.

    python benchmarks/interrupts.py [--moments N] [--seed S] [--only NAME...]

Each command is run once to its end, or for twelve seconds, which says how long it
takes; then again for each moment, and interrupted there as a terminal does it: the
whole group of processes gets the signal. A moment lies between the first line that
Python runs for us and the end, so imports, forks, searches, shrinking and what is said
at the end are all met. A command that was over by then is run again with another one.

What must hold: exit code 130, no traceback, the end within two seconds (``--within``)
of the signal, and no process left behind. Exit code 1 if one of them does not.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from unpacking import unpacked  # noqa: E402  # where it lies is said just before

PATIENT_S = 120.0
LONGEST_S = 12.0
PROGRAM = """
import os, sys
os.write({ready}, b".")
from crashmq.harness.cli import main
main()
"""
TRACES = ("Traceback", "Exception ignored", "defect of crashmq")
GOLDEN = ROOT / "tests" / "golden" / "rocketmq-5.3.0-killed.tar.xz"
CASE = "found.case.json"
BROKEN = "check clean_restart --mutant R21 -x -q"
COMMANDS = {
    "check": "check reput_behind clean_restart",
    "check, red": "check truncated_files --mutant R28",
    "soak": "soak power_loss clean_restart --local --episodes 300 --out {new}",
    "soak, red": "soak truncated_files --mutant R28 --local --episodes 60 --out {new}",
    "report": "report run",
    "nights": "nights .",
    "compact": "compact run",
    "sql": "sql run select+count(*)+from+episodes",
    "replay": f"replay {CASE} --until breach --svg {{new}}.svg",
    "shrink": "shrink {case}",
    "explain": "explain CQ-1",
    "case": f"case {CASE} --pytest",
    "explore": "explore power_loss --budget 5 --out {new}",
    "explore, red": "explore clean_restart --mutant R21 --budget 5",
    "explore --world": "explore --world 2 --budget 5",
    "explore --schedules": "explore overlaps --schedules 1 --budget 5",
    "explore --failures": "explore power_loss --failures --budget 5",
    "mutants": "mutants --only R28,R02 --budget 5 --out {new}",
    "mutants --operators": "mutants --operators --sample 3 --budget 3 --out {new}",
    "corpus": "corpus --episodes 300 --out {new}.jsonl",
    "fsck": "fsck store",
    "inspect": "inspect store",
    "diff": "diff store store",
    "rebuild": "rebuild store --out {new}",
    "salvage": "salvage store --out {new}",
    "list": "list laws",
    "list pairs": "list pairs",
    "doctor": "doctor",
}


@dataclass(frozen=True, slots=True)
class End:
    """How a command ended: its exit code, what it said, and how long it took."""

    code: int
    said: str
    seconds: float
    was_over: bool
    left: bool


class Place:
    """A directory with what the commands ask for, and a new name for each output."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._made = 0
        self._cases = 0

    def fill(self) -> None:
        """A store of RocketMQ's, a failing case and the rows of a soak."""
        unpacked(GOLDEN, self.root / "golden")
        (self.root / "golden" / "store").rename(self.root / "store")
        run(self, f"soak clean_restart --local --episodes 40 --out {self.root / 'run'}")
        run(self, BROKEN)
        (case,) = (self.root / ".crashmq").glob("*.case.json")
        case.rename(self.root / CASE)

    def words(self, typed: str) -> list[str]:
        """What is typed, with names for what it makes."""
        self._made += 1
        case = self.root / f"again{self._made}.case.json"
        if "{case}" in typed:
            shutil.copy(self.root / CASE, case)
        new = self.root / f"new{self._made}"
        words = typed.format(new=new, case=case).split()
        return [word.replace("+", " ") for word in words]


def run(place: Place, typed: str, after_s: float | None = None) -> End:
    """Run a command; interrupt it so long after Python has begun with it."""
    read, write = os.pipe()
    program = PROGRAM.format(ready=write)
    with tempfile.TemporaryFile("w+") as said, tempfile.TemporaryFile() as told:
        running = subprocess.Popen(
            [sys.executable, "-c", program, *place.words(typed)],
            cwd=place.root,
            env={**os.environ, "PYTHONPATH": str(ROOT / ".ci" / "checkout")},
            stdout=told,
            stderr=said,
            pass_fds=[write],
            start_new_session=True,
            preexec_fn=heed_interrupts,
        )
        os.close(write)
        os.read(read, 1)
        os.close(read)
        began, was_over, told_then = time.monotonic(), True, 0
        if after_s is not None:
            try:
                running.wait(after_s)
            except subprocess.TimeoutExpired:
                was_over, began = False, time.monotonic()
                told_then = os.fstat(told.fileno()).st_size
                os.killpg(running.pid, signal.SIGINT)
        running.wait(PATIENT_S)
        seconds = time.monotonic() - began
        said.seek(0)
        # All was told and Python was ending: there was nothing left to interrupt.
        is_all = 0 < told_then == os.fstat(told.fileno()).st_size
        was_over = was_over or (is_all and running.returncode != 130)
        return End(
            running.returncode, said.read(), seconds, was_over, is_left(running.pid)
        )


def heed_interrupts() -> None:
    """Who runs this in the background may have interrupts ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def is_left(group: int) -> bool:
    """Whether a process of a group still lives a while after its first one."""
    for _ in range(40):
        if not any(is_alive(Path("/proc", str(one)), group) for one in processes()):
            return False
        time.sleep(0.05)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
    return True


def processes() -> list[int]:
    """The processes of this machine, by number."""
    return [int(one.name) for one in Path("/proc").iterdir() if one.name.isdigit()]


def is_alive(process: Path, group: int) -> bool:
    """Whether a process of a group runs; one that waits to be buried does not."""
    try:
        state, _, of = (process / "stat").read_text().rpartition(")")[2].split()[:3]
    except OSError:
        return False
    return int(of) == group and state not in "ZX"


def wrong_with(end: End, within_s: float) -> str:
    """What is wrong with how an interrupt ended a command; "" for nothing."""
    if any(trace in end.said for trace in TRACES):
        return f"a traceback:\n{end.said}"
    if end.code != 130:
        return f"exit code {end.code}:\n{end.said}"
    if end.left:
        return "a process is left"
    if end.seconds > within_s:
        return f"it took {end.seconds:.1f} s"
    return ""


def main() -> None:
    """Interrupt, and say how it went."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--moments", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=list(COMMANDS))
    parser.add_argument("--within", type=float, default=2.0, metavar="SECONDS")
    asked = parser.parse_args()
    chance = random.Random(asked.seed)
    lasts, ends, wrong = dict[str, float](), dict[str, list[End]](), 0
    with tempfile.TemporaryDirectory() as directory:
        place = Place(Path(directory))
        place.fill()
        for number in range(asked.moments):
            name = asked.only[number % len(asked.only)]
            if name not in lasts:
                whole = run(place, COMMANDS[name], LONGEST_S)
                lasts[name] = whole.seconds if whole.was_over else LONGEST_S
            end = None
            while end is None or end.was_over:
                moment = chance.uniform(0.0, lasts[name])
                end = run(place, COMMANDS[name], moment)
            ends.setdefault(name, []).append(end)
            print(f"{number + 1} of {asked.moments}", end="\r", file=sys.stderr)
            if said := wrong_with(end, asked.within):
                wrong += 1
                print(f"WRONG  {name}, after {moment:.3f} s: {said}", flush=True)
    for name, each in ends.items():
        slowest = max(end.seconds for end in each)
        print(
            f"{name:20} {len(each):4} of {lasts[name]:5.1f} s, ended in {slowest:.2f}"
        )
    every = [end for each in ends.values() for end in each]
    good = len(every) - wrong
    print(f"{good} of {len(every)}: 130, no traceback, within {asked.within:g} s")
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
