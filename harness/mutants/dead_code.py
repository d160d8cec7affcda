"""Dead code: whether an edit changes anything that can run.

Python compiles no statement that cannot be reached: what follows a ``return`` or stands
in ``if False`` is not in the code. So two texts mean the same if they compile to the
same instructions, and an edit between such texts plants no bug.
"""

from __future__ import annotations

import ast
import dis
from functools import lru_cache
from types import CodeType

_NOP = dis.opmap["NOP"]
_JUMPS = frozenset((*dis.hasjrel, *dis.hasjabs))
_EDITS_REMEMBERED = 1024  # a hunt plants one mutant again and again
_TEXTS_REMEMBERED = 128  # and most mutants edit one of few modules


@lru_cache(maxsize=_EDITS_REMEMBERED)
def runs_alike(old: str, new: str) -> bool:
    """Whether two texts of a module run the same instructions, docstrings aside.

    False if one is not Python; compiling it reports what is wrong.
    """
    try:
        codes = _compiled(old), _compiled(new)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return _alike(*codes)


@lru_cache(maxsize=_TEXTS_REMEMBERED)
def _compiled(text: str) -> CodeType:
    tree = ast.parse(text)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        match body:
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
