"""A run in an object store comes to what it comes to in a directory."""

from __future__ import annotations

import io
import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from object_store import SIGNED, address_of, object_store
from sample_run import DECLARED, SampleTask

from crashmq.harness.cli import main
from crashmq.harness.searches.shards_here import run_here
from crashmq.reports import places
from crashmq.reports.errors import CannotWrite, EnvironmentMissing
from crashmq.reports.places import Remote, place_of
from crashmq.reports.records import Shard
from crashmq.reports.run_dir import (
    DONE,
    Session,
    Wanted,
    begin_run,
    committed,
    elapsed_of,
    new_session,
    write_session,
)

aggregates = pytest.importorskip("crashmq.reports.aggregates")
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("object store")]


@pytest.fixture(scope="module")
def at() -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch, object_store() as address:
        for name, value in SIGNED.items():
            patch.setenv(name, value)
        yield address


def run(out: Any, episodes: int) -> None:
    task = SampleTask(break_every=13)
    begin_run(out, task.run_id, task.definition, episodes, DECLARED)
    run_here(task, out, Wanted(episodes), lambda _: None, workers=2)
    ended = Session("2026-11-24T00:00:00+00:00", "here", "crashmq soak", DONE, 4.0)
    write_session(new_session(out), ended)


def comes_to(out: Any) -> tuple[object, ...]:
    found = aggregates.LocalAggregates(out)
    return dict(found.sums()), found.digest(), found.findings()


def crashmq(*args: object) -> Result:
    return CliRunner().invoke(main, [str(arg) for arg in args])


def test_a_run_is_begun_and_gone_on_with_there(at: str, tmp_path: Path) -> None:
    there = place_of(address_of(at, "runs/one"))

    run(there, 60)
    run(there, 130)
    run(tmp_path / "here", 130)

    assert isinstance(there, Remote)
    assert committed(there) == committed(tmp_path / "here")
    assert comes_to(there) == comes_to(tmp_path / "here")
    assert elapsed_of(there) == 8.0


def test_what_is_not_committed_is_not_there(at: str) -> None:
    there = place_of(address_of(at, "runs/two"))
    run(there, 120)

    (there / "manifests" / "0000000050-0000000100.parquet").unlink()

    assert committed(there) == [Shard(0, 50), Shard(100, 20)]


def test_it_is_reported_and_asked_there(at: str) -> None:
    address = address_of(at, "nightly/2026-11-24-three")
    run(place_of(address), 60)

    reported = crashmq("report", address)
    asked = crashmq("sql", address, "select count(*) as n from episodes")
    summed = crashmq("sql", address, "select sum(episodes) as n from scenarios")
    nights = crashmq("nights", address_of(at, "nightly"))

    place = place_of(address)
    summary = json.loads((place / "summary.json").read_text())
    assert (reported.exit_code, summary["episodes"]) == (1, 60), reported.output
    assert "<html" in (place / "report.html").read_text()
    assert "60" in asked.output, asked.output
    assert "60" in summed.output, summed.output
    assert "2026-11-24-three, beside" in nights.output


def test_a_store_that_refuses_or_is_not_there_is_one_sentence(at: str) -> None:
    nowhere = place_of(address_of(at, "x").replace("nights", "nobodys"))
    silent = place_of(address_of("127.0.0.1:9", "x"))

    with pytest.raises(CannotWrite, match="cannot be written: "):
        run(nowhere, 60)
    with pytest.raises(EnvironmentMissing, match="cannot be read: "):
        run(silent, 60)
    result = crashmq("report", silent)
    assert (result.exit_code, result.stdout) == (4, "")


@pytest.fixture
def heeded() -> Iterator[None]:
    """Who runs the suite in the background may have interrupts ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heeded")
def test_an_interrupt_while_an_object_is_opened_leaves_it_whole(
    at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = place_of(address_of(at, "runs/interrupted.json"))
    assert isinstance(there, Remote)
    real = there.filesystem

    class Interrupting:
        def open_output_stream(self, path: str) -> Any:
            stream = real.open_output_stream(path)
            os.kill(os.getpid(), signal.SIGINT)
            return stream

    with monkeypatch.context() as patch:
        patch.setattr(places, "_filesystem", lambda *_: Interrupting())
        with pytest.raises(KeyboardInterrupt):
            there.write_bytes(b"{}")

    assert there.read_bytes() == b"{}"


def test_an_interrupt_while_the_writing_thread_starts_leaves_it_whole(
    at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = place_of(address_of(at, "runs/starting.json"))
    assert isinstance(there, Remote)
    opened, start = threading.Event(), threading.Thread.start

    def interrupted(thread: threading.Thread) -> None:
        start(thread)
        opened.wait(60)
        raise KeyboardInterrupt

    def slow_put(remote: Remote, data: bytes) -> None:
        opened.set()
        time.sleep(0.2)
        put(remote, data)

    put = Remote._put
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", interrupted)
        patch.setattr(Remote, "_put", slow_put)
        with pytest.raises(KeyboardInterrupt):
            there.write_bytes(b"{}")

    assert there.read_bytes() == b"{}"


class Failing(io.BytesIO):
    """An object whose store is gone once it is open."""

    def read(self, size: int | None = -1) -> bytes:
        raise OSError("AWS Error NETWORK_CONNECTION: it is gone")


@pytest.mark.parametrize("opened", [1, 2])
def test_a_store_that_fails_amid_a_file_damages_none(
    at: str, monkeypatch: pytest.MonkeyPatch, opened: int
) -> None:
    there = place_of(address_of(at, "runs/failing"))
    run(there, 60)
    assert isinstance(there, Remote)
    real = there.filesystem
    failing = [Failing(b"x" * 5000) for _ in range(opened)]

    class FailsAtFirst:
        def open_input_file(self, path: str) -> Any:
            return failing.pop() if failing else real.open_input_file(path)

    with monkeypatch.context() as patch:
        patch.setattr(places, "_filesystem", lambda *_: FailsAtFirst())
        if opened == 1:
            assert aggregates.manifest_at(there, Shard(0, 50)).num_rows == 1
        else:
            with pytest.raises(
                EnvironmentMissing, match=r"cannot be read: .* is gone$"
            ):
                aggregates.manifest_at(there, Shard(0, 50))


def test_an_object_that_is_damaged_is_told_to_be_removed(at: str) -> None:
    there = place_of(address_of(at, "runs/damaged"))
    run(there, 60)
    manifest = there / "manifests" / "0000000000-0000000050.parquet"
    assert isinstance(manifest, Remote)
    manifest.write_bytes(manifest.read_bytes()[:-9])

    result = crashmq("report", there)

    assert (result.exit_code, result.stdout) == (2, "")
    assert "; remove it and the manifest of its name, and give" in result.stderr
