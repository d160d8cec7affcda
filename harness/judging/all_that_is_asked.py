"""Imports all declarations of when each law is asked."""

from __future__ import annotations

from crashmq.harness.judging import (  # noqa: F401  what they declare is asked
    asked_of_answers,
    asked_of_config_files,
    asked_of_consumers,
    asked_of_delays,
    asked_of_filters,
    asked_of_given_back,
    asked_of_lives,
    asked_of_progress,
    asked_of_pulls,
    asked_of_reads,
    asked_of_reads_beside,
    asked_of_removals,
    asked_of_rounds,
    asked_of_services,
    asked_of_starts,
    asked_of_taking_over,
)
