"""Dimensions: what values a program has, which of them meet, and which never can."""

from __future__ import annotations

import pytest

from crashmq.harness.listing.pairs import pairs_in, rows
from crashmq.models.ops import (
    Crash,
    Damage,
    DiskFault,
    During,
    PutMessage,
    RunService,
    Schedule,
    StartConsumer,
    Together,
)
from crashmq.models.program import Program, Setup
from crashmq.scenarios.programs.dimensions import (
    APART,
    NEEDS,
    Pairs,
    dimension_of,
    values_of,
)

PUT = PutMessage("T0", 0, 16)


def test_a_program_has_the_values_of_its_setup_and_of_all_its_parts() -> None:
    ops = (
        During(PUT, 1, DiskFault("sync", "EIO", lasts=True)),
        Together((RunService("reput"), PUT), Schedule("pct", grain="lines")),
        Crash("power_loss"),
        Damage("commitlog[0]", "flip"),
    )

    values = values_of(Program(Setup(log_file_size=8192, cleans=True), ops[:2]))
    others = values_of(Program(Setup(), (During(PUT, 1, ops[2]), ops[3])))

    assert values >= {
        *("setup.log_file_size=more", "setup.cleans=on", "setup.prop_crc=off"),
        *("fault.call=sync", "fault.errno=EIO", "fault.lasts=on", "message.tags=none"),
        *("schedule.kind=pct", "schedule.grain=lines", "service.reput=done"),
        *("beside.PutMessage=done", "op.Together=done", "together.count=two"),
    }
    assert others >= {
        "crash.kind=power_loss",
        "damage.kind=flip",
        "damage.file=commitlog",
    }
    assert {dimension_of(each) for each in values} >= {"fault.call", "op.Together"}


def test_values_meet_in_a_program_that_has_both() -> None:
    pairs = Pairs()
    pairs.add(["a=1", "b=1"])
    pairs.add(["a=2", "b=1", "c=1"])

    assert pairs.have_met("a=1", "b=1")
    assert not pairs.have_met("a=1", "c=1")
    assert pairs.others_of("a=1") == {"met": ["b=1"], "missing": ["c=1"]}
    assert pairs.others_of("c=1") == {"met": ["a=2", "b=1"], "missing": ["a=1"]}


def test_what_means_nothing_together_is_not_missed() -> None:
    pairs = Pairs()
    pairs.add(["setup.keeps_progress=off", "setup.cleans=off", "message.tags=none"])
    pairs.add(["setup.keeps_progress=on", "consumer.where=first"])
    pairs.add(["service.clean_commit_log=done"])

    missing = pairs.others_of("consumer.where=first")["missing"]

    assert "setup.keeps_progress=off" not in missing
    assert {"setup.cleans=off", "message.tags=none"} <= set(missing)
    cleaner = pairs.others_of("service.clean_commit_log=done")
    assert "setup.cleans=off" not in cleaner["missing"]


def test_what_is_kept_apart_says_why() -> None:
    pairs = Pairs()
    pairs.add(["damage.kind=flip"])
    pairs.add(["consumer.where=first"])

    (why,) = set(pairs.others_of("damage.kind=flip")) - {"met", "missing"}

    assert why in APART
    assert "no broker" in why


@pytest.mark.slow
def test_needs_name_values_that_programs_have() -> None:
    pairs = pairs_in(2000)

    for name, (option, value) in NEEDS.items():
        met = [each for each in pairs.numbers if each.startswith(name)]
        assert met or name.startswith("beside."), name
        assert f"{option}={value}" in pairs.numbers, option
    # A pair that is said to be meaningless is met where an op has no meaning, seldom.
    assert "consumer.where=first" in values_of(
        Program(Setup(keeps_progress=True), (StartConsumer("c", "g", "T0"),))
    )


@pytest.mark.slow
def test_most_pairs_are_met_and_the_rest_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("crashmq.harness.listing.pairs.EPISODES", 2050)

    told = rows()

    met, possible = (
        int(word.replace(",", ""))
        for word in told["pairs in 2,050 episodes"].split()
        if word[0].isdigit()
    )
    assert 0.6 < met / possible < 1.0
    assert "never" in told["setup.brokers=more"]
