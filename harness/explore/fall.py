"""Fall: a crash at a moment, judged, before anything is said of what it left.

The judge of the history is asked about the op that did not end, once for a process
kill and once for a power loss. What it knows then is the same for every state that the
crash may leave.
"""

from __future__ import annotations

from typing import NamedTuple

from harness.explore.moment import Moment
from harness.explore.views import Views
from harness.judging.judge import Judge
from harness.subjects.python_store import DOWN
from models.invariants.registry import InvariantUnknown, InvariantViolated
from models.ops import Crash, CrashKind, During, Op
from models.plain_state import token


class Fall(NamedTuple):
    """A judged crash.

    Attributes:
        judge: what is known after it.
        ops: what was done until then; the last one is the crash, whatever it leaves.
        number: equal for falls after which the same will be said of the same files.
        breach: the law that the unended op broke already, if one.
    """

    kind: CrashKind
    judge: Judge
    ops: tuple[Op, ...]
    number: int
    breach: InvariantViolated | InvariantUnknown | None


def fall(moment: Moment, kind: CrashKind, views: Views) -> Fall:
    """Judge a crash at a moment, whatever it leaves."""
    crash = Crash(kind)
    report = moment.report.fork()
    report.crash = crash
    report.interrupted = True
    judge = moment.judge.fork(moment.subject, views.read)
    op = During(moment.op, moment.at_action, crash)
    breach: InvariantViolated | InvariantUnknown | None = None
    try:
        judge.judge(op, report, DOWN)
    except (InvariantViolated, InvariantUnknown) as error:
        breach = error
    known = (token(judge.state()), moment.clock, moment.life)
    return Fall(kind, judge, (*moment.before, op), views.number(known), breach)
