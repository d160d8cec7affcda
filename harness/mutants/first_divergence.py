"""The first divergence of a failing store from the engine without the bug.

A failing program is run twice, on our engine as it is and on the store that fails, and
the calls and returns between the store's functions, and between them and their host,
are recorded. Up to some point both runs are equal. Programs that show one bug diverge
in the same way, whichever law notices it and however much later; so failures with the
same divergence are grouped. Calls, values and results are compared, never text.

If a store has several bugs, the divergence is where the first of them acts, whether or
not it violates the law. Where there is no engine without the bug, ``failure_signature``
groups failures.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator, Sequence, Sized
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from enum import Enum
from itertools import zip_longest
from types import CodeType, FrameType
from typing import NamedTuple, TypeAlias

from crashmq.harness.episodes.episode import Episode
from crashmq.harness.mutants.mutation import forget_results
from crashmq.models.laws.registry import LawUnknown, LawViolated
from crashmq.models.ops import Restart
from crashmq.models.program import Program

MOVES_MAX = 400_000
_DEPTH = 2  # of values in values that are compared
_STORE = "crashmq.engine."
_PLAIN = (int, float, str, bytes, type(None))
_COUNTED = (list, tuple, dict, set, frozenset, bytearray)

Values: TypeAlias = tuple[tuple[str, object], ...]


class Move(NamedTuple):
    """One call or return of a function of the store.

    ``values``: for a call, those of the parameters; for a return, the result and, of a
    method, the plain fields of its object.
    """

    said: str
    values: Values


def moves_of(
    program: Program, scenario: str, places: list[tuple[CodeType, int]] | None = None
) -> list[Move]:
    """The moves of a program until it violates a law; the caller plants the bug.

    Only the first ones if they are too many. If ``places`` is given, it receives the
    function and line of each move.
    """
    # What is known is not asked again.
    forget_results(("crashmq.engine", "crashmq.harness.subjects"))
    episode = Episode(scenario, program.setup, keep_trace=False)
    moves: list[Move] = []
    with _noting(moves, places):
        try:
            for op in program.ops:
                episode.step(op)
            if not episode.is_up:
                episode.step(Restart())
            episode.finish()
        except (LawViolated, LawUnknown):
            pass  # it is what the program is kept for
    episode.close()
    return moves


def first_divergence(ours: Sequence[Move], others: Sequence[Move]) -> str:
    """The first step in which two runs differ, as text; "" if there is none."""
    end = Move("nothing more", ())
    for one, other in zip_longest(ours, others, fillvalue=end):
        if one.said != other.said:
            return f"{one.said} | {other.said}"
        if one.values != other.values:
            return f"{one.said} | other {_differing(one.values, other.values)}"
    return ""


def _differing(ours: Values, others: Values) -> str:
    """The names whose values differ."""
    mine, theirs = dict(ours), dict(others)
    return ", ".join(n for n in mine | theirs if mine.get(n) != theirs.get(n))


@contextmanager
def _noting(
    moves: list[Move], places: list[tuple[CodeType, int]] | None = None
) -> Iterator[None]:
    def note(frame: FrameType, event: str, arg: object) -> None:
        if event in ("call", "return") and len(moves) < MOVES_MAX:
            known = len(moves)
            moves.extend(_moves_in(frame, arg, is_call=event == "call"))
            if places is not None and len(moves) > known:
                places.append(_place(frame, is_call=event == "call"))

    before, collects = sys.getprofile(), gc.isenabled()
    gc.disable()  # whoever listens to it would be called from within the store
    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(before)
        if collects:
            gc.enable()


def parting(
    ours: Sequence[Move],
    others: Sequence[Move],
    places: Sequence[tuple[CodeType, int]],
) -> tuple[CodeType, int] | None:
    """The function and line of the other run at its first divergence from ours.

    None if there is no divergence.
    """
    for number, (one, other) in enumerate(zip_longest(ours, others)):
        if one != other:
            return places[min(number, len(places) - 1)] if places else None
    return None


def _place(frame: FrameType, *, is_call: bool) -> tuple[CodeType, int]:
    """The function and line of a move.

    For a call those of the caller, if the caller is in the store.
    """
    if is_call and frame.f_back is not None and _is_store(frame.f_back):
        return frame.f_back.f_code, frame.f_back.f_lineno
    while not _is_store(frame) and frame.f_back is not None:
        frame = frame.f_back
    return frame.f_code, frame.f_lineno


def _moves_in(frame: FrameType, arg: object, *, is_call: bool) -> Iterator[Move]:
    """The moves that Python's profiler reports for a frame of the store."""
    is_store = _is_store(frame)
    if not is_store and not _is_store(frame.f_back):
        return
    asker, asked = _asker(frame.f_back), frame.f_code.co_qualname
    if is_call:
        yield Move(f"{asker} calls {asked}", _parameters(frame))
    elif not is_store:
        yield Move(f"{asked} answers {asker}", (("result", _plain(arg)),))
    else:
        state = _state_of(frame.f_locals.get("self"))
        yield Move(f"{asked} ends", (("result", _plain(arg)), *state))


def _is_store(frame: FrameType | None) -> bool:
    return frame is not None and str(frame.f_globals.get("__name__")).startswith(_STORE)


def _asker(frame: FrameType | None) -> str:
    """The name of the store's function that called a frame, or ``host``."""
    while frame is not None and not _is_store(frame):
        frame = frame.f_back
    return frame.f_code.co_qualname if frame else "the host"


def _parameters(frame: FrameType) -> Values:
    code, given = frame.f_code, frame.f_locals
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return tuple((name, _plain(given[name])) for name in names if name in given)


def _state_of(owner: object) -> Values:
    """The plain fields of an object, and the sizes of the others."""
    names = list(getattr(owner, "__dict__", ()))
    for cls in type(owner).__mro__:
        names += getattr(cls, "__slots__", ())
    state: list[tuple[str, object]] = []
    for name in names:
        match getattr(owner, name, None):
            case Enum() as value:
                state.append((name, value.name))
            case value if isinstance(value, _PLAIN):
                state.append((name, value))
            case Sized() as value if isinstance(value, _COUNTED):
                state.append((name, len(value)))
    return tuple(state)


def _plain(value: object, depth: int = _DEPTH) -> object:
    """The part of a value that equal runs share; of most objects their class."""
    match value:
        case Enum():
            return value.name
        case value if isinstance(value, _PLAIN):
            return value
        case bytearray() | memoryview():
            return bytes(value)
        case list() | tuple() if depth:
            return tuple(_plain(each, depth - 1) for each in value)
        case dict() if depth:
            each = value.items()
            return tuple((_plain(k, 0), _plain(v, depth - 1)) for k, v in each)
        case value if depth and is_dataclass(value) and not isinstance(value, type):
            inner = [getattr(value, field.name, None) for field in fields(value)]
            return tuple(_plain(each, depth - 1) for each in inner)
    return type(value).__qualname__
