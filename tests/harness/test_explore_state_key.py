"""What a state key is made of: every byte that a store or the judge ever reads."""

from __future__ import annotations

import pytest

from crashmq.harness.disk.sim_disk import SimDisk
from crashmq.harness.explore.state_key import NEVER_READ, StateKey, StateKeys
from crashmq.harness.subjects.python_store import PythonStore
from crashmq.models.messages import MessageToPut
from crashmq.models.observations import Observation
from crashmq.models.ops import Crash
from crashmq.models.program import Setup

MESSAGE = MessageToPut("T0", 0, b"body", "", "", "", wait_store_ok=True)
PATHS = ("abort", "checkpoint", "lock")


def killed_store() -> PythonStore:
    """A store with one message whose process was killed."""
    store = PythonStore(Setup())
    store.start()
    store.put(MESSAGE)
    store.run_service("reput", 1)
    store.crash(Crash("process_kill"))
    return store


def started(store: PythonStore) -> tuple[Observation, dict[str, bytes]]:
    """What a start answers, and the files it leaves that are ever read."""
    answer = store.start()
    files = store.disk.files()
    return answer, {path: files[path] for path in files if path not in NEVER_READ}


@pytest.mark.parametrize("text", [b"", b"4711", bytes(600)], ids=len)
def test_a_start_does_not_read_what_no_view_holds(text: bytes) -> None:
    plain, other = killed_store(), killed_store()
    for path in NEVER_READ:
        assert path in other.disk.files()
        other.disk.replace_file(path, text)

    assert started(other) == started(plain)


@pytest.mark.parametrize("path", PATHS)
def test_other_bytes_are_another_view_where_they_are_read(path: str) -> None:
    state_keys = StateKeys()

    same = view_of(state_keys, path, b"a") == view_of(state_keys, path, b"b")

    assert same is (path in NEVER_READ)


def view_of(state_keys: StateKeys, path: str, data: bytes) -> StateKey:
    disk = SimDisk()
    disk.load({path: data})
    return state_keys.of(*disk.seen())


def test_what_cannot_be_read_is_another_view_and_so_is_a_fuller_disk() -> None:
    state_keys, seen = StateKeys(), []
    for size, percent in ((0, 0), (0, 50), (0, 60), (512, 0), (1024, 0)):
        disk = SimDisk(capacity=1 << 16)
        disk.load({"f": bytes(1024)})
        if size:
            disk.make_unreadable("f", 0, size)
        disk.fill(percent)
        seen.append(state_keys.of(*disk.seen()))

    assert len(set(seen)) == len(seen)
