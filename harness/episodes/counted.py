"""What a record says of an episode in numbers: ops, crashes, starts, probes."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field

from crashmq.engine.host.probe import recording
from crashmq.models.files.found_state import kind_of_state
from crashmq.models.files.store_image import StoreImage
from crashmq.models.observations import (
    Interleaved,
    Interrupted,
    InTurn,
    Observation,
    Refused,
    Started,
    status_of,
)
from crashmq.models.ops import Crash, DiskFault, Op, Restart, innermost
from crashmq.models.within import each_within
from crashmq.reports.records import CrashRecord, OpCount, ProbeHit, StateCount

_FILE_KINDS = ("commitlog", "consumequeue", "checkpoint", "abort", "lock")


@dataclass(slots=True)
class Counted:
    """The counts of an episode so far.

    Attributes:
        probes: hits by name.
        ops: by kind of op and status, how often it ran.
        crashes: each with the start that came after it.
        recoveries: how often the store was started.
        states: by the kind of state that a start found and what came of it, how often.
        latest: the latest op, be it of the program or of its end.
    """

    probes: Mapping[str, int]
    ops: dict[tuple[str, str], int] = field(default_factory=dict)
    crashes: list[CrashRecord] = field(default_factory=list)
    recoveries: int = 0
    states: dict[tuple[str, str], int] = field(default_factory=dict)
    latest: Op = field(default_factory=Restart)

    @classmethod
    def begun(cls, until: ExitStack) -> Counted:
        """Begin to count; probes are counted until the stack is closed."""
        return cls(until.enter_context(recording()))

    def saw_op(self, op: Op, seen: Observation) -> None:
        """Count an op of the program, and each that ran within it by itself."""
        for one, of in each_within(op, seen):
            if not isinstance(one, Crash | DiskFault):
                key = type(one).__name__, _came_to(of)
                self.ops[key] = self.ops.get(key, 0) + 1

    def saw_start(self, found: StoreImage, seen: Observation) -> None:
        """Count a start on these files, which came to ``seen``."""
        came_to = _recovery(seen)
        self.recoveries += 1
        state = kind_of_state(found), came_to
        self.states[state] = self.states.get(state, 0) + 1
        for crash in reversed(self.crashes):
            if crash.recovery != "none":
                break
            if came_to != "failed":
                crash.recovery = came_to

    def saw_crash(
        self, number: int, op: Op, actions: int, crash: Crash, action: str
    ) -> None:
        """Record the crash in the step of an op.

        Args:
            number: the step's.
            op: the step's.
            actions: how many disk actions it had done.
            crash: what came.
            action: the disk's last one.
        """
        verb, _, path = action.partition(":")
        survivors = crash.survivors.kind
        self.crashes.append(
            CrashRecord(
                step=number,
                op=name_of(op),
                kind=crash.kind,
                survivors=survivors if crash.kind == "power_loss" else "",
                disk_action=actions,
                action=verb if actions else "none",
                file_kind=_file_kind(path) if actions else "none",
                recovery="none",
            )
        )

    @property
    def probe_rows(self) -> list[ProbeHit]:
        """The probes as rows of a record."""
        return [ProbeHit(probe, hits) for probe, hits in self.probes.items()]

    @property
    def op_rows(self) -> list[OpCount]:
        """The ops as rows of a record."""
        return [OpCount(op, status, n) for (op, status), n in self.ops.items()]

    @property
    def state_rows(self) -> list[StateCount]:
        """The found states as rows of a record, sorted."""
        return [StateCount(*state, n) for state, n in sorted(self.states.items())]


def name_of(op: Op) -> str:
    """The kind of an op, or of the one that something happens during."""
    return type(innermost(op)).__name__


def _came_to(seen: Observation) -> str:
    """One word: of an op with others in it, what happened during it, or its kind."""
    if isinstance(seen, Interrupted):
        return _came_to(seen.event)
    is_of_several = isinstance(seen, Interleaved | InTurn)
    return type(seen).__name__ if is_of_several else status_of(seen)


def _recovery(seen: Observation) -> str:
    if isinstance(seen, Started):
        return "normal" if seen.last_exit_ok else "abnormal"
    return "refused" if isinstance(seen, Refused) else "failed"


def _file_kind(path: str) -> str:
    top = path.partition("/")[0]
    return top if top in _FILE_KINDS else "directory" if not top else "other"
