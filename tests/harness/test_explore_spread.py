"""The states of one moment: each once, all where they are few, and counted."""

from __future__ import annotations

from harness.disk.sim_disk import SimDisk
from harness.disk.units import PendingUnits
from harness.explore.limits import cuts_of
from harness.explore.moment import Moment, record
from harness.explore.spread import Spread
from harness.explore.views import Views
from models.ops import PutMessage, RunService
from models.program import Program, Setup


def moments(profile: str = "ext4_ordered") -> list[Moment]:
    setup = Setup(disk_profile=profile)
    ops = (PutMessage("T0", 0, 16), PutMessage("T1", 0, 700), RunService("reput"))
    return record(Program(setup, ops), "").moments


def test_all_vectors_are_as_many_as_were_counted_and_each_is_another() -> None:
    for moment in moments():
        spread = Spread(moment.disk, Views())

        vectors = [state.vector for state in spread.all()]

        assert len(vectors) == len(set(vectors)) == spread.space()


def test_what_all_yields_is_what_the_disk_itself_enumerates() -> None:
    views = Views()
    for moment in moments()[::3]:
        spread = Spread(moment.disk, views)
        ours = {spread.survivors(state.vector) for state in spread.all()}

        assert ours == set(PendingUnits.of(moment.disk).choices())


def test_some_are_few_begin_with_the_extremes_and_are_states_of_all() -> None:
    spread = Spread(moments("posix_min")[-1].disk, Views())

    some = list(spread.some(seed=1, told=30, draws=10))

    assert 30 <= len(some) <= 40
    assert len({state.vector for state in some}) == len(some)
    assert not any(some[0].vector.names + some[0].vector.sectors)
    assert sum(state.is_drawn for state in some) == len(some) - 30


def test_equal_files_have_one_view_and_others_another() -> None:
    views = Views()
    first, *_, last = moments()

    one = views.of(*SimDisk.fork(first.disk).seen())

    assert one == views.of(*SimDisk.fork(first.disk).seen())
    assert one != views.of(*SimDisk.fork(last.disk).seen())


def test_a_moment_between_ops_comes_after_each_that_changed_something() -> None:
    between = [moment for moment in moments() if moment.is_between]

    assert [len(moment.before) for moment in between] == [0, 1, 2, 3]


def test_a_store_is_cut_within_its_head_on_the_grid_and_before_its_end() -> None:
    assert cuts_of(130) == (4, 8, 20, 48, 64, 128, 129)
    assert cuts_of(1) == ()
