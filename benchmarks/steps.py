"""What a judged step costs, and where the time goes.

Run ``python benchmarks/steps.py`` from the checkout; it takes about 80 seconds. Time is
the CPU's, of this one process, and each figure is the median of three repeats that are
interleaved with those it is compared with. Compare ratios; the figures themselves also
tell how busy the machine was. An op is one of a program's; ``RunService`` is one op,
whatever its rounds, and the healing at an episode's end is part of its time.
"""

from __future__ import annotations

import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from statistics import median
from types import FrameType
from typing import ClassVar

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / ".ci" / "checkout"))

from hypothesis import seed, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    rule,
    run_state_machine_as_test,
)

import crashmq
from crashmq.harness.episodes.episode import run_program
from crashmq.harness.judging.judge import Judge
from crashmq.harness.searches.machine import StoreMachine, machine_for
from crashmq.harness.searches.search_settings import search_settings
from crashmq.models.knowledge.moments import Moment
from crashmq.models.ops import Op
from crashmq.models.program import Program, Setup
from crashmq.scenarios.catalogue.scenarios import SCENARIOS
from crashmq.scenarios.programs.workload import program_for

ROOT = f"{Path(crashmq.__file__).parent}/"
REPEATS = 3
EPISODES = 5  # of each scenario
EXAMPLES = 60
SEARCHED = "power_loss"
SAMPLE_S = 0.001

# Where a frame's file belongs; the first that fits counts.
ROOMS = (
    ("engine", "engine/"),
    ("disk", "harness/disk/"),
    ("image", "models/files/"),
    ("knowledge", "models/knowledge/"),
    ("laws", "models/laws/"),
    ("judge", "harness/judging/"),
    ("activities", "harness/scheduling/"),
    ("subject", "harness/subjects/"),
    ("history", "models/history.py"),
    ("rest", ""),
)


@contextmanager
def replaced(owner: type, name: str, value: object) -> Iterator[None]:
    """Put another function in a method's place, to see what the method costs."""
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


def nothing(*args: object, **kwargs: object) -> None:
    del args, kwargs


def without_judge() -> AbstractContextManager[None]:
    """Neither laws nor knowledge: ops are run and recorded, that is all."""
    return replaced(Judge, "ask", nothing)


def without_laws() -> AbstractContextManager[None]:
    """What is known is kept, but no law is asked; images are read for it alone."""
    return replaced(Judge, "ask", walked)


def walked(judge: Judge, moments: Iterable[Moment]) -> None:
    del judge
    for _ in moments:
        pass


VARIANTS: dict[str, Callable[[], AbstractContextManager[None]]] = {
    "judged": nullcontext,
    "laws off": without_laws,
    "laws and knowledge off": without_judge,
}


def programs() -> list[tuple[str, Program]]:
    return [
        (name, program_for(scenario, 0, number))
        for number in range(EPISODES)
        for name, scenario in SCENARIOS.items()
    ]


def run_all(given: list[tuple[str, Program]]) -> None:
    for name, program in given:
        run_program(program, name, keep_trace=False)


def seeded_rates() -> dict[str, float]:
    """Ops a second of seeded episodes, by what of the judging is left.

    Knowledge alone cannot be taken away: laws ask it and it adopts images. Without it
    nothing is known to be read back at the end, so such episodes heal less.
    """
    given = programs()
    ops = sum(len(program.ops) for _, program in given)
    rates: dict[str, list[float]] = {name: [] for name in VARIANTS}
    for _ in range(REPEATS):
        for name, variant in VARIANTS.items():
            with variant():
                start = time.process_time()
                run_all(given)
                spent = time.process_time() - start
            rates[name].append(ops / spent)
    return {name: median(values) for name, values in rates.items()}


class CountingMachine(StoreMachine):
    """Counts the rules that Hypothesis takes and the ops that they write."""

    written: ClassVar[Counter[str]] = Counter()

    def step(self, *ops: Op) -> None:
        self.written["rules"] += 1
        self.written["ops"] += len(ops)
        super().step(*ops)


class EmptyMachine(StoreMachine):
    """Writes what the real machine writes, and does nothing with it."""

    def open(self, setup: Setup) -> None:
        del setup

    def step(self, *ops: Op) -> None:
        CountingMachine.written["rules"] += 1
        CountingMachine.written["ops"] += len(ops)


class IdleMachine(RuleBasedStateMachine):
    """Draws nothing: what is left is Hypothesis's own."""

    scenario = SCENARIOS[SEARCHED]


def idle_machine(like: type[StoreMachine]) -> type[RuleBasedStateMachine]:
    """One with as many rules as a machine has."""

    def taking(name: str) -> object:
        def take(self: IdleMachine) -> None:
            del self
            CountingMachine.written["rules"] += 1

        take.__name__ = take.__qualname__ = name
        return rule()(take)

    names = [each.function.__name__ for each in like.setup_state().rules]
    return type("Idle", (IdleMachine,), {name: taking(name) for name in names})


def search(machine: type[RuleBasedStateMachine]) -> tuple[float, Counter[str]]:
    """Seconds of one search of a fixed size from a fixed seed; what it took."""
    steps = SCENARIOS[SEARCHED].machine_steps
    chosen = search_settings("dev", max_examples=EXAMPLES, steps=steps, shrinks=False)
    CountingMachine.written.clear()
    seeded = seed(0)(machine)
    start = time.process_time()
    run_state_machine_as_test(seeded, settings=settings(chosen, database=None))
    return time.process_time() - start, CountingMachine.written


def machine_rates() -> tuple[dict[str, float], dict[str, float]]:
    """Rules a second, and ops, of a machine and of others that do less.

    Seeded episodes of the same scenario are among the latter: what Hypothesis adds to
    the search costs the difference.
    """
    rules = machine_for(SEARCHED)
    machines: dict[str, type[RuleBasedStateMachine]] = {
        "the machine": type("RealMachine", (CountingMachine, rules), {}),
        "steps are empty": type("NoMachine", (EmptyMachine, rules), {}),
        "nothing is drawn": idle_machine(rules),
    }
    by_rules: dict[str, list[float]] = {name: [] for name in machines}
    by_ops: dict[str, list[float]] = {
        name: [] for name in ("the machine", "steps are empty", "seeded episodes")
    }
    for _ in range(REPEATS):
        for name, machine in machines.items():
            spent, taken = search(machine)
            by_rules[name].append(taken["rules"] / spent)
            if name in by_ops:
                by_ops[name].append(taken["ops"] / spent)
        by_ops["seeded episodes"].append(seeded_search())
    return (
        {name: median(values) for name, values in by_rules.items()},
        {name: median(values) for name, values in by_ops.items()},
    )


def seeded_search() -> float:
    """Ops a second of seeded episodes, drawn and judged, without those of healing."""
    start, ops = time.process_time(), 0
    for number in range(EXAMPLES):
        program = program_for(SCENARIOS[SEARCHED], 0, number)
        run_program(program, SEARCHED, keep_trace=False)
        ops += len(program.ops)
    return ops / (time.process_time() - start)


def room_of(frame: FrameType | None) -> str:
    """The room of the innermost frame that is ours: who calls a library pays for it."""
    while frame is not None:
        path = frame.f_code.co_filename
        if path.startswith(ROOT):
            inner = path.removeprefix(ROOT)
            return next(room for room, at in ROOMS if inner.startswith(at))
        frame = frame.f_back
    return "rest"


@contextmanager
def sampling() -> Iterator[Counter[str]]:
    """Count, at each tick of the CPU's time, the room in which the process is."""
    samples: Counter[str] = Counter()

    def note(number: int, frame: FrameType | None) -> None:
        del number
        samples[room_of(frame)] += 1

    before = signal.signal(signal.SIGPROF, note)
    signal.setitimer(signal.ITIMER_PROF, SAMPLE_S, SAMPLE_S)
    try:
        yield samples
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def shares() -> dict[str, float]:
    """The part of the time that each room takes of judged seeded episodes.

    What a law has worked out of an image for the first time counts for the image.
    """
    given = programs()
    rooms = list(dict.fromkeys(room for room, _ in ROOMS))
    found: dict[str, list[float]] = {room: [] for room in rooms}
    for _ in range(REPEATS):
        with sampling() as samples:
            run_all(given)
        for room in rooms:
            found[room].append(samples[room] / samples.total())
    return {room: median(values) for room, values in found.items()}


def show_rates(title: str, rates: dict[str, float], unit: str) -> None:
    print(title)
    first = next(iter(rates.values()))
    for name, rate in rates.items():
        print(f"  {name:28} {rate:8,.0f} {unit}   first is {first / rate:.2f} of it")


def main() -> None:
    run_all(programs()[: len(SCENARIOS)])
    show_rates("seeded episodes, all scenarios", seeded_rates(), "ops/s/core")
    by_rules, by_ops = machine_rates()
    show_rates(f"Hypothesis, {SEARCHED}, by rules", by_rules, "rules/s")
    show_rates(f"Hypothesis, {SEARCHED}, by ops", by_ops, "ops/s")
    print("share of the time of judged seeded episodes")
    for room, share in shares().items():
        print(f"  {room:28} {share:8.1%}")


if __name__ == "__main__":
    main()
