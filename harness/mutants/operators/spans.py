"""Spans: pieces of a place's text by their syntax, and which of them have no effect.

Offsets count bytes, as the syntax tree does; where it matters the text is ASCII.
"""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from typing import TypeAlias

Span: TypeAlias = tuple[int, int]  # bytes of a text, from and up to


@dataclass(frozen=True, slots=True)
class Change:
    """One way to change a place: what is changed, and a function for the new text."""

    operator: str
    span: Span
    make: Callable[[], str]


@dataclass(slots=True)
class Text:
    """The text of a place, its tree, and where each line begins."""

    text: str
    tree: ast.Module = field(init=False)
    data: bytes = field(init=False)
    starts: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.tree = ast.parse(self.text)
        self.data = self.text.encode()
        lines = self.data.splitlines(keepends=True)
        self.starts = [0, *accumulate(map(len, lines))]

    def span(self, node: ast.stmt | ast.expr | ast.ExceptHandler) -> Span:
        """Where a node lies."""
        assert node.end_lineno is not None, node
        assert node.end_col_offset is not None, node
        return (
            self.starts[node.lineno - 1] + node.col_offset,
            self.starts[node.end_lineno - 1] + node.end_col_offset,
        )

    def of(self, node: ast.stmt | ast.expr) -> str:
        """The text of a node."""
        start, end = self.span(node)
        return self.data[start:end].decode()

    def line_of(self, offset: int) -> int:
        """The number of the line that holds a byte, from 1."""
        return bisect_right(self.starts, offset)

    def change(self, operator: str, span: Span, new: str) -> Change:
        """The change that replaces a span by ``new``."""
        return Change(operator, span, partial(self.with_instead, ((span, new),)))

    def with_instead(self, pieces: tuple[tuple[Span, str], ...]) -> str:
        """The text with each span replaced; the spans are in ascending order."""
        parts, at = [], 0
        for (start, end), new in pieces:
            parts += [self.data[at:start], new.encode()]
            at = end
        return b"".join([*parts, self.data[at:]]).decode()

    def idle(self) -> list[Span]:
        """Spans that do nothing in a run except inform people.

        Annotations, docstrings, decorators, assertions, probes, and the texts of
        errors: no law reads these.
        """
        return [self.span(node) for node in _idle(self.tree)]


def is_inside(span: Span, others: list[Span]) -> bool:
    """Whether a span lies in one of the others."""
    return any(start <= span[0] and span[1] <= end for start, end in others)


def _idle(tree: ast.Module) -> Iterator[ast.stmt | ast.expr]:
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef():
                yield from node.decorator_list
                given = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
                told = (node.returns, *(each.annotation for each in given))
                yield from filter(None, told)
            case ast.AnnAssign(annotation=annotation):
                yield annotation
            case ast.Assert() | ast.JoinedStr():
                yield node
            case ast.Expr(value=value) if is_told(value):
                yield node
            case ast.Raise(exc=ast.Call(args=args)):
                yield from args
            case ast.Call(func=ast.Name(id="probe")):
                yield node


def is_told(value: ast.expr) -> bool:
    """Whether a statement of this is only for people: a text, a probe, a check."""
    match value:
        case ast.Constant():
            return True
        case ast.Call(func=ast.Attribute(attr=name)):
            return name in ("hit", "_check")
    return False
