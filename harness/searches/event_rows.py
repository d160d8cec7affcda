"""Turns the steps of a trace into rows of a soak."""

from __future__ import annotations

from crashmq.harness.episodes.episode import TracedStep
from crashmq.models.describe import describe
from crashmq.models.observations import describe_observation, status_of
from crashmq.reports.records import EventRecord


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
