"""Stores that begin with a directory of RocketMQ's: what is found, known and judged."""

from __future__ import annotations

from typing import get_args

import pytest

from crashmq.harness.episodes.episode import run_program
from crashmq.harness.judging.first_known import first_known
from crashmq.harness.subjects.python_store import PythonStore
from crashmq.models.files.store_image import read_store
from crashmq.models.laws.taking_over import what_others_left_is_kept
from crashmq.models.ops import EVERYTHING, PullMessage, PutMessage, Restart, RunService
from crashmq.models.program import FoundStore, Program, Setup
from crashmq.models.verdict import Outcome
from crashmq.scenarios.catalogue.foreign_files import setup_of
from crashmq.scenarios.catalogue.found_stores import (
    FOUND,
    files_found,
    found_stores,
)

NAMES: tuple[FoundStore, ...] = get_args(FoundStore)[1:]
PACKED_MAX = 64 * 1024
each_store = pytest.mark.parametrize("name", NAMES)


def test_each_name_of_a_setup_has_its_archive_and_all_are_small() -> None:
    assert found_stores() == tuple(sorted(NAMES))
    packed = [path.stat().st_size for path in FOUND.iterdir()]
    assert sum(packed) <= PACKED_MAX


@each_store
def test_a_store_finds_the_files_and_no_other(name: FoundStore) -> None:
    store = PythonStore(setup_of(name))

    assert dict(store.files()) == dict(files_found(name))
    newest = read_store(files_found(name)).newest_store_timestamp
    assert store.now_ms() == store.epoch_ms > newest


@pytest.mark.slow
@each_store
def test_all_that_rocketmq_left_is_taken_over_and_judged(name: FoundStore) -> None:
    ops = (
        Restart(),
        RunService("reput", 99),
        PutMessage("T0", 0, 16),
        Restart(),
        PullMessage("T0", 0, 0),
    )

    result = run_program(Program(setup_of(name), ops), keep_trace=False)

    assert (result.outcome, result.message) == (Outcome.PASSED, "")
    asked = {verdict.law: verdict.checks for verdict in result.record.verdicts}
    assert asked["REC-21"] == 1
    assert asked["RD-1"] > 0


def test_a_deleted_topic_of_rocketmq_is_known_as_deleted() -> None:
    known = first_known(setup_of("5.3.0-deleted"), EVERYTHING)

    assert set(known.model.deleted) == {("T1", -1)}
    assert ("T1", 0) not in known.model.queues
    assert any(m.message.topic == "T1" for m in known.model.messages)


def test_a_subject_that_cannot_find_files_is_judged_as_a_new_one() -> None:
    known = first_known(setup_of("5.3.0-killed"), frozenset())

    assert not known.model.messages


def test_a_store_of_other_sizes_may_refuse_what_it_finds() -> None:
    setup = Setup(begins_with="4.9.8-nul")

    result = run_program(Program(setup, (Restart(),)), keep_trace=False)

    assert result.outcome is Outcome.PASSED


def test_what_is_lost_of_a_directory_of_others_is_told() -> None:
    files = dict(files_found("5.5.1-orderly"))
    index = min(path for path in files if path.startswith("index/"))
    found = read_store(files)
    del files[index]
    files["checkpoint"] = files["checkpoint"][:40] + bytes(4056)
    files["commitlog/00000000000000000000"] = bytes(8192)
    left = read_store(files)

    told = [str(one.where) for one in what_others_left_is_kept.judge(found, left, 8)]

    assert any("commitlog" in where for where in told)
    assert {"checkpoint", "index"} <= set(told)
