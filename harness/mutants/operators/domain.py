"""Operators for a store: mistakes in code that syncs, locks, orders and resets.

Each operator takes the text of a place and yields the changes that it can make there.
``ordinary`` has the usual ones, of comparisons and numbers.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import pairwise
from typing import Any, TypeAlias

from crashmq.harness.mutants.operators.spans import Change, Text, is_for_people

Operator: TypeAlias = Callable[[Text, ast.AST], Iterator[Change]]

SYNCS = ("sync", "sync_dir", "flush", "_flush", "flush_all", "flush_thoroughly")
"""Names of what makes something durable in the engine."""

NOTHING = {
    "None": "None",
    "bool": "False",
    "int": "0",
    "str": "''",
    "bytes": "b''",
    "float": "0.0",
}
"""What a function returns that has found nothing, by the type that it says."""


def domain(text: Text) -> Iterator[Change]:
    """Yield each change that one of our own operators makes at a place."""
    nodes = list(ast.walk(text.tree))
    for operator in OPERATORS.values():
        for node in nodes:
            yield from operator(text, node)


def _bodies(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """The lists of statements directly below a node."""
    if isinstance(node, ast.ClassDef | ast.Module):
        return
    for name in ("body", "orelse", "finalbody"):
        body = getattr(node, name, None)
        if isinstance(body, list) and body and isinstance(body[0], ast.stmt):
            yield body


def _statements(node: ast.AST) -> Iterator[ast.stmt]:
    for body in _bodies(node):
        yield from body


def _is_effect(statement: ast.stmt) -> bool:
    """Whether a statement can be left out and its function still makes sense."""
    match statement:
        case ast.Expr(value=value):
            return not is_for_people(value)
        case ast.Assign(targets=targets):
            return all(isinstance(t, ast.Attribute | ast.Subscript) for t in targets)
        case ast.AugAssign() | ast.Delete():
            return True
        case ast.AnnAssign(target=ast.Attribute(), value=ast.expr()):
            return True
    return False


def _sync_in(statement: ast.AST) -> ast.Call | None:
    for node in ast.walk(statement):
        match node:
            case ast.Call(func=ast.Attribute(attr=name)) if name in SYNCS:
                return node
    return None


def _statement_removed(text: Text, node: ast.AST) -> Iterator[Change]:
    for statement in _statements(node):
        is_sync = isinstance(statement, ast.Expr) and _sync_in(statement)
        if _is_effect(statement) and not is_sync:
            yield text.change("statement-removed", text.span(statement), "pass")


def _check_removed(text: Text, node: ast.AST) -> Iterator[Change]:
    for statement in _statements(node):
        if isinstance(statement, ast.Raise) and not isinstance(node, ast.ExceptHandler):
            yield text.change("raise-removed", text.span(statement), "pass")


def _sync_omitted(text: Text, node: ast.AST) -> Iterator[Change]:
    match node:
        case ast.Call(func=ast.Attribute(attr=name)) if name in SYNCS:
            yield text.change("sync-omitted", text.span(node), "0")


def _condition_dropped(text: Text, node: ast.AST) -> Iterator[Change]:
    match node:
        case ast.If(test=test) | ast.IfExp(test=test):
            for word in ("True", "False"):
                yield text.change("condition-dropped", text.span(test), word)
        case ast.While(test=test) if not isinstance(test, ast.Constant):
            yield text.change("condition-dropped", text.span(test), "False")
        case ast.BoolOp(op=op, values=values):
            word = "True" if isinstance(op, ast.And) else "False"
            for value in values:
                yield text.change("operand-dropped", text.span(value), word)
        case ast.comprehension(ifs=ifs):
            for test in ifs:
                yield text.change("condition-dropped", text.span(test), "True")


def _condition_negated(text: Text, node: ast.AST) -> Iterator[Change]:
    match node:
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
            if not isinstance(test, ast.Constant):
                new = f"not ({text.of(test)})"
                yield text.change("condition-negated", text.span(test), new)


def _lock_dropped(text: Text, node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.With):
        for item in node.items:
            if "lock" in text.of(item.context_expr).lower():
                span = text.span(item.context_expr)
                new = "__import__('contextlib').nullcontext()"
                yield text.change("lock-dropped", span, new)


def _effects_swapped(text: Text, node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.FunctionDef) and node.name == "__init__":
        return  # nobody has the object yet
    for body in _bodies(node):
        for one, other in pairwise(body):
            if _has_effect(one) and _has_effect(other) and not _needs(one, other):
                first, second = text.span(one), text.span(other)
                pieces = ((first, text.of(other)), (second, text.of(one)))
                make = partial(text.with_instead, pieces)
                yield Change("effects-swapped", (first[0], second[1]), make)


def _has_effect(statement: ast.stmt) -> bool:
    match statement:
        case ast.Assign(value=value) if _is_effect(statement) or _calls(value):
            return True
        case ast.Expr() | ast.AugAssign() | ast.Delete() | ast.AnnAssign():
            return _is_effect(statement)
    return False


def _calls(value: ast.AST) -> bool:
    return any(isinstance(each, ast.Call) for each in ast.walk(value))


def _needs(one: ast.stmt, other: ast.stmt) -> bool:
    """Whether one of them reads a name that the other binds."""

    def names(node: ast.AST, context: type[ast.expr_context]) -> set[str]:
        return {
            each.id
            for each in ast.walk(node)
            if isinstance(each, ast.Name) and isinstance(each.ctx, context)
        }

    def bound_in(binder: ast.stmt, reader: ast.stmt) -> set[str]:
        read = names(reader, ast.Load) | names(reader, ast.Store)
        return names(binder, ast.Store) & read

    return bool(bound_in(one, other) or bound_in(other, one))


def _minmax(text: Text, node: ast.AST) -> Iterator[Change]:
    match node:
        case ast.Call(func=ast.Name(id="min" | "max" as name) as function, args=args):
            other = "max" if name == "min" else "min"
            yield text.change("min-max", text.span(function), other)
            if len(args) > 1 and not any(isinstance(a, ast.Starred) for a in args):
                for arg in args:
                    yield text.change("bound-dropped", text.span(node), text.of(arg))


def _constant(text: Text, node: ast.AST) -> Iterator[Change]:
    match node:
        case ast.Constant(value=int() as value) if not isinstance(value, bool):
            for new in sorted({2 * value, 0} - {value, value + 1, value - 1}):
                yield text.change("constant-2x-0", text.span(node), str(new))


def _handler_without_reset(text: Text, node: ast.AST) -> Iterator[Change]:
    match node:
        case ast.ExceptHandler(body=body):
            raises = isinstance(body[-1], ast.Raise)
            rest = body[:-1] if raises else body
            if not rest or all(isinstance(each, ast.Pass) for each in rest):
                return
            start, end = text.span(rest[0])[0], text.span(rest[-1])[1]
            yield text.change("handler-without-reset", (start, end), "pass")
        case ast.Try(finalbody=[first, *_] as body):
            span = text.span(first)[0], text.span(body[-1])[1]
            yield text.change("handler-without-reset", span, "pass")


def _error_passed_on(text: Text, node: ast.AST) -> Iterator[Change]:
    match node:
        case ast.ExceptHandler(body=body) if not isinstance(body[-1], ast.Raise):
            span = text.span(body[0])[0], text.span(body[-1])[1]
            yield text.change("error-passed-on", span, "raise")


def _early_return(text: Text, node: ast.AST) -> Iterator[Change]:
    if not isinstance(node, ast.FunctionDef) or node.returns is None:
        return
    said = text.of(node.returns)
    word = NOTHING.get(said, "None" if said.endswith("| None") else "")
    if said.startswith(("Iterator", "Generator")):
        word = "None"
    for kind, empty in (("list[", "[]"), ("tuple[", "()"), ("dict[", "{}")):
        word = empty if said.startswith(kind) and not word else word
    if word:
        for statement in node.body[1:]:
            at = text.span(statement)[0]
            new = f"return {word}\n{' ' * statement.col_offset}"
            yield text.change("early-return", (at, at), new)


def _answer_moved(text: Text, node: ast.AST) -> Iterator[Change]:
    if not isinstance(node, ast.FunctionDef) or node.returns is None:
        return
    said = text.of(node.returns)
    for each in ast.walk(node):
        match each:
            case ast.Return(value=ast.expr() as value) if said in ("bool", "int"):
                told = text.of(value)
                new = f"not ({told})" if said == "bool" else f"({told}) + 1"
                yield text.change("answer-moved", text.span(value), new)
            case ast.Return(value=ast.expr() as value) if said.startswith("list["):
                new = f"({text.of(value)})[:-1]"
                yield text.change("answer-moved", text.span(value), new)


def _argument_swapped(text: Text, node: ast.AST) -> Iterator[Change]:
    match node:
        case ast.Call(func=ast.Name(id="min" | "max")):
            return  # in any order the same
        case ast.Call(args=args):
            for one, other in pairwise(args):
                if isinstance(one, ast.Starred) or isinstance(other, ast.Starred):
                    continue
                first, second = text.span(one), text.span(other)
                if text.of(one) != text.of(other):
                    pieces = ((first, text.of(other)), (second, text.of(one)))
                    make = partial(text.with_instead, pieces)
                    span = (first[0], second[1])
                    yield Change("argument-swapped", span, make)


def _stale_value(text: Text, node: ast.AST) -> Iterator[Change]:
    """Keep the old value of an attribute: a cache that is not renewed."""
    for statement in _statements(node):
        match statement:
            case ast.Assign(targets=[ast.Attribute() as target], value=value):
                if not isinstance(value, ast.Constant) and _is_method(text):
                    new = f"{text.of(target)} or ({text.of(value)})"
                    yield text.change("stale-value", text.span(value), new)
            case ast.Assign(
                targets=[ast.Subscript(value=table, slice=key)], value=value
            ) if not isinstance(key, ast.Slice):
                new = f"{text.of(table)}.setdefault({text.of(key)}, {text.of(value)})"
                yield text.change("stale-value", text.span(statement), new)


def _is_method(text: Text) -> bool:
    """Whether the place is a method, but not ``__init__``, which has no old values."""
    first = text.tree.body[0]
    return isinstance(first, ast.FunctionDef) and first.name != "__init__"


def _once(text: Text, node: ast.AST) -> Iterator[Change]:
    match node:
        case ast.For(body=body) | ast.While(body=body):
            if not isinstance(body[-1], ast.Return | ast.Raise | ast.Break):
                at = text.span(body[-1])[1]
                new = f"\n{' ' * body[-1].col_offset}break"
                yield text.change("one-iteration", (at, at), new)


def _case_dropped(text: Text, node: ast.AST) -> Iterator[Change]:
    match node:
        case ast.Match(cases=cases) if len(cases) > 1:
            for case in cases[:-1]:
                if case.guard is None:
                    at = _end_of_pattern(text, case.pattern)
                    yield text.change("case-dropped", (at, at), " if False")


def _end_of_pattern(text: Text, pattern: Any) -> int:
    start: int = text.starts[pattern.end_lineno - 1]
    end: int = start + pattern.end_col_offset
    return end


OPERATORS: Mapping[str, Operator] = {
    "statement-removed": _statement_removed,
    "raise-removed": _check_removed,
    "sync-omitted": _sync_omitted,
    "condition-dropped": _condition_dropped,
    "condition-negated": _condition_negated,
    "lock-dropped": _lock_dropped,
    "effects-swapped": _effects_swapped,
    "min-max": _minmax,
    "constant-2x-0": _constant,
    "handler-without-reset": _handler_without_reset,
    "error-passed-on": _error_passed_on,
    "early-return": _early_return,
    "answer-moved": _answer_moved,
    "argument-swapped": _argument_swapped,
    "stale-value": _stale_value,
    "one-iteration": _once,
    "case-dropped": _case_dropped,
}
"""By the name that the report gives them; some make changes of two names."""
