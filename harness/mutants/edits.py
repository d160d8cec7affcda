"""Edits: the text that a mutant changes, and how it is found.

An edit names a place (a module, and in it a function, a class, a constant, or nothing
for the whole module) and the text to replace there. The text is searched as it is; then
line by line with any indentation; then as text copied from the middle of a line on,
with the lines below at any margin; then as statements or an expression with the same
meaning in any layout. It must be found exactly once. ``harness.mutants.swaps`` brings
the new text into a running program.

The errors::

    MutantError
        MutantStale        the text to replace is not there exactly once
        MutantUnsupported  the place cannot be edited in memory
        MutantApplied      the function has a mutant's code already
"""

from __future__ import annotations

import ast
import difflib
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias


class MutantError(Exception):
    """A mutant cannot be applied; the message says which, where, and what to do."""


class MutantStale(MutantError):
    """The text to replace is not in its place exactly once."""


class MutantUnsupported(MutantError):
    """The edit changes something that cannot be changed in memory."""


class MutantApplied(MutantError):
    """A mutant is applied to the function already."""


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace one piece of a module's text.

    Attributes:
        module: by its import name, ``crashmq.engine.store.message_store``.
        function: ``name`` or ``Class.name`` in it: a function, a class, or a constant
            of either; "" for the whole module.
        before: text found exactly once there, as it reads with the place's first line
            moved to column 0; another layout or indentation is accepted where it does
            not change the meaning.
        after: the text that replaces it.
    """

    module: str
    function: str
    before: str
    after: str


_SHOWN_MAX = 500
_Span: TypeAlias = tuple[int, int]  # characters of a text, from and up to
_Found: TypeAlias = tuple[list[_Span], str]  # where, and what to put there


def edited(source: str, edit: Edit, where: str) -> str:
    """The module's text with one edit made.

    Args:
        source: the whole text of the module.
        edit: what to change in it.
        where: the mutant and the place, for messages.

    Raises:
        MutantStale: there is no such place, or the text is not there exactly once.
    """
    parts = _place(_tree(source, where).body, edit.function, where)
    start, end, indent = _extent(source, parts)
    text = _replaced(_dedented(source[start:end], indent), edit, where)
    return source[:start] + _indented(text, indent) + source[end:]


def text_of_place(source: str, place: str, where: str) -> str:
    """The text in which an edit of this place searches, from column 0 on.

    Raises:
        MutantStale: there is no such place.
    """
    parts = _place(_tree(source, where).body, place, where)
    start, end, indent = _extent(source, parts)
    return _dedented(source[start:end], indent)


def definitions(body: list[ast.stmt]) -> Iterator[tuple[str, ast.stmt]]:
    """The names a body binds, by ``def``, ``class`` or ``=``, each with its statement.

    Bodies of ``if``, ``try`` and ``with`` belong to what surrounds them.
    """
    for statement in body:
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield statement.name, statement
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name, statement
            case ast.Assign(targets=[ast.Name(id=name)]):
                yield name, statement
            case ast.If() | ast.Try():
                yield from definitions(statement.body)
                yield from definitions(statement.orelse)
            case ast.With():
                yield from definitions(statement.body)


@lru_cache(maxsize=8)
def tree_of(source: str) -> ast.Module:
    """The syntax tree of a text; cached, so do not change it."""
    return ast.parse(source)


def _tree(source: str, where: str) -> ast.Module:
    try:
        return tree_of(source)
    except SyntaxError as error:
        raise MutantUnsupported(
            f"{where}: the text edited so far is not Python: {error}."
        ) from None


def _place(body: list[ast.stmt], path: str, where: str) -> list[ast.stmt]:
    """The statements that bind the last name of a path; several for a property."""
    parts = body
    for name in path.split(".") if path else []:
        inside = getattr(parts[0], "body", []) if parts is not body else body
        bound = list(definitions(inside))
        parts = [statement for key, statement in bound if key == name]
        if not parts:
            names = list(dict.fromkeys(key for key, _ in bound))
            near = difflib.get_close_matches(name, names, n=1)
            meant = f" Did you mean {near[0]!r}?" if near else ""
            raise MutantStale(
                f"{where}: {name!r} is gone; it was renamed or moved.{meant}"
            )
    return parts if path else []


def _extent(source: str, parts: list[ast.stmt]) -> tuple[int, int, int]:
    """The start and end of the parts' text, in characters, and its indentation."""
    if not parts:
        return 0, len(source), 0
    lines = source.splitlines(keepends=True)
    first = min(_first_line(statement) for statement in parts)
    last = max(statement.end_lineno or statement.lineno for statement in parts)
    start, end = sum(map(len, lines[: first - 1])), sum(map(len, lines[:last]))
    return start, end, parts[0].col_offset


def _first_line(statement: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(each.lineno for each in decorators)])


def lines_of(node: ast.stmt, lines: list[str]) -> list[str]:
    """Those of a text's lines that a statement stands on, with its decorators."""
    return lines[_first_line(node) - 1 : node.end_lineno]


def _dedented(text: str, indent: int) -> str:
    margin = " " * indent
    lines = text.splitlines(keepends=True)
    return "".join(line.removeprefix(margin) for line in lines)


def _indented(text: str, indent: int) -> str:
    if not indent:
        return text
    margin = " " * indent
    lines = text.splitlines(keepends=True)
    return "".join(margin + line if line.strip() else line for line in lines)


def _replaced(text: str, edit: Edit, where: str) -> str:
    before = edit.before
    if not before.strip():
        raise MutantStale(
            f"{where}: `before` is empty; give the text that is to be replaced."
        )
    times = text.count(before)
    exact = text.replace(before, edit.after) if times == 1 else ""
    if exact and _compiles(exact):
        return exact
    spans, after = ([], "") if times > 1 else _lenient(text, edit)
    if len(spans) == 1:
        start, end = spans[0]
        return text[:start] + after + text[end:]
    if exact:
        return exact  # and what is wrong with it is told where it is compiled
    shown = before if len(before) <= _SHOWN_MAX else f"{before[:_SHOWN_MAX]}..."
    raise MutantStale(
        f"{where}: the text {shown!r} is there {times or len(spans)} times, not "
        f"once{_nearest(text, before)}. The function has changed: rewrite the edit."
    )


def _compiles(text: str) -> bool:
    """Whether it is Python; a ``return`` may stand outside a function."""
    try:
        compile(text, "<edited>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _lenient(text: str, edit: Edit) -> _Found:
    """What the first way of searching finds that finds anything."""
    ways: tuple[Callable[[str, Edit], _Found], ...] = (
        *(_lines, _moved),
        *(_statements, _expression),
    )
    for way in ways:
        spans, after = way(text, edit)
        if spans:
            return spans, after
    return [], ""


def _lines(text: str, edit: Edit) -> _Found:
    """Runs of lines that differ from ``before`` only in indentation and margins."""
    wanted = _plain_lines(edit.before)
    lines = text.splitlines(keepends=True)
    spans: list[_Span] = []
    indent = 0
    for first in range(len(lines) - len(wanted) + 1):
        run = lines[first : first + len(wanted)]
        if _plain_lines("".join(run)) == wanted and run[0].strip():
            start = sum(map(len, lines[:first]))
            spans.append((start, start + sum(map(len, run))))
            indent = _indent_of(run)
    return spans, _set_in(edit, indent)


def _moved(text: str, edit: Edit) -> _Found:
    """``before`` as copied from a file from the middle of a line on.

    Its first line has lost its margin; the others still have that of the class around
    them, which the place's text does not have.
    """
    if "\n" not in edit.before.strip("\n"):
        return [], ""
    before, after = edit.before.strip("\n"), edit.after.strip("\n")
    deepest = max(map(_margin, (*text.splitlines(), *before.splitlines())))
    spans: set[_Span] = set()
    put = ""
    for by in range(-deepest, deepest + 1):
        wanted = _below_moved(before, by)
        if wanted is not None and text.count(wanted) == 1:
            start = text.index(wanted)
            moved = _below_moved(after, by)
            spans.add((start, start + len(wanted)))
            put = after if moved is None else moved
    return sorted(spans), put


def _below_moved(text: str, by: int) -> str | None:
    """The text with the lines below its first moved left; None if one is too short."""
    first, *below = text.split("\n")
    if any(line.strip() and _margin(line) + by < 0 for line in below):
        return None
    moved = [" " * (_margin(line) + by) + line.lstrip(" ") for line in below]
    return "\n".join([first, *(line if line.strip() else "" for line in moved)])


def _margin(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _plain_lines(text: str) -> list[str]:
    bare = textwrap.dedent(text.strip("\n").rstrip())
    return [line.rstrip() for line in bare.splitlines()]


def _indent_of(lines: list[str]) -> int:
    return min(len(line) - len(line.lstrip()) for line in lines if line.strip())


def _set_in(edit: Edit, indent: int) -> str:
    """``after`` for the place of a ``before`` that is indented by ``indent``.

    If it is indented less than ``before``, or more, then so it is here: a statement
    may be moved out of a ``with``. One without any indentation was just not indented.
    """
    text = textwrap.dedent(edit.after.strip("\n")).rstrip() or "pass"
    margins = [_least_margin(one) for one in (edit.before, edit.after)]
    moved = indent + margins[1] - margins[0] if all(margins) else indent
    return _indented(text, max(moved, 0)) + "\n"


def _least_margin(text: str) -> int:
    return min((_margin(line) for line in text.splitlines() if line.strip()), default=0)


def _statements(text: str, edit: Edit) -> _Found:
    """Runs of statements with the same meaning as ``before``."""
    wanted = _parsed(textwrap.dedent(edit.before.strip("\n")))
    tree = _parsed(text)
    if not wanted or tree is None:
        return [], ""
    dumps = [ast.dump(statement) for statement in wanted]
    spans: list[_Span] = []
    indent = 0
    for body in _bodies(tree):
        for first in range(len(body) - len(dumps) + 1):
            run = body[first : first + len(dumps)]
            if [ast.dump(statement) for statement in run] == dumps:
                lines = text.splitlines(keepends=True)
                start = sum(map(len, lines[: _first_line(run[0]) - 1]))
                last = run[-1].end_lineno or run[-1].lineno
                spans.append((start, sum(map(len, lines[:last]))))
                indent = run[0].col_offset
    return spans, _set_in(edit, indent)


def _bodies(tree: list[ast.stmt]) -> Iterator[list[ast.stmt]]:
    yield tree
    for statement in tree:
        for node in ast.walk(statement):
            for name in ("body", "orelse", "finalbody"):
                inner = getattr(node, name, None)
                if isinstance(inner, list) and inner:
                    yield inner


def _expression(text: str, edit: Edit) -> _Found:
    """Expressions with the same meaning as ``before``."""
    wanted = _parsed(f"({edit.before.strip()}\n)")
    tree = _parsed(text)
    if not wanted or tree is None or not isinstance(wanted[0], ast.Expr):
        return [], ""
    dump = ast.dump(wanted[0].value)
    data = text.encode()
    starts = [0]
    for line in data.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    spans: list[_Span] = []
    for statement in tree:
        for node in ast.walk(statement):
            if isinstance(node, ast.expr) and ast.dump(node) == dump:
                begin = starts[node.lineno - 1] + node.col_offset
                end_line = node.end_lineno or node.lineno
                end = starts[end_line - 1] + (node.end_col_offset or 0)
                spans.append((len(data[:begin].decode()), len(data[:end].decode())))
    return spans, edit.after.strip()


def _parsed(text: str) -> list[ast.stmt] | None:
    try:
        return ast.parse(text).body
    # The last three: a zero byte, and what a stranger nested too deep.
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _nearest(text: str, before: str) -> str:
    """``; the nearest line is ...`` if a line resembles the first one wanted."""
    wanted = before.strip().splitlines()[0].strip()
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    near = difflib.get_close_matches(wanted, lines, n=1, cutoff=0.6)
    return f"; the nearest line is {near[0]!r}" if near and near[0] != wanted else ""
