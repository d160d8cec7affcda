"""Timeline: an episode as people read it, one line per step, the breach marked.

Reads a result and renders text of a given width, without colour; what a step or an
observation is called belongs to ``models``, colour to the command line.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

from crashmq.harness.episodes.episode import EpisodeResult, TracedStep
from crashmq.harness.episodes.marks import (
    BREACH_MARK,
    FAULT_MARK,
    PASSED_MARK,
    UNKNOWN_MARK,
)
from crashmq.harness.episodes.watched import StartSummary
from crashmq.models.describe import describe
from crashmq.models.files.message_delay_level import DEFAULT_TEXT
from crashmq.models.observations import (
    Observation,
    Positions,
    Ran,
    describe_observation,
)
from crashmq.models.ops import (
    Crash,
    Damage,
    DeleteManually,
    DiskFault,
    During,
    Event,
    PlantFile,
    PutMessage,
    Restart,
    Shutdown,
    parts,
)
from crashmq.models.printable import printable
from crashmq.models.program import Setup
from crashmq.models.verdict import Outcome

_INDENT = 7  # number, mark and the spaces around them
_OP_WIDTH_MAX = 46
_LINES_OF_ONE_OBSERVATION = 3
_LINES_OF_A_MESSAGE = 10
_STEPS_OF_THE_END = 3
_NO_NUMBER = "-"
_LEADING_ZEROS = re.compile(r"\b0{6,}(?=[0-9])")
_DOWN = Positions(-1, -1, -1, -1)
_EMPTY = Positions(0, 0, 0, 0)
_SHORT_NAMES = {
    "min_phy_offset": "min",
    "max_phy_offset": "max",
    "flushed_where": "flushed",
    "reput_from_offset": "reput",
    "committed_where": "committed",
}


@dataclass(frozen=True, slots=True)
class _Row:
    """One step, cut into the columns of the table."""

    number: str
    mark: str
    op: str
    event: str
    observation: str
    positions: str


def timeline(
    result: EpisodeResult,
    *,
    width: int = 100,
    replay: str = "",
    starts: Sequence[StartSummary] | None = None,
) -> str:
    """The episode as text: a head, a line a step, the breach, what to type next.

    Args:
        result: of ``run_program``, with its trace kept.
        width: columns to keep to; names of files may still be longer.
        replay: the command that replays it, for the last line; none if empty.
        starts: what each start did, told below its step; then the healed end is told
            with its puts and services, too.
    """
    assert width >= 40, width
    lines = list(_head(result, width))
    steps = result.record.steps
    told = _steps_to_show(result, steps, whole=starts is not None)
    rows = list(_rows([result.trace[index] for index in told], steps))
    op_width = max((len(row.op) for row in rows if not row.event), default=0)
    op_width = min(op_width, _OP_WIDTH_MAX, width // 2)
    for index, row in zip(told, rows, strict=True):
        lines += _render(row, op_width, width)
        for start in starts or ():
            if start.index == index:
                lines += _wrapped(printable(start.words), width, _INDENT + 2)
    lines += _verdict(result, width)
    if replay:
        lines.append(f"  replay  {printable(replay)}")
    return "\n".join(lines)


def _head(result: EpisodeResult, width: int) -> Iterator[str]:
    record = result.record
    scenario = printable(record.scenario) or "a program of no scenario"
    mutant = f", planted bug {printable(record.mutant)}" if record.mutant else ""
    steps = "1 step" if record.steps == 1 else f"{record.steps} steps"
    yield f"{result.outcome.name} {scenario}{mutant}, {steps}"
    setup = Setup(**json.loads(record.setup))
    told = (
        f"log files {setup.log_file_size} B, queue files {setup.queue_file_units} "
        f"units, {setup.flush_mode}, {setup.disk_profile}, digest {result.digest[:16]}"
    )
    if setup.message_delay_level != DEFAULT_TEXT:
        told += f", delay levels {printable(setup.message_delay_level)}"
    yield from _wrapped(told, width, 2)


def _steps_to_show(
    result: EpisodeResult, steps: int, *, whole: bool = False
) -> list[int]:
    """The steps to show: the program's, and those that led to a breach outside it.

    A breach may come in the first start (step -1). Or it comes at the end, when the
    store is healed and read back (steps from ``steps`` on): then the last few are
    shown, or with ``whole`` all that did something.
    """
    trace = result.trace
    if whole and (result.step >= steps or result.outcome is Outcome.PASSED):
        last = len(trace) - _STEPS_OF_THE_END
        return [
            index
            for index, step in enumerate(trace)
            if step.number < steps or index >= last or _does_something(step)
        ]
    if result.step == -1 and result.outcome is not Outcome.PASSED:
        return list(range(len(trace)))
    first = -1 if whole else 0
    told = [index for index, step in enumerate(trace) if first <= step.number < steps]
    if result.step >= steps:
        ending = [index for index, step in enumerate(trace) if step.number >= steps]
        told += ending[-_STEPS_OF_THE_END:]
    return told


def _does_something(step: TracedStep) -> bool:
    """Whether a step of the healed end moved anything; reading back does not."""
    if isinstance(step.observation, Ran):
        return bool(step.observation.work)
    return isinstance(step.op, PutMessage | Restart | Shutdown | DeleteManually)


def _rows(trace: list[TracedStep], steps: int) -> Iterator[_Row]:
    before = _EMPTY
    for step in trace:
        op, event = map(printable, _op_and_event(step.op))
        yield _Row(
            number=str(step.number) if 0 <= step.number < steps else _NO_NUMBER,
            mark=FAULT_MARK if _has_fault(step.op) else " ",
            op=op,
            event=event,
            observation=printable(_seen_of(step)),
            positions=_moved(before, step.positions) if step.number >= 0 else "",
        )
        if step.positions != _DOWN:
            before = step.positions


def _op_and_event(op: Event) -> tuple[str, str]:
    if not isinstance(op, During):
        return describe(op), ""
    return describe(op.op), f"at disk action {op.at_action}: {describe(op.event)}"


def _has_fault(op: Event) -> bool:
    if isinstance(op, Crash | DiskFault | Damage | PlantFile):
        return True
    return any(map(_has_fault, parts(op)))


def _seen_of(step: TracedStep) -> str:
    """What was observed of a step, and which held pulls were answered during it."""
    woken = [f"; {describe(op)}: {_seen(seen)}" for op, seen in step.woken]
    return _seen(step.observation) + "".join(woken)


def _seen(observation: Observation) -> str:
    return _LEADING_ZEROS.sub("…", describe_observation(observation))


def _moved(before: Positions, after: Positions) -> str:
    """The positions that differ from the last ones known while the store was up."""
    if after == _DOWN:
        return ""
    told, known = _shown_positions(after), _shown_positions(before)
    return " ".join(
        f"{_SHORT_NAMES[name]} {value}"
        for name, value in told.items()
        if value != known.get(name, known["max_phy_offset"])
    )


def _shown_positions(positions: Positions) -> dict[str, int]:
    """The positions without those that follow from others if all is committed."""
    named = {f.name: getattr(positions, f.name) for f in fields(Positions)}
    del named["confirm_offset"]  # it is the one of the others that the mode names
    del named["free_buffers"]
    if positions.committed_where in (-1, positions.max_phy_offset):
        del named["committed_where"]
    return named


def _render(row: _Row, op_width: int, width: int) -> Iterator[str]:
    asked = _wrapped(row.op, width, _INDENT)
    if row.event:
        asked += _wrapped(row.event, width, _INDENT)
    asked[0] = f"{row.number:>4} {row.mark} {asked[0][_INDENT:]}"
    *before, last = asked
    yield from before
    op = last.ljust(_INDENT + op_width)
    moved = f"  ({row.positions})" if row.positions else ""
    seen = f"-> {row.observation}{moved}"
    if len(op) + 2 + len(seen) <= width:
        yield f"{op}  {seen}"
        return
    yield last
    yield from _wrapped(seen, width, _INDENT + 2, _LINES_OF_ONE_OBSERVATION)


def _verdict(result: EpisodeResult, width: int) -> Iterator[str]:
    if result.outcome is Outcome.PASSED:
        yield f"     {PASSED_MARK} no law was broken"
        return
    at_end = result.step >= result.record.steps
    mark = BREACH_MARK if result.outcome is Outcome.VIOLATED else UNKNOWN_MARK
    first, *more = result.message.split("\n") if result.message else ["no message"]
    when = "at the end, healed and idle: " if at_end else ""
    yield from _marked(f"{when}{printable(first)}", mark, width)
    for line in more[:_LINES_OF_A_MESSAGE]:
        yield from _wrapped(printable(line.strip()), width, _INDENT + 2)
    if len(more) > _LINES_OF_A_MESSAGE:
        left = len(more) - _LINES_OF_A_MESSAGE
        yield " " * (_INDENT + 2) + f"and {left} more lines"


def _marked(text: str, mark: str, width: int) -> list[str]:
    lines = _wrapped(text, width, _INDENT)
    return [f"     {mark} {lines[0][_INDENT:]}", *lines[1:]]


def _wrapped(text: str, width: int, indent: int, lines_max: int = 100) -> list[str]:
    space = " " * indent
    lines = textwrap.wrap(
        text,
        width,
        initial_indent=space,
        subsequent_indent=space,
        break_on_hyphens=False,
        break_long_words=False,
        max_lines=lines_max,
        placeholder=" …",
    )
    return lines or [space]
