"""Files of others among a store's: passed over, left alone, or taken for damage."""

from __future__ import annotations

import pytest

from crashmq.harness.disk.sim_disk import SimDisk
from crashmq.harness.episodes.episode import run_program
from crashmq.harness.subjects.damage import damaged, foreign_file, plant
from crashmq.models.files.places import is_of_a_store
from crashmq.models.laws.recovery import foreign_files_stay
from crashmq.models.laws.registry import LawViolated
from crashmq.models.observations import Planted, Refused, Skipped
from crashmq.models.ops import Damage, Op, PlantFile, PutMessage, Restart, Shutdown
from crashmq.models.program import Program, Setup
from crashmq.models.verdict import Outcome

_PUT = PutMessage("T0", 0, 16)


def seen_of(op: Op, *ops: Op) -> object:
    """What was seen of the last op of an episode that keeps every law."""
    result = run_program(Program(Setup(), (_PUT, Shutdown(), op, *ops)))
    assert result.outcome is Outcome.PASSED, result.message
    last = 2 + len(ops)
    return next(step for step in result.trace if step.number == last).observation


@pytest.mark.parametrize(
    ("path", "is_own"),
    [
        ("commitlog/00000000000000004096", True),
        ("commitlog/4096", False),
        ("commitlog/lost+found/x", False),
        ("consumequeue/T0/0/00000000000000000000", True),
        ("consumequeue/T0/00/00000000000000000000", False),
        ("consumequeue/T0", False),
        ("index/20260101120000000", True),
        ("index/notes", False),
        ("abort", True),
        ("config/topics.json", True),
        ("core.1234", False),
    ],
)
def test_a_name_tells_whose_a_file_is(path: str, *, is_own: bool) -> None:
    assert is_of_a_store(path, has_index=True) is is_own


def test_a_store_without_an_index_has_no_file_there() -> None:
    assert not is_of_a_store("index/20260101120000000", has_index=False)


def test_what_is_repeated_is_what_follows_as_far_as_there_is_any() -> None:
    files = {"abort": b"abcdefgh"}

    assert damaged(files, Damage("abort", "repeat", 1, 3)) == (
        *("abort", b"aefgefgh"),
        *(1, 4),
    )
    assert damaged(files, Damage("abort", "repeat", 5, 2)) == (
        *("abort", b"abcdehgh"),
        *(5, 6),
    )


def test_the_next_file_is_named_by_those_that_are_there() -> None:
    files = {"commitlog/00000000000000004096": bytes(4096), "commitlog/x": b""}
    following = foreign_file(files, PlantFile("commitlog/{next}", "zeros", 3))
    far = foreign_file(files, PlantFile("commitlog/{far}"))

    assert following == ("commitlog/00000000000000008192", bytes(3))
    assert far == ("commitlog/00000000000000020480", b"")


def test_nothing_is_put_over_a_file_nor_below_one() -> None:
    disk = SimDisk()
    disk.load({"a/b": b"mine"})

    assert isinstance(plant(disk, PlantFile("a/b", "zeros", 9)), Skipped)
    assert isinstance(plant(disk, PlantFile("a/b/c", "zeros", 9)), Skipped)
    assert plant(disk, PlantFile("a/c", "copy", source="a/b")) == Planted("a/c", 4)
    assert plant(disk, PlantFile("d", "directory")) == Planted("d", -1)
    assert disk.files() == {"a/b": b"mine", "a/c": b"mine"}
    assert disk.mount().is_dir("d")


def test_a_foreign_file_that_is_gone_or_changed_is_a_breach() -> None:
    mine = {"commitlog/notes": b"mine"}

    foreign_files_stay.hold({}, mine, dict(mine))
    for files in ({}, {"commitlog/notes": b"yours"}):
        with pytest.raises(LawViolated, match="REC-14"):
            foreign_files_stay.hold({}, mine, files)


@pytest.mark.parametrize("content", ["empty", "zeros", "garbage", "copy"])
def test_a_left_over_next_file_is_no_reason_to_refuse(content: str) -> None:
    made = PlantFile("commitlog/{next}", "empty", 4096, "commitlog[0]")

    seen = seen_of(
        PlantFile(made.path, content, made.size, made.source),  # type: ignore[arg-type]
        Restart(),
    )

    assert not isinstance(seen, Refused)


def test_a_file_of_a_store_with_other_sizes_is_refused() -> None:
    seen = seen_of(PlantFile("commitlog/{next}", "zeros", 4097), Restart())

    assert isinstance(seen, Refused)
    assert "do not fit" in seen.reason


def test_directories_are_passed_over_whatever_their_name() -> None:
    name = "commitlog/00000000000000999424"

    seen = seen_of(PlantFile(name, "directory"), Restart())

    assert not isinstance(seen, Refused)
