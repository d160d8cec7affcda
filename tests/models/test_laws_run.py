"""The laws of running: what may be raised, and what no episode can break."""

from __future__ import annotations

import pytest

from crashmq.models.laws.run import (
    everything_is_given_back,
    nothing_unnamed_is_raised,
    same_digest,
)
from crashmq.models.observations import Failed


@pytest.mark.parametrize(
    ("error", "is_armed", "may_fill", "is_right"),
    [
        ("OSError", True, False, True),
        ("OSError", False, False, False),
        ("OSError", False, True, False),
        ("KeyError", True, True, False),
    ],
)
def test_only_a_disk_that_fails_excuses_an_error_and_only_an_error_of_its_own(
    error: str, is_armed: bool, may_fill: bool, is_right: bool
) -> None:
    failed = Failed(error, "[Errno 5] lost")

    found = nothing_unnamed_is_raised.violations([failed], is_armed, may_fill)

    assert (found == []) is is_right


def test_a_full_disk_excuses_that_there_is_no_room() -> None:
    failed = Failed("OSError", "[Errno 28] No space left on device")

    assert not nothing_unnamed_is_raised.violations([failed], False, True)
    assert nothing_unnamed_is_raised.violations([failed], False, False)


def test_two_runs_of_one_program_must_have_one_digest() -> None:
    assert same_digest.violations("a", "a") == []
    assert [found.seen for found in same_digest.violations("a", "b")] == ["b"]


def test_a_store_that_is_gone_must_have_given_back_each_kind_of_handle() -> None:
    before = {"files": 3, "threads": 1}
    after = {"files": 3, "threads": 2, "mappings": 1}
    law = everything_is_given_back

    assert law.violations(before, before) == []
    assert law.violations(before, {"files": 2}) == []
    assert [found.where for found in law.violations(before, after)] == [
        *("mappings", "threads")
    ]
