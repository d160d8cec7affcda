"""The row of an episode and what nests in it, as plain dataclasses.

One row per episode. Integers are 64-bit, the rest is text, so that any reader of
Parquet understands it. Everything but ``elapsed_us`` is a function of the run's
definition and the episode's number. A whole trace (``events``) is kept for an episode
that did not pass and for one in a hundred others; the rest keep counts.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class OpCount:
    """How often one kind of op ended in one status."""

    op: str
    status: str
    times: int


@dataclass(slots=True)
class CrashRecord:
    """One crash: in which op, at which disk action, on what kind of file."""

    step: int
    op: str
    kind: str
    survivors: str
    disk_action: int
    action: str  # write, sync, create, size, remove, ...; "none" if the op did none
    file_kind: str  # commitlog, consumequeue, checkpoint, abort, ..., "none"
    recovery: str  # how the next start judged it: normal, abnormal, refused, none


@dataclass(slots=True)
class EventRecord:
    """One step of a trace."""

    step: int
    op: str
    observation: str
    status: str
    at_ms: int
    disk_actions: int
    max_phy_offset: int
    flushed_where: int
    reput_from_offset: int


@dataclass(slots=True)
class VerdictRecord:
    """One law's outcome over the episode; ``step`` is -1 unless it was violated."""

    law: str
    checks: int
    violations: int
    outcome: str
    step: int = -1
    op: str = ""
    message: str = ""


@dataclass(slots=True)
class ProbeHit:
    """How often one probe was hit."""

    probe: str
    hits: int


@dataclass(slots=True)
class ExcuseCount:
    """How often a law was not asked because one fact did not hold."""

    law: str
    fact: str  # the name in small letters
    times: int


@dataclass(slots=True)
class EpisodeRecord:
    """One judged run of one program."""

    run_id: str
    episode_id: int
    scenario: str
    subject: str
    mutant: str
    seed: str
    setup: str  # JSON
    outcome: str  # passed, violated, unknown, timeout, signal:N, exit:N
    steps: int
    crashes: int
    recoveries: int
    digest: str
    elapsed_us: int
    code_version: str
    signature: str = ""  # of a failure: law and the kind of step; "" if passed
    program: str = ""  # JSON, for an episode that did not pass
    op_counts: list[OpCount] = field(default_factory=list)
    crash_points: list[CrashRecord] = field(default_factory=list)
    verdicts: list[VerdictRecord] = field(default_factory=list)
    probes: list[ProbeHit] = field(default_factory=list)
    events: list[EventRecord] = field(default_factory=list)
    excuses: list[ExcuseCount] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Shard:
    """A run of consecutive episodes that one task does."""

    number: int
    first_episode: int
    episodes: int


@dataclass(slots=True)
class Declared:
    """Everything that could have happened, so that what never did has a row too."""

    ops: list[str] = field(default_factory=list)
    probes: dict[str, str] = field(default_factory=dict)  # name: sentence
    unreachable: dict[str, str] = field(default_factory=dict)  # of those: why
    laws: dict[str, str] = field(default_factory=dict)  # id: sentence
    catalogue: dict[str, str] = field(default_factory=dict)  # id: I1 to I20
    facts: dict[str, str] = field(
        default_factory=dict
    )  # that excuse laws, name: reason
    scenarios: dict[str, str] = field(default_factory=dict)  # name: sentence
    required_probes: dict[str, list[str]] = field(default_factory=dict)  # by scenario
    required_laws: dict[str, list[str]] = field(default_factory=dict)
    mutants: dict[str, str] = field(default_factory=dict)  # id: title
