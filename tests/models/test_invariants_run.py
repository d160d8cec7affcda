"""The laws of running that no episode can break: of two runs, of a process."""

from __future__ import annotations

from models.invariants.run import everything_is_given_back, same_digest


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
