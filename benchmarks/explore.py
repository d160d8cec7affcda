"""The explorer on fixed histories: states decided, recovered and judged, a second.

Run by hand: ``python benchmarks/explore.py [histories]``; ``--write`` makes the
histories anew, and figures of before do not compare. Figures are of one core's CPU
time. The baseline does what a harness without an explorer does: it runs the program of
each state from its first op to its end. Both do states of the same histories; the
baseline does one in so many of them, since it would take hours for all.
"""

from __future__ import annotations

import argparse
import sys
import time
from itertools import islice
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / ".ci" / "checkout"))

from benchmarks.fixed_histories import HISTORIES, jobs, write
from crashmq.harness.episodes.episode import Episode, run_program
from crashmq.harness.explore.campaign import Job, run_job
from crashmq.harness.explore.certificate import Certificate
from crashmq.harness.explore.crash_point import record
from crashmq.harness.explore.crash_states import CrashStates
from crashmq.harness.explore.state_key import StateKeys
from crashmq.models.ops import NESTING_MAX, Crash, nesting
from crashmq.models.program import Program

BASELINE_STATES = 400
REPEATS = 5
FOR_EVER = 1e12


def explored(given: list[Job]) -> Certificate:
    counts = Certificate()
    for job in given:
        counts.add(run_job(job, FOR_EVER).counts)
    return counts


def baseline(given: list[Job]) -> float:
    """States a second when each is a program run on its own."""
    programs: list[Program] = []
    for job in given:
        state_keys = StateKeys()
        for crash_point in record(job.program, job.scenario).crash_points[::5]:
            crash_states = CrashStates(crash_point.disk, state_keys)
            for state in islice(crash_states.some(0, 8, 0), 2, 3):
                crash = Crash("power_loss", crash_states.survivors(state.vector))
                programs.append(crash_point.program(crash))
    programs = programs[:: max(1, len(programs) // BASELINE_STATES)]
    began = time.process_time()
    for program in programs:
        run_program(program, "power_loss", keep_trace=False)
    return len(programs) / (time.process_time() - began)


def run_plainly(program: Program, scenario: str) -> None:
    """The ops that ``record`` does, and nothing more."""
    episode = Episode(scenario, program.setup, keep_trace=False)
    try:
        episode.begin()
        for op in program.ops:
            if nesting(op) >= NESTING_MAX:
                break
            episode.step(op)
    finally:
        episode.close()


def price_of_recording(given: list[Job]) -> tuple[float, float, int]:
    """Seconds without and with a recorder, and the crash points recorded."""
    plain: list[float] = []
    kept: list[float] = []
    crash_points = 0
    for _ in range(REPEATS):
        began = time.process_time()
        for job in given:
            run_plainly(job.program, job.scenario)
        plain.append(time.process_time() - began)
        began = time.process_time()
        crash_points = 0
        for job in given:
            crash_points += len(record(job.program, job.scenario).crash_points)
        kept.append(time.process_time() - began)
    return min(plain), min(kept), crash_points


def show(title: str, counts: Certificate) -> None:
    seconds = counts.seconds
    print(title)
    print(f"  states decided        {counts.visited:>11,}  of {counts.space:,}")
    print(f"  recovered and judged  {counts.distinct:>11,}  starts {counts.starts:,}")
    print(f"  states/s/core         {counts.visited / seconds:>11,.0f}")
    print(f"  recoveries/s/core     {counts.distinct / seconds:>11,.0f}")
    print(
        f"  states a history      {median(counts.states_per_history):>11,.0f}  median"
    )
    print(f"  violations, unknown   {counts.violations:>11,}  {counts.unknown:,}")
    print(f"  classes               {len(counts.classes):>11,}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("histories", nargs="?", type=int, default=HISTORIES)
    parser.add_argument(
        "--write", action="store_true", help="make the fixed histories anew"
    )
    said = parser.parse_args()
    if said.write:
        write()
        return
    histories = said.histories
    exploring = 0.0
    for depth in (1, 2):
        given = jobs(histories, depth)
        counts = explored(given)
        exploring = counts.seconds
        show(f"{histories} histories, depth {depth}", counts)
    rate = baseline(given)
    print(f"baseline: {rate:,.0f} states/s/core, each a program of its own")
    plain, kept, crash_points = price_of_recording(given)
    print(
        f"recording: a history takes {kept / plain:.2f} of what it takes without, "
        f"{(kept - plain) / crash_points * 1e6:,.0f} us a crash point; "
        f"{(kept - plain) / exploring:.2%} of the time of exploring"
    )


if __name__ == "__main__":
    main()
