"""Where to look: the place in the store's code to which a failure points.

With a planted bug the run is compared with one of the engine without it, and the place
is where they diverge. Without one it is the functions that ran in the step of the
breach and in hardly any other: there the store did something that it seldom does.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType

from crashmq.harness.episodes.episode import Episode
from crashmq.models.laws.registry import LawUnknown, LawViolated
from crashmq.models.program import Program

FUNCTIONS_TOLD = 6
_STORE = "crashmq.engine."
_EDITED = re.compile(r"<mutant \S+ of crashmq\.([\w.]+)>")


def rare_functions(program: Program, scenario: str, until: int) -> list[str]:
    """The store's functions that the breaching step called and few other steps did.

    Returned as text; the functions called in the fewest steps come first, among equals
    the one called last.

    Args:
        program: of a failure on our engine as it is.
        scenario: its name.
        until: the step of the breach; the number of ops if it is the end.
    """
    steps: Counter[CodeType] = Counter()
    last: dict[CodeType, int] = {}
    episode = Episode(scenario, program.setup, keep_trace=False)
    try:
        for op in program.ops[: until + 1]:
            last = {}
            try:
                with _noting(last):
                    episode.step(op)
            finally:
                steps.update(last.keys())
        if until >= len(program.ops):
            last = {}
            try:
                with _noting(last):
                    episode.finish()
            finally:
                steps.update(last.keys())
    except (LawViolated, LawUnknown):
        pass  # it is what is asked about
    finally:
        episode.close()
    ordered = sorted(last, key=lambda code: (steps[code], -last[code]))
    return [place_of(code) for code in ordered[:FUNCTIONS_TOLD]]


def place_of(code: CodeType, line: int = 0) -> str:
    """A function of the store with its file and line."""
    return f"{code.co_qualname} ({_file_of(code)}:{line or code.co_firstlineno})"


def _file_of(code: CodeType) -> str:
    """The path of a function's file in a checkout, also if a bug is planted in it."""
    edited = _EDITED.fullmatch(code.co_filename)
    if edited:
        return f"{edited[1].replace('.', '/')}.py"
    parts = Path(code.co_filename).parts
    if "engine" not in parts:
        return parts[-1]
    return "/".join(parts[len(parts) - parts[::-1].index("engine") - 1 :])


@contextmanager
def _noting(calls: dict[CodeType, int]) -> Iterator[None]:
    """Record each function of the store that is called, and when it was last."""

    def note(frame: FrameType, event: str, arg: object) -> None:  # noqa: ARG001
        if event == "call" and str(frame.f_globals.get("__name__")).startswith(_STORE):
            calls[frame.f_code] = len(calls)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(before)
