"""An op that a bug makes endless ends, and is a finding."""

from __future__ import annotations

import pytest

from crashmq.engine.host.disk import PAGE_SIZE
from crashmq.harness.disk.crash import Hang
from crashmq.harness.disk.sim_disk import SimDisk
from crashmq.harness.episodes.episode import run_program
from crashmq.harness.mutants.mutation import Edit, Mutant, applied
from crashmq.harness.scheduling.sim_runtime import SimRuntime
from crashmq.harness.subjects import python_store
from crashmq.models.ops import PullMessage, PutMessage, Restart, RunService
from crashmq.models.program import Program, Setup

ENDLESS_READS = Mutant(
    id="M01",
    title="reput-never-goes-on",
    source="",
    killed_by=("RUN-1",),
    edits=(
        Edit(
            module="crashmq.engine.store.reput_message_service",
            function="ReputMessageService._reput_file",
            before="self.reput_from_offset = start + at",
            after="return True",
        ),
    ),
    trigger=Program(Setup(), ()),
)


def test_a_service_that_reads_for_ever_is_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(python_store, "OP_READS_MAX", 1000)
    program = Program(Setup(), (PutMessage("T0", 0, 16), RunService("reput")))

    with applied(ENDLESS_READS):
        result = run_program(program)

    assert (result.law, result.step) == ("RUN-1", 1)
    assert "Hang" in result.message
    assert run_program(program).law == ""


def test_a_store_goes_on_after_many_ops_that_each_stay_in_bounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(python_store, "OP_ACTIONS_MAX", 50)
    monkeypatch.setattr(python_store, "OP_READS_MAX", 200)
    ops = (PutMessage("T0", 0, 16), PullMessage("T0", 0, 0), Restart()) * 20

    assert run_program(Program(Setup(), ops)).law == ""


@pytest.mark.parametrize("size", [1, PAGE_SIZE + 1])
def test_a_disk_does_as_much_as_it_is_allowed(size: int) -> None:
    disk = SimDisk()
    file = disk.mount().open("f", 4 * PAGE_SIZE, create=True, mapped=True)
    pages = -(-size // PAGE_SIZE)
    disk.allow(actions=2 * pages, reads=1)
    file.write_at(0, bytes(size))
    file.sync()
    file.read_at(0, 1)

    with pytest.raises(Hang, match="disk actions, write f"):
        file.write_at(0, bytes(size))
    with pytest.raises(Hang, match="reads, the newest of f"):
        file.read_at(0, 1)


def test_a_wait_that_never_ends_for_good_is_ended() -> None:
    runtime = SimRuntime(0)

    def wait_for_ever() -> None:
        while True:
            runtime.sleep_ms(1)

    with pytest.raises(Hang, match="100000 turns and no end"):
        runtime.run(wait_for_ever)
    assert runtime.run(lambda: 1) == 1
