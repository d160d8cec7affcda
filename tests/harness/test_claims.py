"""Groups of laws: asked once of the same files, and again when something differs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from crashmq.harness.judging.asking import hold_all
from crashmq.models.files.store_image import read_store
from crashmq.models.laws.judged import Judged
from crashmq.models.laws.registry import Law, LawViolated
from crashmq.models.verdict import Violation


def law_that(asked: list[int | None], *, finds: str = "") -> tuple[Law[[Judged]], ...]:
    """A group of one law that notes each time it is asked."""

    def judge(judged: Judged) -> Iterator[Violation]:
        asked.append(judged.reput_from_offset)
        if finds:
            yield Violation("here", finds)

    error = type("BrokenLaw", (LawViolated,), {"id": "CL-1"})
    return (Law("CL-1", "a sentence", "I1", judge, error),)


def test_a_group_that_holds_is_asked_once_of_an_image_and_counted_each_time() -> None:
    asked: list[int | None] = []
    checks: dict[str, int] = {}
    laws, image = law_that(asked), read_store({})

    for _ in range(3):
        hold_all(checks, "some", laws, Judged(image, 7))

    assert asked == [7]
    assert checks == {"CL-1": 3}


def test_it_is_asked_again_of_other_files_under_other_terms_and_by_another_name() -> (
    None
):
    asked: list[int | None] = []
    laws, image = law_that(asked), read_store({})

    hold_all({}, "some", laws, Judged(image, 7))
    hold_all({}, "some", laws, Judged(image, 8))
    hold_all({}, "some", laws, Judged(image, 8, clean=False))
    hold_all({}, "others", laws, Judged(image, 8))
    hold_all({}, "some", laws, Judged(read_store({}), 8))

    assert asked == [7, 8, 8, 8, 8]


def test_a_group_that_is_broken_is_broken_each_time() -> None:
    laws, image = law_that([], finds="something"), read_store({})

    for _ in range(2):
        with pytest.raises(LawViolated, match="something"):
            hold_all({}, "some", laws, Judged(image))
