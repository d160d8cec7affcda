from __future__ import annotations

from collections.abc import Callable

import pytest

from crashmq.engine.common.config_file import ConfigFile
from crashmq.engine.host.disk import Disk
from crashmq.engine.store.errors import StoreCorrupted
from crashmq.harness.disk.crash import StoreCrashed
from crashmq.harness.disk.profiles import PROFILES
from crashmq.harness.disk.sim_disk import SimDisk
from crashmq.harness.scheduling.sim_runtime import SimRuntime
from crashmq.models.ops import Crash, DiskFault, FaultCall, Survivors

PATH = "config/table.json"
KILL = Crash("process_kill")
POWER_LOSSES = (
    Crash("power_loss", Survivors("none")),
    Crash("power_loss", Survivors("all")),
    *(Crash("power_loss", Survivors("prefix", n)) for n in (1, 2, 3, 5, 8, 11)),
    *(Crash("power_loss", Survivors("hashed", seed)) for seed in range(6)),
)
PERSISTS = 3
ACTIONS_MAX = 60
KEEPING = [name for name, profile in PROFILES.items() if profile.keeps_promises]


def whole(text: str) -> str:
    if not (text.startswith("<") and text.endswith(">")):
        raise ValueError(text)
    return text


def opened(disk: Disk) -> tuple[ConfigFile, str | None]:
    file = ConfigFile(disk, PATH, SimRuntime(0))
    return file, file.load(whole)


def test_a_new_table_is_none_and_makes_no_file() -> None:
    disk = SimDisk()

    assert opened(disk.mount())[1] is None
    assert disk.files() == {}


def test_the_file_has_the_newest_text_and_the_backup_the_one_before() -> None:
    disk = SimDisk()
    file, _ = opened(disk.mount())

    for text in ("<1>", "<2>", "<3>"):
        file.persist(text)

    assert disk.files() == {PATH: b"<3>", f"{PATH}.bak": b"<2>"}
    assert disk.unsynced() == ()


def persist_until(disk: SimDisk, crash: Crash, at_action: int, number: int) -> int:
    """Open and persist; the highest number that a persist returned from, or -1."""
    done = -1

    def lose() -> None:
        raise disk.crash(crash)

    disk.at_action(at_action, at_action % 3, lose)
    try:
        file, _ = opened(disk.mount())
        file.settle()
        for one in range(number, number + PERSISTS):
            file.persist(f"<{one:04}>")
            done = one
    except StoreCrashed:
        pass
    disk.end_watch()
    disk.unmount()
    return done


@pytest.mark.slow
@pytest.mark.parametrize("profile", KEEPING)
@pytest.mark.parametrize("crash", [KILL, *POWER_LOSSES], ids=str)
def test_no_crash_at_any_action_takes_what_a_persist_kept(
    profile: str, crash: Crash
) -> None:
    """Twice in a row, the second time amid what the first one left."""
    for at_action in range(1, ACTIONS_MAX):
        disk = SimDisk(PROFILES[profile])
        floor = -1
        for life, at in enumerate((at_action, ACTIONS_MAX - at_action, ACTIONS_MAX)):
            floor = max(floor, persist_until(disk, crash, at, 100 * life))
            found = opened(disk.mount())[1]
            disk.unmount()
            if floor >= 0:
                assert found is not None, (at_action, life)
                assert int(found[1:-1]) >= floor, (at_action, life)
            if found is not None:
                floor = int(found[1:-1])
                persist_until(disk, KILL, ACTIONS_MAX, floor)


FAULTS: tuple[FaultCall, ...] = ("write", "sync", "create", "remove")


@pytest.mark.parametrize("crash", [KILL, *POWER_LOSSES[:4]], ids=str)
@pytest.mark.parametrize("call", FAULTS)
def test_no_failing_persist_spoils_what_was_kept(call: FaultCall, crash: Crash) -> None:
    for after in range(8):
        disk = SimDisk(PROFILES["posix_min"])
        file, _ = opened(disk.mount())
        file.persist("<1>")
        file.persist("<2>")
        disk.fail(DiskFault(call, "ENOSPC", times=2, after=after, written=1))
        for text in ("<3>", "<4>"):
            try:
                file.persist(text)
            except OSError:
                continue
        disk.heal()
        disk.crash(crash)
        disk.unmount()

        assert opened(disk.mount())[1] in {"<2>", "<3>", "<4>"}


DAMAGES: dict[str, Callable[[bytes], bytes | None]] = {
    "gone": lambda _: None,
    "empty": lambda _: b"",
    "torn": lambda data: data[:-1],
    "zeroed": lambda data: bytes(len(data)),
    "no text": lambda data: b"\xff" + data,
}


@pytest.mark.parametrize("how", DAMAGES)
def test_a_damaged_file_is_read_from_its_backup(how: str) -> None:
    disk = kept_twice()
    disk.replace_file(PATH, DAMAGES[how](disk.files()[PATH]))

    file, found = opened(disk.mount())
    assert found == "<1>"

    file.persist("<5>")
    assert disk.files() == {PATH: b"<5>", f"{PATH}.bak": b"<1>"}


@pytest.mark.parametrize("how", [how for how in DAMAGES if how != "gone"])
@pytest.mark.parametrize("other", ["gone", "empty", "torn"])
def test_what_nobody_can_read_is_refused_and_stays(how: str, other: str) -> None:
    disk = kept_twice()
    disk.replace_file(PATH, DAMAGES[how](disk.files()[PATH]))
    disk.replace_file(f"{PATH}.bak", DAMAGES[other](b"<1>"))
    before = disk.files()

    with pytest.raises(StoreCorrupted, match=r"config/table\.json: neither") as refused:
        opened(disk.mount())

    assert refused.value.path == PATH
    assert disk.files() == before


def test_a_file_that_cannot_be_read_is_refused() -> None:
    disk = kept_twice()
    disk.make_unreadable(PATH, 0, 3)

    with pytest.raises(StoreCorrupted, match="cannot be read"):
        opened(disk.mount())


def kept_twice() -> SimDisk:
    disk = SimDisk()
    file, _ = opened(disk.mount())
    file.persist("<1>")
    file.persist("<2>")
    disk.unmount()
    return disk
