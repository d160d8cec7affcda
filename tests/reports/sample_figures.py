"""Figures of a small clean run, for tests that bend one of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from crashmq.reports.figures import Figures, Finding
from crashmq.reports.records import (
    CrashPoint,
    Declared,
    ExcuseCount,
    LawChecks,
    OpCount,
    ProbeHits,
    ScenarioTotals,
)

DECLARED = Declared(
    ops=["PutMessage", "During"],
    probes={"log.roll": "a file was full"},
    laws={"CL-1": "every record decodes"},
    catalogue={"CL-1": "I1"},
    facts={"alone": "nothing else happened", "lives": "no crash came"},
    scenarios={"power_loss": "what survives"},
    required_probes={"power_loss": ["log.roll"], "other": ["never.asked"]},
    required_laws={"power_loss": ["CL-1"]},
    setup={"log_file_size": 4096, "cleans": False},
)


def clean(**changes: Any) -> Figures:
    """A clean run of 200 episodes, but for ``changes``."""
    definition = {"scenarios": ["power_loss"], "seed": 7, "mutant": ""}
    figures = Figures(
        run={"run_id": "sample", "episodes": 200, "definition": definition},
        declared=DECLARED,
        elapsed_s=2.0,
        digest="abc",
        scenarios=[totals()],
        ops=[OpCount("During", "Crashed", 9), OpCount("PutMessage", "PUT_OK", 90)],
        crash_points=[point()],
        probes=[ProbeHits("log.roll", "power_loss", 5, 4)],
        laws=[LawChecks("CL-1", "power_loss", 70, 0, 0)],
        excuses=[ExcuseCount("CL-1", "alone", 30)],
        findings=[],
    )
    return replace(figures, **changes)


def planted(mutant: str, **changes: Any) -> Figures:
    """The clean run, but with a planted bug, and for ``changes``."""
    run = clean().run
    definition = run["definition"] | {"mutant": mutant}
    return clean(run=run | {"definition": definition}, **changes)


def totals(**changes: Any) -> ScenarioTotals:
    """200 passed episodes of power_loss, but for ``changes``."""
    row = ScenarioTotals("power_loss", 200, 200, 0, 0, 4000, 300, 350, 10_000)
    return replace(row, **changes)


def point(**changes: Any) -> CrashPoint:
    """Ten crashes in a put's write to the log, but for ``changes``."""
    row = CrashPoint(
        "write", "commitlog", "PutMessage", "power_loss", "hashed", "abnormal", 10, 0
    )
    return replace(row, **changes)


def finding(**changes: Any) -> Finding:
    """CL-1 broken at step 2 of 4, in six episodes of one scenario, but for ``changes``.

    ``episodes`` is how many of that scenario.
    """
    times, scenario = changes.pop("episodes", 6), changes.get("scenario", "power_loss")
    row = Finding(
        signature="CL-1-Restart",
        outcome="violated",
        law="CL-1",
        scenario="power_loss",
        subject="python_store",
        mutant="",
        seed="7/3",
        setup="{}",
        program='{"setup": {}, "ops": []}',
        digest="d",
        episode_id=3,
        steps=4,
        step=2,
        op="Restart",
        message="CL-1 is broken",
        events=[],
        scenarios={scenario: times},
    )
    return replace(row, **changes)
