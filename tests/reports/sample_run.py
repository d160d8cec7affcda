"""A made-up run: a task whose rows are drawn from a seed, no store behind them.

Episodes with a number divisible by ``break_every`` violate CQ-3 right after a crash.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from crashmq.reports.records import (
    CrashRecord,
    Declared,
    EpisodeRecord,
    EventRecord,
    ExcuseCount,
    OpCount,
    ProbeHit,
    Shard,
    StateCount,
    VerdictRecord,
)

SCENARIOS = ("clean_restart", "power_loss")
OPS = ("PutMessage", "PullMessage", "RunService", "Restart", "During", "Damage")
STATUSES = {
    "PutMessage": ("PUT_OK", "PUT_OK", "PUT_OK", "Skipped"),
    "PullMessage": ("FOUND", "OFFSET_OVERFLOW_ONE", "Skipped"),
    "RunService": ("Ran", "Ran", "Skipped"),
    "Restart": ("Started", "Started", "Started", "Refused"),
    "During": ("PUT_OK+Crashed", "Ran+Crashed", "Skipped", "Failed"),
}
ACTIONS = ("write", "sync", "create", "size", "after")
FILE_KINDS = ("commitlog", "consumequeue", "checkpoint")
LAWS = ("CL-1", "CQ-3", "OFF-1", "REC-1", "REC-2")
FACTS = ("alone", "lives", "disk_worked")
PROBES = ("commit_log.roll", "recovery.abnormal", "recovery.normal", "reput.behind")

DECLARED = Declared(
    ops=list(OPS),
    probes={name: f"{name} was <taken> & seen" for name in (*PROBES, "queue.never")},
    laws={law: f"what {law} promises, in a sentence" for law in (*LAWS, "IX-1")},
    catalogue=dict.fromkeys((*LAWS, "IX-1"), "I3"),
    facts={name: f"why {name} is asked for" for name in FACTS},
    scenarios={name: f"what {name} asks" for name in SCENARIOS},
    required_probes={"power_loss": ["recovery.abnormal"]},
    required_laws={"power_loss": ["REC-1"]},
)


@dataclass(frozen=True)
class SampleTask:
    """Rows from a seed; ``break_every`` 0 breaks nothing."""

    run_id: str = "sample"
    seed: int = 7
    break_every: int = 0
    probes: tuple[str, ...] = PROBES

    @property
    def definition(self) -> dict[str, Any]:
        return {"scenarios": list(SCENARIOS), "seed": self.seed, "mutant": ""}

    def run_shard(self, shard: Shard) -> Iterator[EpisodeRecord]:
        first = shard.first_episode
        for episode_id in range(first, first + shard.episodes):
            yield self.episode(episode_id)

    def lost(self, number: int, how: str) -> EpisodeRecord:
        return an_episode(number, scenario=SCENARIOS[number % 2], outcome=how)

    def episode(self, episode_id: int) -> EpisodeRecord:
        draw = random.Random(self.seed * 1_000_003 + episode_id)
        broken = self.break_every > 0 and episode_id % self.break_every == 0
        steps = draw.randint(8, 40)
        crashes = [_crash(draw, step) for step in range(3, steps, 9)]
        scenario = SCENARIOS[episode_id % 2]
        breach = crashes[0].step + 1 if broken else -1
        return EpisodeRecord(
            run_id=self.run_id,
            episode_id=episode_id,
            scenario=scenario,
            subject="python_store",
            mutant="",
            seed=f"{self.seed}/{episode_id}",
            setup=json.dumps({"log_file_size": 4096}),
            outcome="violated" if broken else "passed",
            steps=steps,
            crashes=len(crashes),
            recoveries=len(crashes) + 1,
            digest=f"{draw.getrandbits(128):032x}",
            elapsed_us=draw.randint(500, 4000),
            code_version="0.1.0",
            signature="CQ-3@Restart" if broken else "",
            program=json.dumps(_program(steps)) if broken else "",
            op_counts=_op_counts(draw, steps),
            crash_points=crashes,
            verdicts=[_verdict(law, steps, breach) for law in LAWS],
            probes=[ProbeHit(name, draw.randint(1, 4)) for name in self.probes],
            events=[_event(step, breach) for step in range(steps)] if broken else [],
            excuses=[ExcuseCount("CL-1", "alone", draw.randint(1, 9))],
            states=[
                StateCount(f"log {draw.randint(0, 3)}", "normal", 1),
                StateCount("log 1, no mark", "refused", draw.randint(1, 3)),
            ],
        )


def _op_counts(draw: random.Random, steps: int) -> list[OpCount]:
    counts: dict[tuple[str, str], int] = {}
    for _ in range(steps):
        op = draw.choice(sorted(STATUSES))
        key = (op, draw.choice(STATUSES[op]))
        counts[key] = counts.get(key, 0) + 1
    return [OpCount(op, status, times) for (op, status), times in counts.items()]


def _crash(draw: random.Random, step: int) -> CrashRecord:
    kind = draw.choice(("power_loss", "process_kill"))
    return CrashRecord(
        step=step,
        op=draw.choice(("PutMessage", "RunService", "Restart")),
        kind=kind,
        survivors=draw.choice(("hashed(42)", "none", "prefix(3)")),
        disk_action=draw.randint(1, 12),
        action=draw.choice(ACTIONS),
        file_kind=draw.choice(FILE_KINDS),
        recovery=draw.choice(("normal", "abnormal", "abnormal", "refused")),
    )


def _verdict(law: str, steps: int, breach: int) -> VerdictRecord:
    if law != "CQ-3" or breach < 0:
        return VerdictRecord(law, checks=steps, violations=0, outcome="passed")
    message = "T<0>/1[4]: phy_offset 4096; expected < 4096"
    return VerdictRecord(law, steps, 1, "violated", breach, "Restart", message)


def _event(step: int, breach: int) -> EventRecord:
    crash = step == breach - 1
    op = (
        "run reput x2, at disk action 3: POWER LOSS" if crash else "put 120 B to T<0>/1"
    )
    seen = "down by power_loss at action 3 (sync)" if crash else "PUT_OK [4] @512 187 B"
    status = "Ran+Crashed" if crash else "PUT_OK"
    return EventRecord(step, op, seen, status, step * 10, step * 2, 187 * step, 0, 0)


def _program(steps: int) -> dict[str, Any]:
    put = {"op": "PutMessage", "topic": "T<0>", "queue_id": 1, "body_size": 120}
    return {"setup": {"log_file_size": 4096}, "ops": [put] * steps}


def an_episode(episode_id: int = 0, **fields: Any) -> EpisodeRecord:
    """A passed episode of four steps, but for ``fields``."""
    plain: dict[str, Any] = {
        "run_id": "sample",
        "scenario": "power_loss",
        "subject": "python_store",
        "mutant": "",
        "seed": f"7/{episode_id}",
        "setup": "{}",
        "outcome": "passed",
        "steps": 4,
        "crashes": 0,
        "recoveries": 1,
        "digest": f"d{episode_id}",
        "elapsed_us": 100,
        "code_version": "0.1.0",
    }
    return EpisodeRecord(episode_id=episode_id, **(plain | fields))


def a_crash(step: int = 1, **fields: Any) -> CrashRecord:
    """Power lost in a put's write to the log, but for ``fields``."""
    plain: dict[str, Any] = {
        "op": "PutMessage",
        "kind": "power_loss",
        "survivors": "none",
        "disk_action": 1,
        "action": "write",
        "file_kind": "commitlog",
        "recovery": "abnormal",
    }
    return CrashRecord(step=step, **(plain | fields))


def broken(law: str, step: int) -> VerdictRecord:
    """``law`` broken at ``step``."""
    return VerdictRecord(law, 5, 1, "violated", step, "Restart", f"{law} is broken")


def kept(law: str, checks: int = 5) -> VerdictRecord:
    """``law`` checked and kept."""
    return VerdictRecord(law, checks, 0, "passed")
