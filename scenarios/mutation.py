"""How a bug is planted: small edits of an engine function's text, in memory.

The tested code is the shipped code: an edit is applied in memory, to the code object
of the one function it names, so that every importer of the function runs the mutant
and no file changes. A mutant reads as a diff and refuses to apply once its line is
gone. Functions, methods, static and class methods and property getters can be edited;
statements at module or class level cannot, since they have already run.

The errors::

    MutantError
        MutantStale        the text to replace is not there exactly once
        MutantUnsupported  the place cannot be edited by swapping code
        MutantApplied      the function is a mutant already
"""

from __future__ import annotations
import __future__ as future

import ast
import importlib
import inspect
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import CodeType, FunctionType

from models.program import Program

_FUTURE_FLAGS = sum(
    getattr(future, name).compiler_flag for name in future.all_feature_names
)
_MARK = "<mutant "


class MutantError(Exception):
    """A mutant cannot be applied; the message names the mutant, the place, the cure."""


class MutantStale(MutantError):
    """The text to replace is not in the function exactly once."""


class MutantUnsupported(MutantError):
    """The place named by an edit cannot be edited by swapping code."""


class MutantApplied(MutantError):
    """The function is already a mutant."""


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace one piece of one function's text.

    Attributes:
        module: as imported, ``engine.store.message_store``.
        function: ``name`` or ``Class.name`` in it.
        before: text found exactly once in the function, read with its ``def`` moved
            to column 0.
        after: the text in its place.
    """

    module: str
    function: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Mutant:
    """One planted bug.

    Attributes:
        id: of the bug catalogue, ``R02``; never reused.
        title: a slug.
        killed_by: ids of the laws of which one must flag it.
        edits: what differs from the shipped engine.
        source: where the real bug was reported.
        trigger: a program that is red with the mutant and green without.
        as_shipped: whether RocketMQ behaves so to this day.
    """

    id: str
    title: str
    killed_by: tuple[str, ...]
    edits: tuple[Edit, ...]
    source: str
    trigger: Program
    as_shipped: bool = False


@contextmanager
def applied(mutant: Mutant) -> Iterator[None]:
    """Run the engine with a mutant while the context lasts.

    Either every edit is applied or none is; on exit each function has its own code
    object back. Mutants of different functions nest.

    Raises:
        MutantStale: an edit's text is gone, or is there more than once.
        MutantUnsupported: an edit names what cannot be edited.
        MutantApplied: a function is a mutant already.
    """
    texts: dict[tuple[str, str], list[Edit]] = {}
    for edit in mutant.edits:
        texts.setdefault((edit.module, edit.function), []).append(edit)
    swaps = [_mutated(mutant.id, edits) for edits in texts.values()]
    originals = [function.__code__ for function, _ in swaps]
    for function, code in swaps:
        function.__code__ = code
    _forget_results()
    try:
        yield
    finally:
        _forget_results()
        for (function, _), original in zip(swaps, originals, strict=True):
            function.__code__ = original


def _forget_results() -> None:
    """Empty the engine's caches: they may hold what other code has worked out."""
    for name in sorted(sys.modules):
        if name == "engine" or name.startswith("engine."):
            for member in vars(sys.modules[name]).values():
                forget = getattr(member, "cache_clear", None)
                if forget is not None:
                    forget()


def _mutated(mutant_id: str, edits: list[Edit]) -> tuple[FunctionType, CodeType]:
    """The function that all ``edits`` name, and the code it shall run."""
    module, path = edits[0].module, edits[0].function
    where = f"mutant {mutant_id}, {module}.{path}"
    function = _function(module, path, where)
    if function.__code__.co_filename.startswith(_MARK):
        raise MutantApplied(
            f"{where}: the function is a mutant already; leave the first `applied` "
            f"before entering the second."
        )
    shipped = textwrap.dedent(inspect.getsource(function))
    if _tree(shipped, where).name != function.__name__:
        raise MutantStale(
            f"{where}: its file was changed after it was imported, and the text read "
            f"is another function's. Start anew."
        )
    text = shipped
    for edit in edits:
        text = _replaced(text, edit, where)
    tree = _tree(text, where)
    if ast.dump(tree.args) != ast.dump(_tree(shipped, where).args):
        raise MutantUnsupported(
            f"{where}: the edit changes the signature, which lives outside the code; "
            f"edit the body instead."
        )
    code = _compiled(tree, function, path, f"{_MARK}{mutant_id} of {module}>")
    if code.co_freevars != function.__code__.co_freevars:
        raise MutantUnsupported(
            f"{where}: the edit changes which outer variables the function uses, "
            f"from {function.__code__.co_freevars} to {code.co_freevars}; keep them."
        )
    return function, code


def _function(module: str, path: str, where: str) -> FunctionType:
    """The plain function behind a module's function, method or property."""
    try:
        holder: object = importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise MutantStale(f"{where}: {error}; the module was renamed.") from None
    found: object = holder
    for name in path.split("."):
        members = vars(found)
        if name not in members:
            raise MutantStale(f"{where}: {name!r} is gone; it was renamed or moved.")
        found = members[name]
    if isinstance(found, staticmethod | classmethod):
        found = found.__func__
    elif isinstance(found, property) and found.fset is None and found.fdel is None:
        found = found.fget
    if not isinstance(found, FunctionType) or hasattr(found, "__wrapped__"):
        raise MutantUnsupported(
            f"{where} is a {type(found).__name__}, decorated or no function at all. "
            f"Only functions, methods and read-only properties can be edited, not "
            f"statements of a module or class: name the function that uses it."
        )
    return found


def _replaced(text: str, edit: Edit, where: str) -> str:
    times = text.count(edit.before)
    if times != 1:
        raise MutantStale(
            f"{where}: the text {edit.before!r} is there {times} times, not once. "
            f"The function changed: write the edit anew."
        )
    return text.replace(edit.before, edit.after)


def _tree(text: str, where: str) -> ast.FunctionDef:
    try:
        body = ast.parse(text).body
    except SyntaxError as error:
        raise MutantUnsupported(
            f"{where}: the edited text is not Python: {error}."
        ) from None
    if len(body) != 1 or not isinstance(body[0], ast.FunctionDef):
        raise MutantUnsupported(
            f"{where}: the edited text is not one function; edit inside its body."
        )
    return body[0]


def _compiled(
    tree: ast.FunctionDef,
    function: FunctionType,
    path: str,
    filename: str,
) -> CodeType:
    """Compile ``tree`` as if it stood where ``function`` was defined.

    The classes around it are compiled too, for private names and ``super()``; so is
    a function around those that owns the outer variables. None of them is run.
    """
    shipped = function.__code__
    tree.decorator_list = []
    ast.increment_lineno(tree, shipped.co_firstlineno - 1)
    classes = path.split(".")[:-1]
    outer = [name for name in shipped.co_freevars if name != "__class__"]
    lines = ["def enclosing():"]
    lines += [f"    {name} = None" for name in outer]
    lines += [f"{'    ' * n}class {name}:" for n, name in enumerate(classes, start=1)]
    lines.append("    " * (len(classes) + 1) + "pass")
    module = ast.parse("\n".join(lines))
    innermost: ast.stmt = module.body[0]
    for _ in classes:
        assert isinstance(innermost, ast.FunctionDef | ast.ClassDef)
        innermost = innermost.body[-1]
    assert isinstance(innermost, ast.FunctionDef | ast.ClassDef)
    innermost.body[-1] = tree
    flags = shipped.co_flags & _FUTURE_FLAGS
    code: CodeType = compile(module, filename, "exec", flags=flags, dont_inherit=True)
    for name in ["enclosing", *classes, tree.name]:
        code = _inner(code, name)
    return code.replace(co_qualname=shipped.co_qualname)


def _inner(code: CodeType, name: str) -> CodeType:
    (found,) = [
        const
        for const in code.co_consts
        if isinstance(const, CodeType) and const.co_name == name
    ]
    return found
