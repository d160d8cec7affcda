from __future__ import annotations

import random

import pytest

from crashmq.engine.broker.offset.consumer_offset_manager import ConsumerOffsetManager
from crashmq.harness.disk.sim_disk import SimDisk
from crashmq.harness.scheduling.sim_runtime import SimRuntime
from crashmq.models.files.offsets import (
    OFFSETS_BACKUP,
    OFFSETS_PATH,
    read_offsets,
    whole_offsets,
)
from crashmq.models.knowledge.progress import Ends, Progress
from crashmq.models.laws.progress import (
    a_copy_is_whole,
    answers_what_was_committed,
    begins_at_the_groups_offset,
    commits_never_go_back,
    lowest_offsets_are_answered,
    no_commit_passes_the_end,
    no_group_is_past_its_queue,
    persist_writes_all,
    resets_go_where_they_are_told,
    start_finds_what_was_kept,
    start_loads_the_file,
)

G0, G1 = ("g", "T", 0), ("g", "T", 1)


def written(**queues: int) -> bytes:
    manager = ConsumerOffsetManager(SimDisk().mount(), SimRuntime(0))
    for name, offset in queues.items():
        manager.commit_offset("g", "T", int(name[1:]), offset)
    return manager.encode().encode()


def test_the_decoder_reads_what_the_engine_writes() -> None:
    assert read_offsets(written(q0=5, q1=1 << 40)) == ((G0, 5), (G1, 1 << 40))
    assert read_offsets(b'{"offsetTable":{"T@g":{"1":7}}}') == ((G1, 7),)
    assert read_offsets(b"{}") == ()


@pytest.mark.parametrize(
    "data", [b"", b"\0" * 40, b"null", b"[]", b"{", b'{"offsetTable":{"T@g":{0:1.5}}}']
)
def test_what_is_no_whole_table_is_none(data: bytes) -> None:
    assert read_offsets(data) is None
    assert whole_offsets({OFFSETS_PATH: data, OFFSETS_BACKUP: data}) is None


@pytest.mark.slow
def test_engine_and_decoder_agree_on_what_is_whole() -> None:
    rng, data = random.Random(1), written(q0=5, q1=123)
    agreed = {True: 0, False: 0}
    for _ in range(3000):
        end = len(data) if rng.randrange(2) else rng.randrange(len(data))
        torn = bytearray(data[:end])
        for _ in range(rng.randrange(3) if torn else 0):
            torn[rng.randrange(len(torn))] = rng.choice(b'\0,:{}"@019-. e\xff')
        manager = ConsumerOffsetManager(SimDisk().mount(), SimRuntime(0))
        try:
            manager.decode(bytes(torn).decode())
        except ValueError:
            is_whole = False
        else:
            is_whole = True
        assert (read_offsets(bytes(torn)) is not None) is is_whole, bytes(torn)
        agreed[is_whole] += 1

    assert min(agreed.values()) > 20


def test_a_start_takes_the_file_then_its_backup_then_nothing() -> None:
    file, backup = written(q0=5), written(q0=4)

    assert whole_offsets({OFFSETS_PATH: file, OFFSETS_BACKUP: backup}) == ((G0, 5),)
    assert whole_offsets({OFFSETS_PATH: b"", OFFSETS_BACKUP: backup}) == ((G0, 4),)
    assert whole_offsets({OFFSETS_BACKUP: backup}) == ((G0, 4),)
    assert whole_offsets({"checkpoint": b""}) == ()


def test_a_crash_leaves_what_a_group_had_since_the_last_persist_began() -> None:
    progress = Progress()
    for offset in (1, 2, 3):
        progress.set(G0, offset, is_certain=True)
    progress.persisted(dict(progress.now))
    progress.set(G0, 4, is_certain=True)
    progress.set(G1, 9, is_certain=True)
    progress.ended()
    kept, ends = progress.kept, Ends({("T", 0): (9, 9), ("T", 1): (9, 9)})

    found = {
        offset: not start_finds_what_was_kept.violations(rows, kept, ends)
        for offset in range(6)
        for rows in [((G0, offset),)]
    }
    assert found == {0: False, 1: False, 2: False, 3: True, 4: True, 5: False}
    assert start_finds_what_was_kept.violations((), kept, ends)
    assert not start_finds_what_was_kept.violations(((G0, 3), (G1, 9)), kept, ends)


def test_a_start_lowers_what_lies_past_the_end_of_its_queue() -> None:
    files = {OFFSETS_PATH: written(q0=8, q1=3)}
    ends = Ends({("T", 0): (5, 5), ("T", 1): (5, 5)})
    lowered, kept = ((G0, 5), (G1, 3)), {G0: {8}, G1: {3}}

    assert not start_finds_what_was_kept.violations(lowered, kept, ends)
    assert not start_loads_the_file.violations(files, lowered, ends)
    assert not no_group_is_past_its_queue.violations(
        lowered, {OFFSETS_PATH: written(q0=5, q1=3)}, ends, {}
    )
    for offset in (4, 6, 8):
        rows = ((G0, offset), (G1, 3))
        assert start_finds_what_was_kept.violations(rows, kept, ends)
        assert start_loads_the_file.violations(files, rows, ends)
    assert no_group_is_past_its_queue.violations(((G0, 8), (G1, 3)), {}, ends, {})
    assert no_group_is_past_its_queue.violations(lowered, files, ends, {})


def test_a_start_that_lowers_an_offset_lowers_it_in_the_backup_too() -> None:
    ends = Ends({("T", 0): (5, 5), ("T", 1): (5, 5)})
    low, high = written(q0=5, q1=3), written(q0=8, q1=3)
    rows = ((G0, 5), (G1, 3))

    for found, backup, is_right in (
        (high, low, True),
        (high, high, False),
        (low, high, True),  # nothing was lowered, so nothing was written
    ):
        files = {OFFSETS_PATH: low, OFFSETS_BACKUP: backup}
        told = no_group_is_past_its_queue.violations(
            rows, files, ends, {OFFSETS_PATH: found}
        )
        assert bool(told) is not is_right


def test_nobody_knows_the_ends_of_a_log_that_was_damaged() -> None:
    ends = Ends({}, is_known=False)

    allowed = [offset for offset in range(-1, 10) if ends.allows(G0, offset, {3, 6})]
    assert allowed == [0, 1, 2, 3, 4, 5, 6]
    assert ends.allows(G0, -1, {-1})
    assert not no_group_is_past_its_queue.violations(((G0, 8),), {}, ends, {})


def test_a_persist_beside_a_commit_may_have_written_either() -> None:
    progress = Progress()
    progress.set(G0, 3, is_certain=True)
    before = dict(progress.now)
    progress.set(G0, 4, is_certain=False)
    progress.persisted(before)

    assert progress.may_be_kept(G0) == {3, 4}
    progress.loaded(((G0, 4),))
    assert progress.may_be_kept(G0) == progress.of(G0) == {4}


def test_an_answer_is_one_of_those_that_a_group_may_have() -> None:
    assert not answers_what_was_committed.violations(G0, 5, {4, 5})
    assert answers_what_was_committed.violations(G0, -1, {5})
    assert commits_never_go_back.violations(G0, 4, 3, {5})
    assert commits_never_go_back.violations(G0, 4, 6, {-1})
    assert not commits_never_go_back.violations(G0, 6, 3, {5})


def test_a_group_without_an_offset_begins_where_it_was_told_to() -> None:
    begins = begins_at_the_groups_offset.violations

    assert not begins(G0, 7, {7}, {0, 3})
    assert begins(G0, 3, {7}, {0, 3})
    assert not begins(G0, 3, {-1}, {0, 3})
    assert begins(G0, 2, {-1}, {0, 3})
    assert not begins(G0, 7, {-1, 7}, {0, 3})


def test_files_are_judged_by_what_they_say() -> None:
    progress = Progress()
    progress.set(G0, 5, is_certain=True)
    files = {OFFSETS_PATH: written(q0=5)}

    assert not persist_writes_all.violations(files, progress)
    assert persist_writes_all.violations({OFFSETS_PATH: written()}, progress)
    assert persist_writes_all.violations({}, progress)
    assert not a_copy_is_whole.violations(files)
    assert a_copy_is_whole.violations({})
    assert a_copy_is_whole.violations({OFFSETS_PATH: b"", OFFSETS_BACKUP: b"{"})
    ends = Ends({("T", 0): (5, 5)})
    assert not start_loads_the_file.violations(files, ((G0, 5),), ends)
    assert start_loads_the_file.violations(files, ((G0, 4),), ends)
    assert start_loads_the_file.violations({OFFSETS_PATH: b""}, (), ends)


def test_a_commit_is_taken_up_to_the_end_of_its_queue() -> None:
    judge = no_commit_passes_the_end.violations

    assert not judge(G0, 5, 5, accepted=True)
    assert not judge(G0, 6, 5, accepted=False)
    assert judge(G0, 6, 5, accepted=True)
    assert judge(G0, 5, 5, accepted=False)


def test_no_offset_is_taken_of_a_queue_that_cannot_be() -> None:
    judge = no_commit_passes_the_end.violations

    assert not judge(("g", "T", -1), 0, 0, accepted=False)
    assert judge(("g", "T", -1), 0, 0, accepted=True)


def test_a_reset_goes_to_its_target() -> None:
    assert not resets_go_where_they_are_told.violations(G0, 5, {5})
    assert not resets_go_where_they_are_told.violations(G0, -1, {-1})
    assert resets_go_where_they_are_told.violations(G0, 5, {-1})
    assert resets_go_where_they_are_told.violations(G0, -1, {5})


def test_the_lowest_offsets_are_those_of_the_groups_that_count() -> None:
    judge = lowest_offsets_are_answered.violations

    assert not judge("T", ((0, 3), (1, 4)), {0: {3}, 1: {4, 5}, 2: {-1}})
    assert judge("T", ((0, 4),), {0: {3}})
    assert judge("T", (), {0: {3}})
    assert judge("T", ((0, 3),), {})


def test_a_group_that_is_given_anothers_offsets_has_them_all() -> None:
    progress, of_h = Progress(), ("h", "T", 0)
    progress.copied("g", "h", "T", is_certain=True)
    assert progress.of(of_h) == {-1}
    progress.set(G0, 3, is_certain=True)
    progress.set(("h", "T", 1), 7, is_certain=True)

    progress.copied("g", "h", "T", is_certain=True)

    assert progress.of(of_h) == {3}
    assert progress.of(("h", "T", 1)) == {-1}
    assert progress.may_be_kept(("h", "T", 1)) == {-1, 7}


def test_what_was_removed_is_gone_and_what_may_be_is_not_certain() -> None:
    progress = Progress()
    for key in (G0, G1, ("h", "U", 0)):
        progress.set(key, 3, is_certain=True)
    progress.pending = {G0: True}

    progress.may_be_gone(progress.keys_of(topic="T", queue_id=0))
    assert progress.of(G0) == {-1, 3}
    assert progress.of(G1) == {3}
    assert progress.pending == {G0: False}
    progress.gone(progress.keys_of(group="g"))
    assert progress.may_be_kept(G0) == progress.of(G1) == {-1}
    assert progress.of(("h", "U", 0)) == {3}
    assert progress.pending == {}
