"""Layouts of other kinds of store."""

from __future__ import annotations

import pytest

from crashmq.models.files.layouts import of_another_layout

OURS = (
    *("commitlog/00000000000000000000", "consumequeue/T0/0/00000000000000000000"),
    *("compaction/position-checkpoint", "rocksdbstore/CURRENT", "dledger-notes.txt"),
)


@pytest.mark.parametrize(
    "path",
    [
        "dledger-broker-a/data/00000000000000000000",
        "consumequeue_rocksdb/000004.log",
        "consumequeue/CURRENT",
        "batchconsumequeue/T0/0/00000000000000000000",
        "compaction/compactionLog/T0/0/00000000000000000000",
        "compaction/compactionCq/T0/0/00000000000000000000",
    ],
)
def test_a_file_of_another_kind_of_store_is_told(path: str) -> None:
    assert of_another_layout((*OURS, path)) == path


def test_what_rocketmq_keeps_beside_a_log_of_files_is_no_other_layout() -> None:
    assert of_another_layout(OURS) == ""
