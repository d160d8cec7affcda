"""Ops as text: a constructor call, as ``PutMessage("T0", 0, body_size=16)``.

It is the short form of an op in a case file and in Python tests. Reading it runs
nothing: it accepts a call of a known op or event whose arguments are such calls,
numbers, strings, booleans, and lists of these. Fields at their defaults are left out.
"""

from __future__ import annotations

import ast
import textwrap
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, cast

from crashmq.models.ops import EVENT_CLASSES, Event, Schedule, Survivors
from crashmq.models.printable import shown
from crashmq.models.program import BadProgram, Program

_CLASSES: dict[str, type] = {
    cls.__name__: cls for cls in (*EVENT_CLASSES, Survivors, Schedule)
}
TEXT_MAX = 128 * 1024


def source_of(value: object) -> str:
    """The constructor call of an op, a setup, or a part of one."""
    if isinstance(value, tuple | list):
        inside = [source_of(one) for one in value]
        return f"({', '.join(inside)}{',' if len(inside) == 1 else ''})"
    if not is_dataclass(value):
        return repr(value)
    said, by_name = [], False
    for field in fields(value):
        given = getattr(value, field.name)
        default: object = field.default
        if field.default_factory is not MISSING:
            default = field.default_factory()
        if default is not MISSING and given == default:
            by_name = True  # what follows has to say its name
            continue
        named = by_name or default is not MISSING
        said.append(f"{field.name}={source_of(given)}" if named else source_of(given))
    return f"{type(value).__name__}({', '.join(said)})"


def op_of_source(text: str, where: str) -> Event:
    """The op that is written as a call; its values are not checked.

    Args:
        text: in the form of ``source_of``.
        where: the place in a file, for errors.

    Raises:
        BadProgram: it is no such call.
    """
    if len(text) > TEXT_MAX:
        raise BadProgram(f"{where}: longer than {TEXT_MAX} characters.")
    try:
        tree = ast.parse(text.strip(), mode="eval")
        made = _made(tree.body, where)
    except BadProgram:
        raise
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise BadProgram(
            f"{where}: {shown(text)} is no call of an op, as RunService('reput') is."
        ) from None
    except TypeError as error:
        raise BadProgram(f"{where}: {shown(str(error))}.") from None
    if not isinstance(made, tuple(EVENT_CLASSES)):
        raise BadProgram(f"{where}: {shown(text)} is no op.")
    return cast(Event, made)


def _made(node: ast.expr, where: str) -> Any:
    match node:
        case ast.Call(ast.Name(name), given, named):
            cls = _CLASSES.get(name)
            if cls is None:
                known = ", ".join(sorted(_CLASSES))
                raise BadProgram(f"{where}: unknown op {shown(name)}; known: {known}.")
            values = [_made(one, where) for one in given]
            by_name = _by_name(named, where)
            _check_fields(cls, len(values), by_name, where)
            return cls(*values, **by_name)
        case ast.Tuple(items) | ast.List(items):
            return tuple([_made(one, where) for one in items])
        case ast.UnaryOp(ast.USub(), ast.Constant(int() as number)):
            return -number
        case ast.Constant(int() | str() as value):
            return value
    raise BadProgram(f"{where}: {shown(ast.unparse(node))} is no value of an op.")


def _check_fields(cls: type, given: int, named: dict[str, Any], where: str) -> None:
    """Check that each field without a default has a value, and none has two."""
    known = {field.name: field for field in fields(cls)}
    if given > len(known):
        told = f"{given} values, and it has {len(known)} fields"
        raise BadProgram(
            f"{where}: {cls.__name__} is given {told}: {', '.join(known)}."
        )
    first = list(known)[:given]
    for name in named:
        if name not in known:
            told = f"no field {shown(name)}; it has {', '.join(known)}"
            raise BadProgram(f"{where}: {cls.__name__} has {told}.")
        if name in first:
            raise BadProgram(f"{where}: {cls.__name__} is given {name} twice.")
    missing = [
        name
        for name, field in known.items()
        if name not in {*first, *named}
        and field.default is field.default_factory is MISSING
    ]
    if missing:
        raise BadProgram(f"{where}: {cls.__name__} lacks {', '.join(missing)}.")


def _by_name(named: list[ast.keyword], where: str) -> dict[str, Any]:
    values = {}
    for one in named:
        if one.arg is None:
            raise BadProgram(f"{where}: write each field of an op by its name.")
        values[one.arg] = _made(one.value, where)
    return values


def as_pytest(
    program: Program, scenario: str, name: str, story: str, subject: str = ""
) -> str:
    """The source of a pytest function that runs a program and fails on a broken law.

    Args:
        program: what to run.
        scenario: its name.
        name: the function's name after ``test_``.
        story: its docstring, one line.
        subject: ``package.module:factory`` of the store; "" for crashmq's engine.
    """
    used = sorted(_names_in(program))
    ops = "".join(f"        {source_of(op)},\n" for op in program.ops)
    imported = "".join(f"    {one},\n" for one in ["Program", "Setup", *used, "holds"])
    setup = source_of(program.setup)
    theirs, on_it = "", ""
    if subject:
        module, _, factory = subject.partition(":")
        theirs = f"from {module} import {factory.partition('.')[0]}\n"
        on_it = f", subject={factory}"
    return (
        f"from crashmq.testing import (\n{imported})\n{theirs}\n\n"
        f"def test_{name}() -> None:\n"
        f"    {_quoted(story)}\n"
        f"    ops = (\n{ops}    )\n"
        f"    holds(Program({setup}, ops), scenario={scenario!r}{on_it})\n"
    )


def _quoted(text: str) -> str:
    safe = text.replace("\\", "\\\\").replace('"', "'")
    first, *more = textwrap.wrap(safe, 80)
    if not more:
        return f'"""{first}"""'
    return "\n    ".join([f'"""{first}', *more, '"""'])


def _names_in(program: Program) -> set[str]:
    """The classes that the source of a program's ops calls."""
    tree = ast.parse(source_of(program.ops))
    return {
        node.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
