"""Rival crash policies: each by its rule, on the same histories, replayable."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from crashmq.harness.disk.profiles import EXT4_ORDERED
from crashmq.harness.disk.sim_disk import SimDisk
from crashmq.harness.disk.units import PendingUnits, Unit
from crashmq.harness.episodes.episode import run_program
from crashmq.harness.mutants.policies import (
    POLICIES,
    Moment,
    file_suffix,
    in_flight,
    omit_one,
    page_modes,
    run_under,
    whole_cache,
    write_list,
)
from crashmq.harness.mutants.search_turns import program_of
from crashmq.models.ops import Crash, During
from crashmq.models.program import Program
from crashmq.models.verdict import Outcome

EVERY_POLICY = pytest.mark.parametrize("name", POLICIES)
SEEDS = range(40)


def disk_with_two_files() -> SimDisk:
    """Names are certain; sectors 0, 1 and 3 of ``a`` pend, and sector 0 of ``b``."""
    disk = SimDisk(EXT4_ORDERED)
    disk.load({"a": bytes(4096), "b": bytes(4096)})
    mount = disk.mount()
    for path, sectors in (("a", (0, 1, 3)), ("b", (0,))):
        file = mount.open(path, 4096, create=False, mapped=True)
        for sector in sectors:
            file.write_at(sector * 512, b"x" * 512)
    return disk


def chosen(policy: str, seed: int, path: str = "") -> set[tuple[str, int]]:
    """Which sectors survive, by file and number."""
    choose = POLICIES[policy].choose
    assert choose is not None
    pending = PendingUnits.of(disk_with_two_files().snapshot())
    return {(u.path, u.place) for u in choose(Moment(pending, path, seed))}


def all_chosen(policy: str, path: str = "") -> list[set[tuple[str, int]]]:
    return [chosen(policy, seed, path) for seed in SEEDS]


EVERYTHING = {("a", 0), ("a", 1), ("a", 3), ("b", 0)}


def test_the_whole_cache_loses_every_byte() -> None:
    assert all_chosen("whole_cache") == [set()] * len(SEEDS)


def test_a_file_loses_a_suffix_only() -> None:
    of_a = {
        tuple(sorted(p for f, p in left if f == "a"))
        for left in all_chosen("file_suffix")
    }

    assert of_a == {(), (0,), (0, 1), (0, 1, 3)}


def test_only_the_file_in_flight_is_torn() -> None:
    seen = all_chosen("in_flight", path="b")

    assert all({("a", 0), ("a", 1), ("a", 3)} <= left for left in seen)
    assert {("b", 0) in left for left in seen} == {True, False}


def test_a_write_is_there_whole_or_not_at_all() -> None:
    seen = all_chosen("write_list")

    assert all((("a", 0) in left) == (("a", 1) in left) for left in seen)
    assert {(("a", 0) in left, ("a", 3) in left) for left in seen} == {
        (x, y) for x in (True, False) for y in (True, False)
    }


def test_pages_are_there_or_not_and_sectors_sometimes() -> None:
    of_a = [
        frozenset(p for f, p in left if f == "a") for left in all_chosen("page_modes")
    ]

    assert {frozenset(), frozenset({0, 1, 3})} < set(of_a)


def test_one_piece_is_omitted() -> None:
    assert all(len(EVERYTHING - left) == 1 for left in all_chosen("omit_one"))
    assert set().union(*(EVERYTHING - left for left in all_chosen("omit_one"))) == (
        EVERYTHING
    )


def power_losses(program: Program) -> Sequence[Crash]:
    events = [op.event for op in program.ops if isinstance(op, During)]
    return [e for e in events if isinstance(e, Crash) and e.kind == "power_loss"]


@pytest.mark.slow
@EVERY_POLICY
def test_what_a_policy_chose_is_an_ordinary_program_that_replays(name: str) -> None:
    for episode in range(2, 42, 5):
        scenario, program = program_of("soak", 1, episode)
        result, came_to = run_under(POLICIES[name], program, scenario)

        assert len(came_to.ops) == len(program.ops)
        assert run_program(came_to, scenario).digest == result.digest


@pytest.mark.slow
@EVERY_POLICY
def test_no_policy_makes_the_shipped_engine_look_wrong(name: str) -> None:
    for episode in range(30):
        scenario, program = program_of("soak", 2, episode)
        result, _ = run_under(POLICIES[name], program, scenario)
        assert result.outcome is Outcome.PASSED, result.message


def test_killing_alone_loses_no_power() -> None:
    scenario, program = program_of("soak", 1, 2)
    _, came_to = run_under(POLICIES["kill_only"], program, scenario)

    assert power_losses(program)
    assert not power_losses(came_to)


def test_each_rule_belongs_to_one_policy() -> None:
    rules = [p.choose for p in POLICIES.values() if p.choose is not None]

    assert rules == [
        file_suffix,
        whole_cache,
        in_flight,
        write_list,
        page_modes,
        omit_one,
    ]
    assert Unit("a", 0, 2).versions == 2
