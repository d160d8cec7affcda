"""The states of one crash point: each once, all where they are few, and counted."""

from __future__ import annotations

import pytest

from crashmq.harness.disk.profiles import PROFILES
from crashmq.harness.disk.sim_disk import SimDisk
from crashmq.harness.disk.units import PendingUnits
from crashmq.harness.explore.crash_point import CrashPoint, record
from crashmq.harness.explore.crash_states import CrashStates
from crashmq.harness.explore.limits import cuts_of
from crashmq.harness.explore.state_key import StateKey, StateKeys
from crashmq.models.ops import Crash, PutMessage, RunService, Survivors
from crashmq.models.program import Program, Setup


def crash_points(profile: str = "ext4_ordered") -> list[CrashPoint]:
    setup = Setup(disk_profile=profile)
    ops = (PutMessage("T0", 0, 16), PutMessage("T1", 0, 700), RunService("reput"))
    return record(Program(setup, ops), "").crash_points


def view_after(
    crash_point: CrashPoint, survivors: Survivors, state_keys: StateKeys
) -> StateKey:
    disk = SimDisk.fork(crash_point.disk)
    disk.crash(Crash("power_loss", survivors))
    return state_keys.of(*disk.seen())


def test_all_vectors_are_as_many_as_were_counted_and_each_is_another() -> None:
    for crash_point in crash_points():
        crash_states = CrashStates(crash_point.disk, StateKeys())

        vectors = [state.vector for state in crash_states.all()]

        assert len(vectors) == len(set(vectors)) == crash_states.space(1 << 20)


def test_what_all_yields_is_what_the_disk_itself_enumerates() -> None:
    state_keys = StateKeys()
    for crash_point in crash_points()[::3]:
        crash_states = CrashStates(crash_point.disk, state_keys)
        ours = {crash_states.survivors(state.vector) for state in crash_states.all()}

        assert ours == set(PendingUnits.of(crash_point.disk).choices())


def test_some_are_few_begin_with_the_extremes_and_are_states_of_all() -> None:
    crash_states = CrashStates(crash_points("posix_min")[-1].disk, StateKeys())

    some = list(crash_states.some(seed=1, promising=30, draws=10))

    assert 30 <= len(some) <= 40
    assert len({state.vector for state in some}) == len(some)
    assert not any(some[0].vector.names + some[0].vector.sectors)
    assert sum(state.is_drawn for state in some) == len(some) - 30


@pytest.mark.slow
@pytest.mark.parametrize("profile", PROFILES)
def test_the_write_order_s_states_are_what_a_prefix_of_the_actions_leaves(
    profile: str,
) -> None:
    state_keys = StateKeys()
    for crash_point in crash_points(profile)[::3]:
        pending = PendingUnits.of(crash_point.disk)
        kept = [Survivors("units", units=units) for units in pending.write_order()]
        prefixes = [Survivors("prefix", number=n) for n in range(1, 200)]

        ours = [view_after(crash_point, survivors, state_keys) for survivors in kept]
        theirs = [
            view_after(crash_point, survivors, state_keys) for survivors in prefixes
        ]

        assert list(dict.fromkeys(ours)) == list(dict.fromkeys(theirs))[: len(ours)]
        assert set(ours) >= set(theirs) or not ours


@pytest.mark.slow
@pytest.mark.parametrize("profile", PROFILES)
def test_the_disk_of_a_vector_is_what_a_crash_leaves_of_it(profile: str) -> None:
    for crash_point in crash_points(profile)[::3]:
        crash_states = CrashStates(crash_point.disk, StateKeys())
        for state in crash_states.some(3, promising=20, draws=5):
            crashed = SimDisk.fork(crash_point.disk)
            crashed.crash(Crash("power_loss", crash_states.survivors(state.vector)))

            made = SimDisk.fork(crash_states.disk(state.vector))

            assert promising(made) == promising(crashed)


def test_a_bad_sector_stays_bad_where_nothing_survived_in_it() -> None:
    disk = SimDisk(PROFILES["posix_min"])
    disk.load({"f": bytes(2048)})
    disk.make_unreadable("f", 0, 2048)
    file = disk.mount().open("f", 2048, create=False, mapped=False)
    file.write_at(512, b"\1" * 1024)
    crash_states = CrashStates(disk.snapshot(), StateKeys())

    left = {
        state.vector.sectors: tuple(
            at.start
            for at in SimDisk.fork(crash_states.disk(state.vector)).unreadable()
        )
        for state in crash_states.all()
    }

    assert left == {
        (0, 0): (0, 512, 1024, 1536),
        (0, 1): (0, 512, 1536),
        (1, 0): (0, 1024, 1536),
        (1, 1): (0, 1536),
    }


def promising(disk: SimDisk) -> object:
    """All that a disk is, but for bytes that are kept to be asked for again."""
    medium = disk.snapshot().medium
    inodes = {
        number: inode._replace(content=None) for number, inode in medium.inodes.items()
    }
    return disk.actions, disk.last_action, medium._replace(inodes=inodes, changes=0)


@pytest.mark.slow
def test_some_try_each_state_of_the_write_order() -> None:
    crash_point = crash_points("posix_min")[-1]
    crash_states = CrashStates(crash_point.disk, StateKeys())
    wanted = {
        frozenset(units) for units in PendingUnits.of(crash_point.disk).write_order()
    }

    some = [
        crash_states.survivors(s.vector)
        for s in crash_states.some(1, promising=1000, draws=0)
    ]

    assert len(wanted) > 5
    assert wanted <= {frozenset(survivors.units) for survivors in some}


def test_equal_files_have_one_view_and_others_another() -> None:
    state_keys = StateKeys()
    first, *_, last = crash_points()

    one = state_keys.of(*SimDisk.fork(first.disk).seen())

    assert one == state_keys.of(*SimDisk.fork(first.disk).seen())
    assert one != state_keys.of(*SimDisk.fork(last.disk).seen())


def test_a_moment_between_ops_comes_after_each_that_changed_something() -> None:
    between = [crash_point for crash_point in crash_points() if crash_point.is_between]

    assert [len(crash_point.before) for crash_point in between] == [0, 1, 2, 3]


def test_a_store_is_cut_within_its_head_on_the_grid_and_before_its_end() -> None:
    assert cuts_of(130) == (4, 8, 20, 48, 64, 128, 129)
    assert cuts_of(1) == ()
