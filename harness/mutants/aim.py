"""Aim: what a hunt tries first, given where its bug was planted.

A bug shows only if its text runs, and often only in unusual cases: a read that fails, a
damaged file. So of four seeded programs three are of scenarios that run its function.
Half of these turns go to the scenarios that run the changed lines, in proportion to how
often they do. The other half is divided equally among the paths through the function,
however few programs take one of them. A scenario whose episodes cost twice the time
gets half the turns. Of four neighbours three are those of programs that run the changed
lines. The fourth is any, since a bug may show through other lines, and the counts are
of some programs only. Nothing else about the mutant is used: not what it does, and not
which law it violates.

For a changed constant the lines that name it count. If no counted program runs the
lines, those that call their function count; then those that call its class, and its
module.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeAlias

from crashmq import engine
from crashmq.harness.mutants.corpus import Entry, neighbour
from crashmq.harness.mutants.corpus import packaged as packaged_corpus
from crashmq.harness.mutants.edits import Edit, MutantError, edited
from crashmq.harness.mutants.mutation import Mutant
from crashmq.harness.mutants.reach import (
    FunctionCode,
    FunctionLines,
    Reach,
    Runs,
    corpus_hash,
    functions_of,
    packaged,
    program_of,
)
from crashmq.models.program import Program

ANY_OF = 4  # of so many turns with an aim one is as without
TURNS = 120  # of scenarios, after which they come again
_ENGINE = Path(engine.__file__).parent
_PREFIX = "crashmq.engine"

_Place: TypeAlias = tuple[FunctionLines, FunctionCode, list[int]]
"""A function as it was counted and as it stands, and the lines in question."""


@dataclass(frozen=True, slots=True)
class Aim:
    """What runs a mutant's lines.

    Attributes:
        scenarios: scenarios in turn, each as often as it runs the lines; () for the
            usual turns.
        entries: programs whose neighbours are tried; () for those of the corpus.
        is_in_code: whether all edits are in functions, so that calls of them are seen.
    """

    scenarios: tuple[str, ...] = ()
    entries: tuple[Entry, ...] = ()
    is_in_code: bool = False


NO_AIM = Aim()


def aim_of(mutant: Mutant, shares: Mapping[str, int]) -> Aim:
    """What runs a mutant's lines; ``NO_AIM`` if nothing is known of them.

    Args:
        mutant: only where its edits are counts.
        shares: how many turns each scenario has without an aim; 1 by default.
    """
    reach = packaged()
    placed = [(edit, _places_of(reach, edit)) for edit in mutant.edits]
    found = [runs for edit, its in placed for runs in _runs_of(reach, edit, its)]
    if not found:
        return NO_AIM
    functions = [lines for _, its in placed for lines, _, _ in its]
    ways = [runs for lines in functions for runs in reach.of_ways(lines)]
    weights: dict[str, float] = {}
    for half in (found, ways):
        for runs in half:
            for name, part in _turns_of(reach, runs, shares).items():
                weights[name] = weights.get(name, 0.0) + part / len(half)
    is_in_code = all(
        edit.function in reach.functions.get(edit.module, {}) for edit in mutant.edits
    )
    return Aim(in_turn(weights, TURNS), _entries(reach, found), is_in_code)


def _turns_of(
    reach: Reach, runs: Runs, shares: Mapping[str, int]
) -> Mapping[str, float]:
    """The part of the turns that each scenario has which runs a line; together 1.

    It is the larger, the more of its episodes run the line and the less they cost.
    """
    weights = {
        name: count * shares.get(name, 1) / max(1.0, reach.costs_ms[name])
        for name, count in runs.counts.items()
    }
    total = sum(weights.values())
    return {name: weight / total for name, weight in weights.items()}


def neighbour_by(aim: Aim, seed: int, number: int) -> tuple[str, Program]:
    """A variation of a program that runs the changed lines; each fourth time of any."""
    is_any = not aim.entries or number % ANY_OF == ANY_OF - 1
    return neighbour(packaged_corpus() if is_any else aim.entries, seed, number)


def in_turn(weights: Mapping[str, float], turns: int) -> tuple[str, ...]:
    """``turns`` names, each as often as its weight says, spread evenly."""
    total = sum(weights.values())
    credit = dict.fromkeys(weights, 0.0)
    found: list[str] = []
    for _ in range(turns if total else 0):
        for name, weight in weights.items():
            credit[name] += weight / total
        best = max(credit, key=lambda name: (credit[name], name))
        credit[best] -= 1.0
        found.append(best)
    return tuple(found)


def _entries(reach: Reach, found: Iterable[Runs]) -> tuple[Entry, ...]:
    """The programs that run the lines, those of the corpus first."""
    kept: dict[int, Entry] = {}
    examples: dict[int, Entry] = {}
    corpus = packaged_corpus() if reach.corpus_hash == corpus_hash() else ()
    for runs in found:
        for number in runs.entries if corpus else ():
            kept[number] = corpus[number]
        for number in runs.examples:
            examples[number] = Entry(*program_of(number))
    return (*kept.values(), *examples.values())


def _runs_of(reach: Reach, edit: Edit, places: list[_Place]) -> list[Runs]:
    """What runs the lines that an edit changes, or else comes nearest to them."""
    if edit.module not in reach.functions:
        return []
    found = [runs for place in places if (runs := _of_place(reach, *place))]
    return found or _around(reach, edit)


def _of_place(
    reach: Reach, lines: FunctionLines, function: FunctionCode, changed: list[int]
) -> Runs | None:
    """What runs the rarest of the changed lines; else what calls the function."""
    if lines.text_hash == function.text_hash:
        numbers = [function.numbers[one] for one in changed if one in function.numbers]
        runs = [one for at in numbers if (one := reach.of_line(lines, at))]
        if runs:
            return min(runs, key=lambda one: sum(one.counts.values()))
    return reach.of_calls(lines)


def _around(reach: Reach, edit: Edit) -> list[Runs]:
    """The calls of the class, else those of the module."""
    functions = reach.functions[edit.module]
    path = edit.function
    while path:
        path = path.rpartition(".")[0]
        inside = [
            runs
            for name, lines in functions.items()
            if name.startswith(f"{path}." if path else "")
            and (runs := reach.of_calls(lines))
        ]
        if inside:
            return inside
    return []


def _places_of(reach: Reach, edit: Edit) -> list[_Place]:
    """The places of an edit; none where nothing was counted, or it cannot be planted.

    What cannot be planted is told by whoever plants it.
    """
    try:
        return list(_places(reach, edit)) if edit.module in reach.functions else []
    except (MutantError, OSError, SyntaxError):
        return []


def _places(reach: Reach, edit: Edit) -> Iterator[_Place]:
    """The functions whose lines an edit changes, or that name what it changes."""
    source = _source(edit.module)
    changed = _changed_lines(source, edited(source, edit, edit.module))
    functions = reach.functions[edit.module]
    is_inside = False
    for function in functions_of(source):
        inside = [line for line in changed if line in function.span]
        if inside and function.name in functions:
            is_inside = True
            yield functions[function.name], function, inside
    if not is_inside and edit.function:
        yield from _naming(reach, edit.function.rpartition(".")[2])


def _naming(reach: Reach, word: str) -> Iterator[_Place]:
    """The lines of the whole engine that name a constant or a field."""
    for module, functions in reach.functions.items():
        for function, words in _words_of(module):
            lines = [line for said, line in words if said == word]
            if lines and function.name in functions:
                yield functions[function.name], function, lines


@cache
def _words_of(
    module: str,
) -> tuple[tuple[FunctionCode, tuple[tuple[str, int], ...]], ...]:
    """Each function of a module, and the names in it with the lines that have them."""
    source = _source(module)
    words = [
        (node.id if isinstance(node, ast.Name) else node.attr, node.lineno)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Name | ast.Attribute)
    ]
    return tuple(
        (function, tuple([one for one in words if one[1] in function.span]))
        for function in functions_of(source)
    )


@cache
def _source(module: str) -> str:
    parts = module.removeprefix(_PREFIX).strip(".").split(".")
    path = _ENGINE.joinpath(*parts)
    return path.with_suffix(".py").read_text("utf-8")


def _changed_lines(before: str, after: str) -> list[int]:
    """The numbers of the lines of ``before`` that ``after`` does not have, from 1.

    Where text was inserted, the lines before it and after it.
    """
    matcher = difflib.SequenceMatcher(
        None, before.splitlines(), after.splitlines(), autojunk=False
    )
    return [
        line
        for tag, first, last, *_ in matcher.get_opcodes()
        if tag != "equal"
        for line in (range(first + 1, last + 1) or (max(1, first), first + 1))
    ]
