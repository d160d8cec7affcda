"""Makes the rows of a soak of what its episodes came to."""

from __future__ import annotations

import json

from crashmq.harness.episodes.episode import EpisodeResult, TracedStep
from crashmq.harness.searches.supervised import Lost
from crashmq.models.describe import describe
from crashmq.models.laws.run import same_digest
from crashmq.models.observations import describe_observation, status_of
from crashmq.models.program import Program
from crashmq.models.program_json import to_json
from crashmq.models.verdict import Outcome
from crashmq.reports.records import EpisodeRecord, EventRecord, VerdictRecord

DETERMINISM = same_digest.id
OWN_DEFECT = "crashmq"  # stands where a law's id would: the harness itself failed


def event_of(step: TracedStep) -> EventRecord:
    """One step of a trace as a row."""
    return EventRecord(
        step=step.number,
        op=describe(step.op),
        observation=describe_observation(step.observation),
        status=status_of(step.observation),
        at_ms=step.at_ms,
        disk_actions=step.disk_actions,
        max_phy_offset=step.positions.max_phy_offset,
        flushed_where=step.positions.flushed_where,
        reput_from_offset=step.positions.reput_from_offset,
    )


def text_of(program: Program) -> str:
    """A program as a row holds it."""
    return json.dumps(to_json(program))


def row_of_lost(scenario: str, drawn: Program, lost: Lost) -> EpisodeRecord:
    """The row of an episode whose process ended, hung, or raised.

    What the run is and which number the episode has are left to the caller.
    """
    program = to_json(drawn)
    raised = lost.how == "raised"
    record = EpisodeRecord(
        run_id="",
        episode_id=lost.number,
        scenario=scenario,
        subject="",
        mutant="",
        seed="",
        setup=json.dumps(program["setup"]),
        outcome=Outcome.UNKNOWN.value if raised else lost.how,
        steps=len(program["ops"]),
        crashes=0,
        recoveries=0,
        digest="",
        elapsed_us=0,
        code_version="",
        program=json.dumps(program),
    )
    if raised:
        record.signature = f"{OWN_DEFECT}-{lost.kind}"
        record.verdicts = [
            VerdictRecord(OWN_DEFECT, 0, 0, Outcome.UNKNOWN.value, message=lost.detail)
        ]
    return record


def judge_determinism(
    record: EpisodeRecord, first: EpisodeResult, again: EpisodeResult, program: Program
) -> None:
    """Record a violation of DET-1 if two runs of one program gave different digests."""
    breaches = same_digest.violations(first.digest, again.digest)
    verdict = VerdictRecord(DETERMINISM, 1, len(breaches), Outcome.PASSED.value)
    if breaches:
        verdict.outcome = Outcome.VIOLATED.value
        verdict.step = len(program.ops)
        verdict.message = (
            f"{DETERMINISM}: run twice, the program gave digests {first.digest} and "
            f"{again.digest}"
        )
        record.outcome = Outcome.UNKNOWN.value
        record.signature = f"{DETERMINISM}-{record.scenario}"
    record.verdicts = [v for v in record.verdicts if v.law != DETERMINISM]
    record.verdicts.append(verdict)
