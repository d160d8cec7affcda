"""The kind of a directory that a start found: what it tells, and what it leaves out."""

from __future__ import annotations

from written_store import WrittenStore, patched, queue_path, without

from crashmq.models.files.found_state import kind_of_state
from crashmq.models.files.store_image import read_store


def kind(files: dict[str, bytes]) -> str:
    return kind_of_state(read_store(files))


def store(count: int, topic: str = "T0") -> dict[str, bytes]:
    written = WrittenStore()
    for _ in range(count):
        written.put(topic, body_size=10)
    return written.files()


def test_an_empty_directory_is_a_kind_of_its_own() -> None:
    assert kind({}) == "log 0 ends end, queues 0, no checkpoint, clean"


def test_sizes_and_names_do_not_count() -> None:
    assert kind(store(3)) == kind(store(5)) == kind(store(3, "another"))


def test_what_is_missing_or_torn_counts() -> None:
    files = store(3)
    short = patched(files, queue_path(), 40, bytes(20))
    kinds = [
        kind(files),
        kind(short),
        kind(without(files, queue_path())),
        kind(without(files, "checkpoint")),
        kind({**files, "abort": b""}),
        kind({**files, "config/topics.json": b""}),
        kind({**files, "config/topics.json": b"", "config/topics.json.bak": b"{}"}),
        kind({**files, "mine.txt": b"?"}),
    ]

    assert len({*kinds}) == len(kinds)
    assert " short" in kinds[1]
    assert "topics empty lost" in kinds[5]
