"""Mutation: plants a bug by small edits of the engine's text, made in memory.

The tested code is the shipped code: an edit is made in memory, in modules that are
imported already, so that every importer runs the mutant and no file changes. A mutant
reads as a diff, and is refused once its text is gone. ``harness.mutants.edits`` finds
the text, ``harness.mutants.swaps`` brings the new text into the running program; this
module says what a mutant is, and plants it for the time of a context.
"""

from __future__ import annotations

import ast
import difflib
import importlib
import inspect
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from types import ModuleType

from crashmq.harness.mutants.codes import plan_codes
from crashmq.harness.mutants.dead_code import runs_alike
from crashmq.harness.mutants.dependents import plan_dependents
from crashmq.harness.mutants.edits import (
    Edit,
    MutantApplied,
    MutantError,
    MutantStale,
    MutantUnsupported,
    edited,
    tree_of,
)
from crashmq.harness.mutants.module_names import room_of
from crashmq.harness.mutants.swaps import Planner, Swaps
from crashmq.models.program import Program, Setup

__all__ = [
    "Edit",
    "Mutant",
    "MutantApplied",
    "MutantError",
    "MutantStale",
    "MutantUnsupported",
    "applied",
    "diff_of",
]

NO_TRIGGER = Program(Setup(), ())
_PLANTING = "crashmq.harness.mutants"


@dataclass(frozen=True, slots=True)
class Mutant:
    """One planted bug.

    Attributes:
        id: of the bug catalogue, ``R02``; never reused.
        title: a slug.
        killed_by: ids of laws; one of them must flag it.
        edits: what differs from the shipped engine.
        source: where the real bug was reported.
        trigger: a program that is red with the mutant and green without; no ops if none
            is known.
        as_shipped: whether RocketMQ still behaves so.
        component: the part of the store, the broker or the consumer that it is in.
        difficulty: 1 (any restart shows it) to 5 (several rare things together); 0 if
            nobody has judged it.
        needs: what must happen for it to show, in the catalogue's words.
    """

    id: str
    title: str
    killed_by: tuple[str, ...]
    edits: tuple[Edit, ...]
    source: str = ""
    trigger: Program = NO_TRIGGER
    as_shipped: bool = False
    component: str = ""
    difficulty: int = 0
    needs: str = ""


def diff_of(mutant: Mutant) -> str:
    """A diff of the text of all modules that the mutant changes.

    Raises:
        MutantStale: the text an edit replaces is not there exactly once.
        MutantUnsupported: a module has no text, or an edit changes nothing that runs.
    """
    diffs: list[str] = []
    for name in dict.fromkeys(edit.module for edit in mutant.edits):
        edits = [edit for edit in mutant.edits if edit.module == name]
        wheres = [_where(mutant.id, edit) for edit in edits]
        shipped = _text_of(_imported(name, wheres[0]), wheres[0])
        text = _edited_text(shipped, edits, wheres)
        # As the repository has it, so that the diff can be applied there.
        path = f"{name.removeprefix('crashmq.').replace('.', '/')}.py"
        diffs += difflib.unified_diff(
            shipped.splitlines(),
            text.splitlines(),
            path,
            f"{path} with {mutant.id}",
            lineterm="",
        )
    return "\n".join(diffs)


@contextmanager
def applied(mutant: Mutant) -> Iterator[None]:
    """Run the engine with a mutant planted while the context lasts.

    Either every edit is made or none is; on exit each function has its own code object
    back, and each constant its value. Mutants of different functions nest.

    Raises:
        MutantStale: an edit's text is gone, or is there more than once.
        MutantUnsupported: an edit changes what cannot be changed in memory.
        MutantApplied: a function has a mutant's code already.
    """
    swaps = _planned(mutant)
    swaps.do()
    if swaps.binds:
        _caches.cache_clear()
    packages = _packages(mutant)
    forget_results(packages)
    try:
        yield
    finally:
        forget_results(packages)
        swaps.undo()
        if swaps.binds:
            _caches.cache_clear()


def _planned(mutant: Mutant) -> Swaps:
    """The swaps that plant the mutant; nothing is changed yet."""
    if not mutant.edits:
        raise MutantUnsupported(f"mutant {mutant.id} has no edits; give it one.")
    swaps = Swaps(mutant.id)
    for name in dict.fromkeys(edit.module for edit in mutant.edits):
        edits = [edit for edit in mutant.edits if edit.module == name]
        _plan_module(swaps, mutant.id, edits)
    plan_dependents(swaps, _packages(mutant), f"mutant {mutant.id}")
    return swaps


def _plan_module(swaps: Swaps, mutant_id: str, edits: list[Edit]) -> None:
    """Plan all edits of one module."""
    wheres = [_where(mutant_id, edit) for edit in edits]
    module = _imported(edits[0].module, wheres[0])
    shipped = _text_of(module, wheres[0])
    text = _edited_text(shipped, edits, wheres)
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        what = str(error) or "it is nested too deep"
        raise MutantUnsupported(
            f"{wheres[-1]}: the edited text is not Python: {what}."
        ) from None
    planner = Planner(swaps, module, wheres[0])
    planner.read(tree_of(shipped), tree, shipped, text)
    plan_codes(planner, shipped, tree)


def _edited_text(shipped: str, edits: list[Edit], wheres: list[str]) -> str:
    """The module's text with all edits made, each of which changes what it does."""
    text = shipped
    for edit, where in zip(edits, wheres, strict=True):
        before, text = text, edited(text, edit, where)
        if runs_alike(before, text):
            raise MutantUnsupported(
                f"{where}: the edit changes nothing that runs: either `after` does "
                f"what `before` did, or nothing leads to where it lands, as behind a "
                f"`return`. Put it where it is reached."
            )
    return text


def _where(mutant_id: str, edit: Edit) -> str:
    inside = f".{edit.function}" if edit.function else ""
    return f"mutant {mutant_id}, {edit.module}{inside}"


def _imported(name: str, where: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise MutantStale(
            f"{where}: {error}; the module was renamed, or the name is misspelt."
        ) from None


def _text_of(module: ModuleType, where: str) -> str:
    try:
        return inspect.getsource(module)
    except (OSError, TypeError):
        raise MutantUnsupported(
            f"{where}: the module has no text here; edit a module written in Python."
        ) from None


def _packages(mutant: Mutant) -> set[str]:
    edited = [edit.module for edit in mutant.edits]
    own = {_PLANTING} if any(_is_in(name, _PLANTING) for name in edited) else ()
    return {"crashmq.engine", *map(room_of, edited), *own}


def _is_in(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def forget_results(packages: Collection[str]) -> None:
    """Empty the caches of ``packages``, which other code may have filled."""
    for forget in _caches(frozenset(packages), len(sys.modules)):
        forget()


@lru_cache(maxsize=8)
def _caches(packages: frozenset[str], modules: int) -> list[Callable[[], object]]:
    """Functions that empty the caches of the packages; found once per ``modules``.

    Searching takes as long as a short episode, and each program with switch points at
    lines needs them. ``modules`` is how many are imported; planting a mutant may add
    caches. What the planting itself remembers is left, unless it is named.
    """
    del modules
    found: list[Callable[[], object]] = []
    for name in sorted(sys.modules):
        if _is_in(name, _PLANTING) and _PLANTING not in packages:
            continue
        if any(_is_in(name, top) for top in packages):
            for member in list(vars(sys.modules[name]).values()):
                inner = list(vars(member).values()) if isinstance(member, type) else []
                for each in (member, *inner):
                    forget = getattr(each, "cache_clear", None)
                    if callable(forget):
                        found.append(forget)
    return found
