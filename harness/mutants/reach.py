"""Reach: which scenarios, and which of their programs, run each line of the engine.

A hunt that knows where a bug was planted tries first what runs that place
(``harness.mutants.aim``). The counts were made on the clean engine and come with the
harness, as ``reach.json``: for each line of each function how many of a scenario's
episodes run it, a few episodes that do, and the programs of the corpus that do; and how
much processor time an episode of each scenario takes. Lines are numbered from their
function's first one, without its docstring and comments, so that these may be reworded.
Of a function whose code was changed since, only its calls are known.
``crashmq corpus --reach`` counts again.

Source: coverage-guided fuzzing towards a place, as Bohme et al., Directed Greybox
Fuzzing, CCS 2017.
"""

from __future__ import annotations

import ast
import hashlib
import json
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple, TypeAlias

from crashmq import engine
from crashmq.harness.episodes.episode import run_program
from crashmq.harness.mutants.corpus import PACKAGED as CORPUS
from crashmq.harness.mutants.corpus import packaged as packaged_corpus
from crashmq.harness.mutants.edits import definitions
from crashmq.harness.mutants.traced import traced
from crashmq.harness.searches.aiming import perhaps_aimed
from crashmq.harness.searches.supervised import supervised
from crashmq.models.program import Program
from crashmq.scenarios.catalogue.scenarios import SCENARIOS
from crashmq.scenarios.programs.workload import program_for

PACKAGED = Path(__file__).with_name("reach.json")
SEED = 7_001  # of the counted episodes
EPISODES = 60  # of each scenario
EXAMPLES = 8  # episodes kept of those that run a line
ENTRIES = 24  # programs of the corpus, the same
RARE = 0.05  # of all episodes: of what more run, no example is needed
TIMEOUT_S = 120.0  # of one traced program
_ENGINE = Path(engine.__file__).parent
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_NEVER = -1

LineSet: TypeAlias = frozenset[tuple[str, int]]  # file and line


@dataclass(frozen=True, slots=True)
class Runs:
    """What runs a line.

    Attributes:
        counts: for each scenario that runs it, how many of ``Reach.episodes`` do.
        examples: numbers of a few episodes that run it, for ``program_of``; only if the
            line is rarely run.
        entries: indexes of a few programs of the corpus that run it.
    """

    counts: Mapping[str, int]
    examples: tuple[int, ...] = ()
    entries: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class FunctionLines:
    """The lines of one function, grouped into runs of lines that the same programs run.

    ``starts`` has the first line of each run, numbered as in ``FunctionCode``;
    ``kinds`` has the number of its ``Runs``, -1 if nothing runs it.
    """

    text_hash: str
    starts: tuple[int, ...]
    kinds: tuple[int, ...]


@dataclass(slots=True)
class Reach:
    """All counts; functions by module and name, as edits name them.

    Attributes:
        costs_ms: by scenario, the processor time that one episode took on the machine
            that counted; only their ratios mean anything.
    """

    episodes: int
    corpus_hash: str
    runs: list[Runs] = field(default_factory=list)
    functions: dict[str, dict[str, FunctionLines]] = field(default_factory=dict)
    costs_ms: dict[str, float] = field(default_factory=dict)

    def of_line(self, function: FunctionLines, number: int) -> Runs | None:
        """What runs a line; None if no counted program does."""
        at = bisect_right(function.starts, number) - 1
        kind = function.kinds[at] if at >= 0 else _NEVER
        return None if kind == _NEVER else self.runs[kind]

    def of_calls(self, function: FunctionLines) -> Runs | None:
        """What calls a function; None if no counted program does."""
        return self.of_line(function, 0)

    def of_ways(self, function: FunctionLines) -> list[Runs]:
        """What runs each of a function's runs of lines, each kind of runs once."""
        return [self.runs[kind] for kind in sorted({*function.kinds} - {_NEVER})]


def program_of(number: int) -> tuple[str, Program]:
    """The scenario and program of a counted episode."""
    names = tuple(SCENARIOS)
    name = names[number % len(names)]
    return name, perhaps_aimed(program_for(SCENARIOS[name], SEED, number), SEED, number)


def text_hash(text: str) -> str:
    """A short hash, to tell whether a text is the one that was counted."""
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


class FunctionCode(NamedTuple):
    """The code of a function: its lines without docstring, comments and blank lines.

    Attributes:
        name: as edits name it.
        span: all lines of the module that it takes.
        text_hash: of its code.
        numbers: for each line of the module that is code, its number in the function.
    """

    name: str
    span: range
    text_hash: str
    numbers: Mapping[int, int]


def functions_of(source: str) -> Iterator[FunctionCode]:
    """The functions of a module."""
    lines = source.splitlines(keepends=True)
    for name, node in _functions(ast.parse(source).body, ""):
        first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
        span = range(first, (node.end_lineno or first) + 1)
        said = _docstring_of(node)
        code = [
            line for line in span if line not in said and not _is_blank(lines[line - 1])
        ]
        hashed = text_hash("".join([lines[line - 1] for line in code]))
        yield FunctionCode(name, span, hashed, {n: at for at, n in enumerate(code)})


def _docstring_of(node: ast.FunctionDef) -> range:
    """The lines of a function's docstring; empty if the function has nothing else."""
    if ast.get_docstring(node, clean=False) is None or len(node.body) == 1:
        return range(0)
    said = node.body[0]
    return range(said.lineno, (said.end_lineno or said.lineno) + 1)


def _is_blank(line: str) -> bool:
    return not (text := line.strip()) or text.startswith("#")


def _functions(
    body: list[ast.stmt], path: str
) -> Iterator[tuple[str, ast.FunctionDef]]:
    for name, statement in definitions(body):
        match statement:
            case ast.ClassDef(body=inner):
                yield from _functions(inner, f"{path}{name}.")
            case ast.FunctionDef():
                yield path + name, statement


@cache
def packaged() -> Reach:
    """The counts that come with the harness; empty if the file is missing."""
    return read(PACKAGED.read_text("utf-8")) if PACKAGED.exists() else Reach(0, "")


def corpus_hash() -> str:
    """A hash of the corpus, to tell whether its programs are those counted."""
    return text_hash(CORPUS.read_text("utf-8"))


def gather(
    episodes: int = EPISODES, told: Callable[[int, int], None] = lambda _, __: None
) -> Reach:
    """Run the scenarios and the corpus on the clean engine and count lines.

    Args:
        episodes: of each scenario.
        told: called with how many programs were run, and how many there are.
    """
    total = episodes * len(SCENARIOS)
    entries = packaged_corpus()
    by_line: dict[tuple[str, int], tuple[list[int], list[int]]] = {}
    rows = supervised(partial(_lines_of, total), range(total + len(entries)), TIMEOUT_S)
    names = tuple(SCENARIOS)
    reach = Reach(episodes, corpus_hash())
    for number, row in enumerate(rows):
        if isinstance(row, _Met):
            for line in row.lines:
                seen, kept = by_line.setdefault(line, ([], []))
                (seen if number < total else kept).append(number)
            if number < total:
                name = names[number % len(names)]
                cost_ms = row.cpu_s * 1000 / episodes
                reach.costs_ms[name] = reach.costs_ms.get(name, 0.0) + cost_ms
        told(number + 1, total + len(entries))
    known: dict[str, int] = {}
    kinds: dict[tuple[str, int], int] = {}
    for line in sorted(by_line):
        seen, kept = by_line[line]
        runs = _runs(names, total, seen, [number - total for number in kept])
        kind = known.setdefault(repr(runs), len(reach.runs))
        if kind == len(reach.runs):
            reach.runs.append(runs)
        kinds[line] = kind
    _name_functions(reach, kinds)
    return reach


def _runs(
    names: Sequence[str], total: int, seen: Sequence[int], entries: Sequence[int]
) -> Runs:
    counts: dict[str, int] = {}
    for number in seen:
        name = names[number % len(names)]
        counts[name] = counts.get(name, 0) + 1
    is_rare = len(seen) <= RARE * total or len(entries) < EXAMPLES
    examples = _spread(seen, EXAMPLES) if is_rare else ()
    return Runs(counts, examples, _spread(entries, ENTRIES))


def _spread(numbers: Sequence[int], most: int) -> tuple[int, ...]:
    """At most ``most`` of the numbers, evenly spread."""
    apart = max(1, -(-len(numbers) // most))
    return tuple(numbers[::apart])


class _Met(NamedTuple):
    """The lines that a program runs, and the processor time it takes untraced."""

    lines: LineSet
    cpu_s: float


def _lines_of(total: int, number: int) -> _Met:
    if number < total:
        scenario, program = program_of(number)
    else:
        entry = packaged_corpus()[number - total]
        scenario, program = entry.scenario, entry.program
    met: set[tuple[str, int]] = set()
    with traced(met):
        run_program(program, scenario, keep_trace=False)
    began = time.process_time()
    run_program(program, scenario, keep_trace=False)
    return _Met(frozenset(met), time.process_time() - began)


def _name_functions(reach: Reach, kinds: Mapping[tuple[str, int], int]) -> None:
    """Group the counted lines by the functions that they are in."""
    for path in sorted(_ENGINE.rglob("*.py")):
        source = path.read_text("utf-8")
        can_run = _lines_in(compile(source, str(path), "exec", dont_inherit=True))
        parts = path.relative_to(_ENGINE).with_suffix("").parts
        module = reach.functions.setdefault(".".join(("crashmq.engine", *parts)), {})
        for function in functions_of(source):
            starts: list[int] = []
            of_runs: list[int] = []
            for line, number in function.numbers.items():
                kind = kinds.get((str(path), line), _NEVER)
                is_known = number == 0 or line in can_run
                if is_known and (not of_runs or of_runs[-1] != kind):
                    starts.append(number)
                    of_runs.append(kind)
            module[function.name] = FunctionLines(
                function.text_hash, tuple(starts), tuple(of_runs)
            )


def _lines_in(code: CodeType) -> set[int]:
    lines = {line for _, _, line in code.co_lines() if line is not None}
    for each in code.co_consts:
        if isinstance(each, CodeType):
            lines |= _lines_in(each)
    return lines


def written(reach: Reach) -> str:
    """The counts as the text of their file: a line per function or ``Runs``."""
    names = sorted({name for runs in reach.runs for name in runs.counts})
    rows: list[Any] = [
        {
            "episodes": reach.episodes,
            "corpus": reach.corpus_hash,
            "scenarios": names,
            "costs_ms": [round(reach.costs_ms[name]) for name in names],
        }
    ]
    for runs in reach.runs:
        counts = "".join(_DIGITS[runs.counts.get(name, 0)] for name in names)
        rows.append([counts, list(runs.examples), list(runs.entries)])
    for module, functions in reach.functions.items():
        for name, lines in functions.items():
            rows.append(
                [
                    module,
                    name,
                    lines.text_hash,
                    [*zip(lines.starts, lines.kinds, strict=True)],
                ]
            )
    return "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)


def is_written(path: Path) -> bool:
    """Whether ``written`` wrote this file."""
    try:
        read(path.read_text("utf-8"))
    except (OSError, ValueError, LookupError, TypeError):
        return False
    return True


def read(text: str) -> Reach:
    """Parse what ``written`` wrote."""
    head, *rows = map(json.loads, text.splitlines())
    reach = Reach(head["episodes"], head["corpus"])
    reach.costs_ms = dict(zip(head["scenarios"], head["costs_ms"], strict=True))
    for row in rows:
        match row:
            case [counts, list() as examples, list() as entries]:
                by_name = {
                    name: _DIGITS.index(digit)
                    for name, digit in zip(head["scenarios"], counts, strict=True)
                    if digit != "0"
                }
                reach.runs.append(Runs(by_name, tuple(examples), tuple(entries)))
            case [module, name, hashed, pairs]:
                starts, kinds = zip(*pairs, strict=True) if pairs else ((), ())
                lines = FunctionLines(hashed, tuple(starts), tuple(kinds))
                reach.functions.setdefault(module, {})[name] = lines
    return reach
