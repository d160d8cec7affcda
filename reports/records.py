"""The rows of a run as plain dataclasses: one an episode, one a shard.

Integers are 64-bit, the rest is text, so that any reader of Parquet understands it.
Everything but ``elapsed_us`` is a function of the run's definition and the episodes'
numbers. A whole trace (``events``) is kept for an episode that did not pass and for one
in a hundred others; the rest keep counts. A shard's row sums its episodes up; in a
class that is a sum, texts are what it is a sum of and integers are added, so that
sums of shards are summed up like shards.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

# Shards grow with the run, so that a short one has many and a long one not too many:
# the size of those that begin below a number of episodes, and of all others.
_SIZES = ((2_000, 50), (20_000, 100), (200_000, 250))
_SIZE_MAX = 1_000


@dataclass(slots=True)
class OpCount:
    """How often one kind of op ended in one status; "" and 0 if it never ran.

    An op within another one counts by itself; of ``During`` the status is that of what
    happened meanwhile.
    """

    op: str
    status: str
    times: int


@dataclass(slots=True)
class CrashRecord:
    """One crash: in which op, at which disk action, on what kind of file."""

    step: int
    op: str
    kind: str  # process_kill or power_loss
    survivors: str  # what outlived a power loss, in a few words
    disk_action: int  # of the op, before which it happened
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
class StateCount:
    """How often a start found a directory of one kind, and what came of it."""

    state: str  # the kind: what a start decides by, in a few words
    recovery: str  # normal, abnormal, refused or failed
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
    setup: str  # of the store and the disk, as JSON
    outcome: str  # passed, violated, unknown, timeout, signal:N, exit:N, killed
    steps: int  # ops
    crashes: int
    recoveries: int  # starts
    digest: str  # of all that was seen: equal digests mean equal episodes
    elapsed_us: int
    code_version: str  # a hash of the source text
    signature: str = ""  # of a failure: law and the kind of step; "" if passed
    program: str = ""  # JSON, for an episode that did not pass
    op_counts: list[OpCount] = field(default_factory=list)
    crash_points: list[CrashRecord] = field(default_factory=list)
    verdicts: list[VerdictRecord] = field(default_factory=list)
    probes: list[ProbeHit] = field(default_factory=list)
    events: list[EventRecord] = field(default_factory=list)  # failures, 1 % of others
    excuses: list[ExcuseCount] = field(default_factory=list)
    states: list[StateCount] = field(default_factory=list)


def signature_of(outcome: str, signature: str, scenario: str) -> str:
    """The text by which episodes that did not pass are grouped.

    An episode that was not judged has its outcome in it, so that it stands for no
    violation and a violation for none of these. One without a signature (its process
    died or timed out) has its scenario.

    Args:
        outcome: of the row.
        signature: of the row, "" if it has none.
        scenario: of the row.
    """
    if outcome == "violated" and signature:
        return signature
    return f"{outcome.replace(':', '-')}-{signature or scenario}"


@dataclass(frozen=True, slots=True, order=True)
class Shard:
    """Consecutive episodes that are run, and committed, together."""

    first_episode: int
    episodes: int

    @property
    def end(self) -> int:
        """The first episode after it."""
        return self.first_episode + self.episodes

    def holds(self, other: Shard) -> bool:
        """Whether all episodes of ``other`` are among its own."""
        return self.first_episode <= other.first_episode and other.end <= self.end


def is_bound(episode: int) -> bool:
    """Whether a shard of any run that is longer begins with this episode."""
    return episode == 0 or episode % _size_at(episode - 1) == 0


def _size_at(episode: int) -> int:
    return next((size for below, size in _SIZES if episode < below), _SIZE_MAX)


def shards_of(episodes: int) -> Iterator[Shard]:
    """The shards of a run with this many episodes, in order.

    Their bounds do not depend on how many there are, nor on the machines; only the last
    one ends where the episodes do.
    """
    first = 0
    while first < episodes:
        size = _size_at(first)
        yield Shard(first, min(size, episodes - first))
        first += size


@dataclass(frozen=True, slots=True)
class ScenarioTotals:
    """One scenario, summed up; unjudged is neither passed nor violated."""

    scenario: str
    episodes: int
    passed: int
    violated: int
    unjudged: int
    steps: int
    crashes: int
    recoveries: int
    elapsed_us: int


@dataclass(frozen=True, slots=True)
class CrashPoint:
    """Crashes of one kind at one kind of place.

    ``survivors`` are without their number; ``violated`` counts the crashes that were
    the last one at or before the first breach of an episode.
    """

    action: str
    file_kind: str
    op: str
    kind: str
    survivors: str
    recovery: str
    crashes: int
    violated: int


@dataclass(frozen=True, slots=True)
class ProbeHits:
    """One probe in one scenario; scenario "" and zeros if it was never hit."""

    probe: str
    scenario: str
    hits: int
    episodes: int


@dataclass(frozen=True, slots=True)
class LawChecks:
    """One law in one scenario; violations and unknown count episodes.

    Scenario "" and zeros if it was never checked.
    """

    law: str
    scenario: str
    checks: int
    violations: int
    unknown: int


@dataclass(slots=True)
class ShardRecord:
    """What commits a shard: its manifest says that its rows are there, and their sums.

    ``digest`` is of what its episodes saw, in 64 hexadecimal digits: the SHA-256 of
    each added up modulo 2**256, so that the order and the bounds do not matter.
    """

    run_id: str
    first_episode: int
    episodes: int
    failed: int  # that did not pass; their rows come first
    digest: str
    scenarios: list[ScenarioTotals] = field(default_factory=list)
    ops: list[OpCount] = field(default_factory=list)
    crash_points: list[CrashPoint] = field(default_factory=list)
    probes: list[ProbeHits] = field(default_factory=list)
    laws: list[LawChecks] = field(default_factory=list)
    excuses: list[ExcuseCount] = field(default_factory=list)
    states: list[StateCount] = field(default_factory=list)


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
    setup: dict[str, Any] = field(default_factory=dict)  # what is so unless said
