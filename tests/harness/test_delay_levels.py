"""A broker with delay levels of its own is judged by these, whatever they are."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from crashmq.harness.episodes.episode import Episode, run_program
from crashmq.harness.failures.case_file import CaseFile
from crashmq.models.files.message_delay_level import DEFAULT_TEXT
from crashmq.models.ops import (
    AdvanceClock,
    Consume,
    Op,
    PutMessage,
    Restart,
    RunService,
    SendMessage,
    StartConsumer,
    TurnConsumer,
)
from crashmq.models.program import Program, Setup
from crashmq.models.program_json import from_json, to_json
from crashmq.models.verdict import Outcome
from crashmq.scenarios.catalogue.scenarios import SCENARIOS
from crashmq.scenarios.programs.workload import program_for

REPUT, DELIVER = RunService("reput"), RunService("deliver_delayed")
PERSIST = RunService("persist_delay_offset")
BROKER = Setup(keeps_progress=True, delivers_delayed=True, topic_queues=1)
MANY = " ".join(["1s"] * 17 + ["2s", "1s", "1d"])


def delivered(setup: Setup, *ops: Op) -> int:
    """How many delayed messages have been delivered after the ops; all laws hold."""
    episode = Episode("", setup)
    episode.begin()
    for op in ops:
        episode.step(op)
    count = episode.judge.checks.get("DLY-1", 0)
    episode.finish()
    return count


@pytest.mark.parametrize(
    ("levels", "level", "ms"),
    [
        ("3s", 1, 3000),
        ("3s", 9, 3000),
        ("1m 3s", 2, 3000),
        ("1h 2d", 2, 172_800_000),
        ("2s 2s 1s", 2, 2000),
        (MANY, 19, 1000),
        (MANY, 99, 86_400_000),
    ],
)
def test_a_message_waits_as_long_as_its_broker_was_told(
    levels: str, level: int, ms: int
) -> None:
    setup = replace(BROKER, message_delay_level=levels)
    put = PutMessage("T0", 0, 16, delay_level=level)

    for after, count in ((ms - 1, 0), (ms, 1)):
        ops = (put, REPUT, Restart(), AdvanceClock(after), DELIVER, PERSIST)
        assert delivered(setup, *ops) == count


def test_a_sent_message_waits_for_no_level_that_there_is_not() -> None:
    setup = replace(BROKER, message_delay_level="3s")
    sent = SendMessage("T0", 0, 16, delay_level=9)

    assert delivered(setup, sent, REPUT, AdvanceClock(3000), DELIVER) == 1


def test_what_is_sent_back_waits_for_the_last_level_if_there_are_few() -> None:
    setup = replace(BROKER, message_delay_level="1s 7s")
    consumer = StartConsumer("c0", "g", "T0")
    joins = (consumer, TurnConsumer("c0", "rebalance"), AdvanceClock(500))
    fails = (TurnConsumer("c0", "pull", 2), Consume("c0", status="later"))
    ops = (PutMessage("T0", 0, 16), REPUT, *joins, *fails, REPUT)

    for ms, count in ((6999, 0), (7000, 1)):
        assert delivered(setup, *ops, AdvanceClock(ms), DELIVER) == count


def test_a_query_by_key_finds_what_waits_for_other_levels() -> None:
    setup = Setup(
        delivers_delayed=True,
        message_delay_level="3s 1m",
        index_slots=8,
        index_entries=24,
    )

    assert delivered(setup, PutMessage("T0", 0, 16, delay_level=2), REPUT) == 0


def test_a_case_says_its_levels_and_an_older_one_has_rocketmqs(tmp_path: Path) -> None:
    program = Program(Setup(message_delay_level="3s 1m"), (Restart(),))
    older = to_json(program)
    del older["setup"]["message_delay_level"]
    head = {"format": 1, "scenario": "s", "violated": "", "step": -1}
    path = tmp_path / "a.case.json"

    path.write_text(json.dumps({**head, **to_json(program)}))
    assert CaseFile.load(path).program == program
    assert from_json(older).setup.message_delay_level == DEFAULT_TEXT


@pytest.mark.slow
@pytest.mark.parametrize("name", ["delayed", "retries", "transactions"])
def test_some_programs_have_levels_of_their_own(name: str) -> None:
    programs = [program_for(SCENARIOS[name], 1, episode) for episode in range(60)]
    own = [one for one in programs if one.setup.message_delay_level != DEFAULT_TEXT]

    assert 3 <= len(own) <= 30
    assert run_program(own[0]).outcome is Outcome.PASSED
