"""Dead code: whether an edit changes anything that can run.

Python compiles no statement that cannot be reached: what follows a ``return`` or stands
in ``if False`` is not in the code. So two texts mean the same if they compile to the
same instructions, and an edit between such texts plants no bug.
"""

from __future__ import annotations

import ast
import copy
import dis
from functools import lru_cache
from types import CodeType
from typing import TypeAlias

from crashmq.harness.mutants.edits import lines_of, tree_of

_NOP = dis.opmap["NOP"]
_JUMPS = frozenset((*dis.hasjrel, *dis.hasjabs))
_EDITS_REMEMBERED = 1024  # a hunt plants one mutant again and again

_Told: TypeAlias = tuple[int, list[str]]  # a statement's margin, and its lines


@lru_cache(maxsize=_EDITS_REMEMBERED)
def runs_alike(old: str, new: str) -> bool:
    """Whether two texts of a module run the same instructions, docstrings aside.

    False if one is not Python; compiling it reports what is wrong.
    """
    try:
        trees = tree_of(old), tree_of(new)
        differing = _differing(trees[0].body, trees[1].body, old, new)
        codes = [_compiled(body, trees[0].body) for body in differing]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return _alike(*codes)


def _differing(
    old: list[ast.stmt], new: list[ast.stmt], *texts: str
) -> tuple[list[ast.stmt], list[ast.stmt]]:
    """The statements of two bodies without the equal ones before and behind.

    Of one class in both, only what differs in it is left: most edits are of one method.
    """
    lines = [text.split("\n") for text in texts]
    told = [
        [(node.col_offset, lines_of(node, of)) for node in body]
        for body, of in zip((old, new), lines, strict=True)
    ]
    first = _equal_first(*told)
    last = _equal_first(told[0][first:][::-1], told[1][first:][::-1])
    left, right = (body[first : len(body) - last] for body in (old, new))
    match left, right:
        case [ast.ClassDef() as one], [ast.ClassDef() as other]:
            inner = _differing(one.body, other.body, *texts)
            left, right = [_with_body(one, inner[0])], [_with_body(other, inner[1])]
    return left, right


def _equal_first(one: list[_Told], other: list[_Told]) -> int:
    """How many things two lists begin with that are equal."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def _with_body(cls: ast.ClassDef, body: list[ast.stmt]) -> ast.ClassDef:
    """The class with these statements only."""
    less = copy.copy(cls)
    less.body = body or [ast.copy_location(ast.Pass(), cls)]
    return less


def _compiled(body: list[ast.stmt], module: list[ast.stmt]) -> CodeType:
    """The code of some statements of a module, without docstrings."""
    futures = [
        each
        for each in module
        if isinstance(each, ast.ImportFrom) and each.module == "__future__"
    ]
    tree = ast.Module(copy.deepcopy([*futures, *body]), [])
    for node in ast.walk(tree):
        inner = getattr(node, "body", None)
        match inner:
            case [ast.Expr(value=ast.Constant(value=str()) as docstring), *_]:
                docstring.value = ""
    return compile(tree, "<edited>", "exec", dont_inherit=True)


def _alike(one: CodeType, other: CodeType) -> bool:
    def told(code: CodeType) -> tuple[object, ...]:
        return (
            code.co_qualname,
            code.co_flags,
            code.co_varnames[: code.co_argcount + code.co_kwonlyargcount],
            code.co_argcount,
            code.co_posonlyargcount,
            code.co_exceptiontable,
        )

    if told(one) != told(other):
        return False
    if _is_copy(one, other):
        return True
    mine, theirs = _steps(one), _steps(other)
    return len(mine) == len(theirs) and all(map(_same, mine, theirs))


def _is_copy(one: CodeType, other: CodeType) -> bool:
    """Whether they are equal byte by byte, as most are; this check is cheap."""

    def tables(code: CodeType) -> tuple[object, ...]:
        names = code.co_names, code.co_varnames, code.co_cellvars, code.co_freevars
        return code.co_code, names, len(code.co_consts)

    return tables(one) == tables(other) and all(
        map(_is_same_value, one.co_consts, other.co_consts)
    )


def _steps(code: CodeType) -> list[tuple[str, object]]:
    """The instructions that do something; a jump names its target's number in these."""
    every = list(dis.get_instructions(code))
    number_at, number = {}, 0
    for each in every:
        number_at[each.offset] = number
        number += each.opcode != _NOP
    return [
        (each.opname, number_at[each.argval] if each.opcode in _JUMPS else each.argval)
        for each in every
        if each.opcode != _NOP
    ]


def _same(one: tuple[str, object], other: tuple[str, object]) -> bool:
    """Whether two steps do the same, wherever their constants are stored."""
    (name, value), (other_name, other_value) = one, other
    return name == other_name and _is_same_value(value, other_value)


def _is_same_value(one: object, other: object) -> bool:
    if isinstance(one, CodeType) and isinstance(other, CodeType):
        return _alike(one, other)
    # A constant is told by its text too: 1 and True and 1.0 are not the same.
    return repr(one) == repr(other)
