"""Codes: replaces the code of all live functions that come from an edited text.

A function object belongs to a ``def`` if its code has that qualified name and line. All
such objects are found, in modules and classes, under decorators and in closures, so
every holder runs the new code.
"""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any, TypeAlias

from crashmq.harness.mutants.edits import MutantApplied, MutantStale, MutantUnsupported
from crashmq.harness.mutants.living import functions_of
from crashmq.harness.mutants.swaps import (
    MARK,
    ChangedFunction,
    Planner,
    dumped,
    explicit_super,
    unsupported,
)

_Key: TypeAlias = tuple[str, int]  # qualified name, and how many bore it before


def plan_codes(planner: Planner, old_text: str, new: ast.Module) -> None:
    """Plan the replacement of the code of all changed functions.

    Raises:
        MutantApplied: one of them has a mutant's code already.
        MutantStale: the module was not made from ``old_text``.
        MutantUnsupported: no live function object comes from one of them, or the new
            text needs an outer variable that the function does not have.
    """
    module, where = planner.module, planner.where
    living = functions_of(module)
    keys = _keys_of(old_text)
    if any(_is_inside(changed, one) for changed in planner.functions for one in living):
        living.clear()
        gc.collect()  # a call that is over may have left what it made in a cycle
        living = functions_of(module)
    for changed in planner.functions:
        found = _made_from(changed, living, where)
        for function in found:
            if _place(function) not in keys:
                raise MutantStale(
                    f"{where}: its file was changed after it was imported, and the "
                    "text there is another function's. Start again."
                )
            _keep_outer_names(function, changed)
    whole = compile(new, planner.filename, "exec", dont_inherit=True)
    codes = dict(_codes(whole))
    for changed in planner.functions:
        for function in _made_from(changed, living, where):
            if code := codes.get(keys[_place(function)]):
                _swap(planner, changed, function, code)


def new_defaults(
    planner: Planner, changed: ChangedFunction, function: FunctionType
) -> tuple[tuple[Any, ...] | None, dict[str, Any] | None]:
    """The new signature's defaults; unchanged ones are the same object."""
    known = _known_defaults(changed.old.args, function)
    holder = changed.cls or planner.module

    def value(parameter: str, given: ast.expr) -> object:
        text, old = known.get(parameter, ("", None))
        return old if text == dumped(given) else planner.value_in(given, holder)

    positional, keyword = _defaults(changed.new.args)
    return (
        tuple(value(name, given) for name, given in positional) or None,
        {name: value(name, given) for name, given in keyword} or None,
    )


def _swap(
    planner: Planner, changed: ChangedFunction, function: FunctionType, code: CodeType
) -> None:
    if code.co_freevars != function.__code__.co_freevars:
        raise MutantUnsupported(
            f"{planner.where}: the edit changes which outer variables the function "
            f"uses, from {function.__code__.co_freevars} to {code.co_freevars}; keep "
            f"them."
        )
    planner.swaps.attribute(function, "__code__", code)
    if code.co_qualname == changed.path and dumped(changed.old.args) != dumped(
        changed.new.args
    ):
        positional, keyword = new_defaults(planner, changed, function)
        planner.swaps.attribute(function, "__defaults__", positional)
        planner.swaps.attribute(function, "__kwdefaults__", keyword)


def _is_inside(changed: ChangedFunction, function: FunctionType) -> bool:
    """Whether the function comes from a definition inside the changed one."""
    return function.__code__.co_qualname.startswith(f"{changed.path}.<locals>.")


def _made_from(
    changed: ChangedFunction, living: list[FunctionType], where: str
) -> list[FunctionType]:
    """The functions that come from the definition, or from one inside it."""
    found = []
    for function in living:
        code = function.__code__
        if code.co_qualname == changed.path or _is_inside(changed, function):
            if not code.co_filename.startswith(MARK):
                found.append(function)
            elif code.co_qualname == changed.path:
                raise MutantApplied(
                    f"{where}: the function is a mutant already; leave the first "
                    f"`applied` before entering the second."
                )
    if not any(f.__code__.co_qualname == changed.path for f in found):
        raise unsupported(where, f"no living function was made from {changed.path}")
    return found


def _keep_outer_names(function: FunctionType, changed: ChangedFunction) -> None:
    """Make the new text use exactly the outer variables that the live function has."""
    if function.__code__.co_qualname != changed.path:
        return
    if changed.cls is not None and "__class__" not in function.__code__.co_freevars:
        explicit_super(changed.new, changed.cls.__qualname__)
    used = {n.id for n in ast.walk(changed.new) if isinstance(n, ast.Name)}
    for name in function.__code__.co_freevars:
        if name not in used and not (name == "__class__" and "super" in used):
            unused = ast.Expr(ast.Name(name, ast.Load()))
            changed.new.body.append(ast.If(ast.Constant(value=False), [unused], []))
            ast.fix_missing_locations(changed.new)


@lru_cache(maxsize=128)
def _keys_of(text: str) -> dict[tuple[str, int], _Key]:
    """Which definition of a shipped text begins at a line; cached: do not change it."""
    whole = compile(text, "<old>", "exec", dont_inherit=True)
    return {(code.co_qualname, code.co_firstlineno): key for key, code in _codes(whole)}


def _codes(code: CodeType) -> Iterator[tuple[_Key, CodeType]]:
    """Every inner code object, by qualified name and its number among equal names."""
    seen: dict[str, int] = {}
    waiting = [code]
    while waiting:
        inner = [c for c in waiting.pop(0).co_consts if isinstance(c, CodeType)]
        for each in inner:
            number = seen.get(each.co_qualname, 0)
            seen[each.co_qualname] = number + 1
            yield (each.co_qualname, number), each
        waiting = inner + waiting


def _place(function: FunctionType) -> tuple[str, int]:
    return function.__code__.co_qualname, function.__code__.co_firstlineno


def _defaults(
    args: ast.arguments,
) -> tuple[list[tuple[str, ast.expr]], list[tuple[str, ast.expr]]]:
    """Parameters with a default: positional ones, keyword ones."""
    every = [each.arg for each in (*args.posonlyargs, *args.args)]
    first = len(every) - len(args.defaults)
    keyword = [
        (each.arg, given)
        for each, given in zip(args.kwonlyargs, args.kw_defaults, strict=True)
        if given is not None
    ]
    return list(zip(every[first:], args.defaults, strict=True)), keyword


def _known_defaults(
    args: ast.arguments, function: FunctionType
) -> dict[str, tuple[str, object]]:
    """The text and the object of each default that the function has."""
    positional, keyword = _defaults(args)
    known = {
        name: (dumped(given), value)
        for (name, given), value in zip(
            positional, function.__defaults__ or (), strict=False
        )
    }
    objects = function.__kwdefaults__ or {}
    return known | {name: (dumped(given), objects.get(name)) for name, given in keyword}
