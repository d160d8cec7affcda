"""ChildStore: our engine on real files, in a process that can be killed at any action.

``PythonStore`` and ``SimDisk`` simulate; here the store lives in a child process on a
real directory, and a process kill is SIGKILL, sent while the child waits in the middle
of the n-th disk action. So the real kernel checks the simulation. Every call is sent to
the child and its observation back; a call in progress when the child is killed ends as
``ProcessKilled``. The store cannot lose power, and no op runs during another.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

from crashmq.harness.disk.controls import Healed
from crashmq.harness.disk.counted_disk import CountedDisk
from crashmq.harness.disk.crash import StoreCrashed
from crashmq.harness.disk.sim_disk import SimDisk
from crashmq.harness.subjects.engine_config import epoch_of, place_found
from crashmq.harness.subjects.python_store import PythonStore
from crashmq.models.messages import MessageToPut
from crashmq.models.observations import (
    DOWN,
    Observation,
    Positions,
    Statistics,
)
from crashmq.models.ops import (
    Boundary,
    Crash,
    Damage,
    DiskFault,
    FaultCall,
    PlantFile,
    ServiceName,
)
from crashmq.models.program import Setup

_END_SECONDS_MAX = 10.0


class Facts(NamedTuple):
    """What a child reports of itself with every answer."""

    is_up: bool
    now_ms: int
    actions: int
    last_action: str
    positions: Positions


class ChildDied(RuntimeError):
    """The child ended without being killed."""


class ChildStore:
    """The engine as a subject whose runs are processes of their own.

    Args:
        setup: the store's configuration; its disk profile has no meaning here.
        root: an empty directory for the store.
    """

    name = "child"

    def __init__(self, setup: Setup, root: Path) -> None:
        self._setup = setup
        self._disk = CountedDisk(root)
        self.epoch_ms = epoch_of(setup)
        self._facts = Facts(False, self.epoch_ms, 0, "", DOWN)
        self._process: BaseProcess | None = None
        self._pipe: Connection | None = None
        self._events: list[Callable[[], None]] = []
        place_found(self._disk, setup)

    def layout(self) -> Literal["rocketmq"]:
        """Files, records and refusals are RocketMQ's."""
        return "rocketmq"

    def begins_with(self) -> str:
        """Which directory its first start finds."""
        return self._setup.begins_with

    @property
    def is_up(self) -> bool:
        """Whether the store is started."""
        return self._facts.is_up

    def now_ms(self) -> int:
        """The simulated wall clock, which continues when a child ends."""
        return self._facts.now_ms

    def put(self, message: MessageToPut) -> Observation:
        """Store one message; returns a ``Put``."""
        return self._verb("put", message)

    def put_batch(self, messages: Sequence[MessageToPut]) -> Observation:
        """Store several messages as one batch; returns a ``Put``."""
        return self._verb("put_batch", messages)

    def pull(
        self,
        topic: str,
        queue_id: int,
        queue_offset: int,
        max_msg_nums: int,
        tags: str,
    ) -> Observation:
        """Read one queue."""
        return self._verb("pull", topic, queue_id, queue_offset, max_msg_nums, tags)

    def look(self, phy_offset: int) -> Observation:
        """Read one message by its phy_offset."""
        return self._verb("look", phy_offset)

    def search(
        self, topic: str, queue_id: int, at_ms: int, boundary: Boundary
    ) -> Observation:
        """Find a queue offset by time."""
        return self._verb("search", topic, queue_id, at_ms, boundary)

    def query(
        self, topic: str, key: str, max_num: int, begin_ms: int, end_ms: int
    ) -> Observation:
        """Read the messages with a key."""
        return self._verb("query", topic, key, max_num, begin_ms, end_ms)

    def run_service(self, service: ServiceName, times: int) -> Observation:
        """Run a service for some rounds; returns a ``Ran``."""
        return self._verb("run_service", service, times)

    def advance_clock(self, ms: int) -> Observation:
        """Move the clock."""
        return self._verb("advance_clock", ms)

    def open_beside(self) -> Observation:
        """Load the directory by another store in the child; ``Refused`` is right."""
        return self._verb("open_beside")

    def delete_manually(self) -> Observation:
        """Ask the cleaner to delete expired files in its next rounds."""
        return self._verb("delete_manually")

    def delete_topic(self, topic: str, queue_id: int) -> Observation:
        """Delete a topic, or one queue of it."""
        return self._verb("delete_topic", topic, queue_id)

    def clean_topics(self, retained: Sequence[str]) -> Observation:
        """Delete all topics but ``retained``."""
        return self._verb("clean_topics", retained)

    def mtime_ms(self, path: str) -> int:
        """The mtime of a file."""
        return (self._disk.root / path).stat().st_mtime_ns // 1_000_000

    def shutdown(self) -> Observation:
        """Shut the store down; returns a ``Stopped``."""
        return self._verb("shutdown")

    def start(self) -> Observation:
        """Load, recover and start."""
        return self._verb("start")

    def damage(self, damage: Damage) -> Observation:
        """Change a file while the store is down."""
        return self._verb("damage", damage)

    def plant(self, op: PlantFile) -> Observation:
        """Put a foreign file into the store while it is down."""
        return self._verb("plant", op)

    def on_action(self, at_action: int, cut: int, event: Callable[[], None]) -> None:
        """Run ``event`` while the child waits in its n-th disk action from now."""
        self._events.append(event)
        self._ask("on_action", at_action, cut, len(self._events) - 1)

    def end_watch(self, event: Callable[[], None] | None = None) -> bool:
        """Remove the newest event; return whether it had fired."""
        del event
        if self._events:
            self._events.pop()
        return self._process is None or bool(self._ask("end_watch"))

    def fail(self, fault: DiskFault) -> None:
        """Make calls to the disk fail."""
        self._ask("fail", fault)

    def left_by_start(self) -> tuple[str, ...]:
        """Empty: the kernel closes everything with the process."""
        return ()

    def late_actions(self) -> int:
        """Always 0: the process ends with its shutdown."""
        return 0

    def take_faults_met(self) -> tuple[tuple[FaultCall, str], ...] | None:
        """The calls that met a fault; None if the child that counted them has ended."""
        if self._process is None:
            return None
        met = self._ask("take_faults_met")
        return cast(tuple[tuple[FaultCall, str], ...], met)

    def heal(self) -> Healed:
        """Disarm all disk faults; returns what they did, if the child still knows."""
        if self._process is None:
            return Healed(0)
        return cast(Healed, self._ask("heal"))

    def kill(self) -> None:
        """Kill the child."""
        self.crash(Crash("process_kill"))

    def crash(self, crash: Crash) -> StoreCrashed:
        """Kill the child, whatever it is doing."""
        process = self._process
        if process is not None:
            assert process.pid is not None
            os.kill(process.pid, signal.SIGKILL)
            self._forget_child()
        return self._disk.crash(crash)

    def disk_actions(self) -> int:
        """Disk actions since the subject was made."""
        return self._facts.actions

    def last_action(self) -> str:
        """The newest disk action as ``kind:path``, kind as ``write`` or ``sync``."""
        return self._facts.last_action

    def files(self) -> Mapping[str, bytes]:
        """The files as a reader sees them now."""
        return self._disk.files()

    def positions(self) -> Positions:
        """The log's offsets."""
        return self._facts.positions

    def statistics(self) -> Statistics:
        """The store's counts since it started."""
        return cast(Statistics, self._ask("statistics"))

    def close(self) -> None:
        """End the child, if there is one; the directory stays."""
        if self._process is not None:
            self.crash(Crash("process_kill"))

    def _verb(self, name: str, *arguments: object) -> Observation:
        return cast(Observation, self._ask("verb", name, arguments))

    def _ask(self, request: str, *arguments: object) -> Any:
        """Send a request to the child; its events meanwhile run here."""
        pipe = self._pipe or self._begin_child()
        pipe.send((request, arguments))
        while True:
            try:
                kind, answer, self._facts = pipe.recv()
            except EOFError:
                how = self._forget_child()
                raise ChildDied(
                    f"the child ended by itself with {how} while asked to {request}"
                ) from None
            if kind == "done":
                return answer
            self._events[answer]()
            pipe.send(("go on", ()))

    def _begin_child(self) -> Connection:
        context = multiprocessing.get_context("fork")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(
            target=_serve,
            args=(theirs, self._setup, self._disk.root, self._facts),
            daemon=True,
        )
        self._process.start()
        theirs.close()
        return self._pipe

    def _forget_child(self) -> str:
        assert self._process is not None
        assert self._pipe is not None
        self._process.join(_END_SECONDS_MAX)
        how = f"exit code {self._process.exitcode}"
        self._process.close()
        self._pipe.close()
        self._process = self._pipe = None
        self._facts = self._facts._replace(is_up=False, positions=DOWN)
        return how


class _Hosted(PythonStore):
    """The engine on real files, on a disk with the methods of ``SimDisk``."""

    def __init__(self, setup: Setup, root: Path, before: Facts) -> None:
        super().__init__(setup)
        self.disk = cast(SimDisk, CountedDisk(root, actions=before.actions))
        self.advance_clock(before.now_ms - self.now_ms())

    @property
    def facts(self) -> Facts:
        """The facts that go with every answer."""
        return Facts(
            self.is_up,
            self.now_ms(),
            self.disk_actions(),
            self.last_action(),
            self.positions(),
        )


def _serve(pipe: Connection, setup: Setup, root: Path, before: Facts) -> None:
    """The child's loop: answer requests until the parent ends it or is gone."""
    store = _Hosted(setup, root, before)

    def step_in(event: int) -> None:
        pipe.send(("event", event, store.facts))
        answer_until("go on")

    def answer_until(last: str) -> None:
        while True:
            try:
                request, arguments = pipe.recv()
            except EOFError:
                os._exit(0)
            if request == last:
                return
            pipe.send(("done", answer(request, *arguments), store.facts))

    def answer(request: str, *arguments: Any) -> object:
        if request == "verb":
            name, rest = arguments
            return store.run(lambda: getattr(store, name)(*rest))
        if request == "on_action":
            at_action, cut, event = arguments
            store.on_action(at_action, cut, lambda: step_in(event))
            return None
        return getattr(store, request)(*arguments)

    answer_until("end")
