"""Swaps: what an edited text changes in a running program.

The old and the new text of a module are compared, definition by definition. A changed
function gets new code: every function object that was made from it, wherever it was
imported to and however it is decorated, runs the new code. A changed constant or class
attribute is computed again and bound; ``dependents`` finds what else depends on it. New
functions, constants and imports are added. Other changes (base classes, decorators, new
fields) are refused.

Nothing changes until ``do``; ``undo`` restores the identical objects.
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from types import FunctionType, MemberDescriptorType, ModuleType
from typing import Any

from crashmq.harness.mutants.edits import (
    MutantUnsupported,
    definitions,
    lines_of,
)

MARK = "<mutant "
_GONE = object()
_SUPER = "__import__('builtins').super"


@dataclass(frozen=True, slots=True)
class Swap:
    """One value that replaces another and can be undone."""

    put: Callable[[Any], None]
    old: Any
    new: Any


@dataclass(slots=True)
class Swaps:
    """All changes of one mutant.

    Attributes:
        values: its new module values, by module.
        binds: whether it binds a name of a module or class, and not code alone.
    """

    mutant_id: str
    swaps: list[Swap] = field(default_factory=list)
    values: dict[str, dict[str, Any]] = field(default_factory=dict)
    binds: bool = False

    def do(self) -> None:
        """Put every new value in place."""
        for swap in self.swaps:
            swap.put(swap.new)

    def undo(self) -> None:
        """Put every old value back, the last first."""
        for swap in reversed(self.swaps):
            swap.put(swap.old)

    def bind(self, holder: type | ModuleType, name: str, new: object) -> None:
        """Bind a name of a module or class, existing or not, to ``new``."""

        def put(value: object) -> None:
            if value is _GONE:
                delattr(holder, name)
            else:
                setattr(holder, name, value)

        self.binds = True
        self.swaps.append(Swap(put, vars(holder).get(name, _GONE), new))
        if isinstance(holder, ModuleType):
            self.values.setdefault(holder.__name__, {})[name] = new

    def attribute(self, holder: object, name: str, new: object) -> None:
        """Set an existing attribute."""
        old = getattr(holder, name)
        self.swaps.append(Swap(lambda value: setattr(holder, name, value), old, new))

    def class_value(self, cls: type, name: str, new: object, where: str) -> None:
        """Set a class's attribute, or the default of a dataclass's field.

        Raises:
            MutantUnsupported: it is a member of an enum, or a field without a default.
        """
        fields = getattr(cls, "__dataclass_fields__", {})
        if issubclass(cls, Enum):
            raise unsupported(where, f"{cls.__name__}.{name} is a member of an enum")
        if name in fields:
            self._field_default(cls, fields[name], new, where)
        if not isinstance(vars(cls).get(name), MemberDescriptorType):
            self.bind(cls, name, new)

    def _field_default(
        self, cls: type, known: dataclasses.Field[Any], new: object, where: str
    ) -> None:
        made = vars(cls).get("__init__")
        names: tuple[str, ...] = ()
        if isinstance(made, FunctionType):
            names = made.__code__.co_varnames[: made.__code__.co_argcount]
        defaults = (made.__defaults__ or ()) if isinstance(made, FunctionType) else ()
        first = len(names) - len(defaults)
        at = names.index(known.name) - first if known.name in names else -1
        if known.default is dataclasses.MISSING or at < 0:
            place = f"{cls.__name__}.{known.name}"
            raise unsupported(where, f"{place} is a field without a plain default")
        self.attribute(known, "default", new)
        self.attribute(made, "__defaults__", (*defaults[:at], new, *defaults[at + 1 :]))


def unsupported(where: str, what: str) -> MutantUnsupported:
    """The error for an edit that cannot be made in memory."""
    return MutantUnsupported(
        f"{where}: {what}; that cannot be changed in memory. Edit the function that "
        f"uses it."
    )


@dataclass(frozen=True, slots=True)
class ChangedFunction:
    """A function whose text differs: the class around it, and its old and new trees."""

    path: str
    cls: type | None
    old: ast.FunctionDef
    new: ast.FunctionDef


class Planner:
    """Compares a module's old and new syntax tree and plans what code to replace."""

    def __init__(self, swaps: Swaps, module: ModuleType, where: str) -> None:
        self.swaps = swaps
        self.module = module
        self.where = where
        self.changes = 0
        self.functions: list[ChangedFunction] = []
        self._lines: tuple[list[str], list[str]] = ([], [])

    def read(self, old: ast.Module, new: ast.Module, *texts: str) -> None:
        """Plan new values and definitions; collect the changed functions.

        Args:
            old: the shipped module.
            new: the edited one.
            texts: what each of them was parsed from.

        Raises:
            MutantUnsupported: a difference cannot be made in memory, or there is none.
        """
        shipped, edited = (text.split("\n") for text in texts)
        self._lines = shipped, edited
        self._body(old.body, new.body, self.module, "")
        if not self.changes:
            raise MutantUnsupported(
                f"{self.where}: the edit changes nothing that runs; change more than "
                f"layout, comments and names of types."
            )

    def value_in(self, value: ast.expr, holder: type | ModuleType) -> Any:
        """Compute the value of an expression of this module, or of a class in it."""
        planned = self.swaps.values.get(self.module.__name__, {})
        scope = dict(vars(holder)) if isinstance(holder, type) else {}
        code = compile(ast.Expression(value), self.filename, "eval", dont_inherit=True)
        try:
            return eval(code, {**vars(self.module), **planned}, scope)
        # Whatever a stranger's text raises is a fault of the edit.
        except Exception as error:
            raise MutantUnsupported(
                f"{self.where}: {ast.unparse(value)!r} cannot be worked out: "
                f"{type(error).__name__}: {error}."
            ) from None

    @property
    def filename(self) -> str:
        """The name shown in tracebacks for the edited text, which is not in a file."""
        return f"{MARK}{self.swaps.mutant_id} of {self.module.__name__}>"

    def _body(
        self,
        old: list[ast.stmt],
        new: list[ast.stmt],
        holder: type | ModuleType,
        path: str,
    ) -> None:
        before, after = dict(_numbered(old)), dict(_numbered(new))
        for (name, _), statement in before.items():
            if (name, _) not in after and not isinstance(statement, ast.Assert):
                what = f"the edit removes {path}{name}, which others may hold"
                raise unsupported(self.where, what)
        for (name, _), statement in after.items():
            if (name, _) not in before:
                self._added(statement, holder, name)
            elif not self._is_as_it_was(before[name, _], statement):
                self._changed(before[name, _], statement, holder, path + name)
        self._loose(old, new, path)

    def _is_as_it_was(self, old: ast.stmt, new: ast.stmt) -> bool:
        """Whether both statements mean the same; what is in a class is asked later."""
        places = zip(self._lines, (old, new), strict=True)
        before, after = (lines_of(node, lines) for lines, node in places)
        if before == after and old.col_offset == new.col_offset:
            return True
        if isinstance(old, ast.ClassDef) and isinstance(new, ast.ClassDef):
            return False
        return dumped(old) == dumped(new)

    def _changed(
        self, old: ast.stmt, new: ast.stmt, holder: type | ModuleType, path: str
    ) -> None:
        self.changes += not isinstance(new, ast.ClassDef)
        name = path.rpartition(".")[2]
        cls = holder if isinstance(holder, type) else None
        match old, new:
            case ast.FunctionDef(), ast.FunctionDef():
                self._same(old, new, ("decorator_list",), path)
                self.functions.append(ChangedFunction(path, cls, old, new))
            case ast.ClassDef(), ast.ClassDef():
                self._same(old, new, ("decorator_list", "bases", "keywords"), path)
                self._body(old.body, new.body, vars(holder)[name], f"{path}.")
            case (
                ast.Assign() | ast.AnnAssign(),
                (ast.Assign(value=ast.expr() as value))
                | ast.AnnAssign(value=ast.expr() as value),
            ):
                self._value(value, holder, name)
            case _:
                raise unsupported(self.where, f"the edit makes {path} another thing")

    def _value(self, value: ast.expr, holder: type | ModuleType, name: str) -> None:
        new = self.value_in(value, holder)
        if isinstance(holder, type):
            self.swaps.class_value(holder, name, new, self.where)
        else:
            self.swaps.bind(holder, name, new)

    def _same(
        self, old: ast.AST, new: ast.AST, parts: tuple[str, ...], path: str
    ) -> None:
        for part in parts:
            if [*map(dumped, getattr(old, part))] != [*map(dumped, getattr(new, part))]:
                said = part.replace("_", " ")
                raise unsupported(self.where, f"the edit changes the {said} of {path}")

    def _added(self, new: ast.stmt, holder: type | ModuleType, name: str) -> None:
        self.changes += 1
        if isinstance(holder, ModuleType):
            self.swaps.bind(holder, name, self._run(new)[name])
        elif isinstance(new, ast.AnnAssign) and dataclasses.is_dataclass(holder):
            raise unsupported(self.where, f"the edit adds the field {name}")
        else:
            explicit_super(new, holder.__qualname__)
            around = ast.ClassDef(holder.__name__, [], [], [new], [])
            made = self._run(around)[holder.__name__]
            self.swaps.bind(holder, name, vars(made)[name])

    def _run(self, statement: ast.stmt) -> dict[str, Any]:
        """Run one new statement in a copy of the module's names."""
        future = ast.ImportFrom("__future__", [ast.alias("annotations")], 0)
        tree = ast.fix_missing_locations(ast.Module([future, statement], []))
        code = compile(tree, self.filename, "exec", dont_inherit=True)
        names: dict[str, Any] = {}
        try:
            exec(code, vars(self.module), names)
        # As above: the text is a stranger's.
        except Exception as error:
            raise MutantUnsupported(
                f"{self.where}: {ast.unparse(statement).splitlines()[0]!r} cannot be "
                f"run: {type(error).__name__}: {error}."
            ) from None
        return names

    def _loose(self, old: list[ast.stmt], new: list[ast.stmt], path: str) -> None:
        """Make new imports; refuse other new statements that bind nothing."""
        bound = {id(statement) for _, statement in definitions(new)}
        named = {id(statement) for _, statement in definitions(old)}
        known = {dumped(each) for each in old if id(each) not in named}
        for statement in new:
            if id(statement) in bound or dumped(statement) in known:
                continue
            match statement:
                case ast.Expr(value=ast.Constant()) | ast.Pass() | ast.Assert():
                    continue  # a text; a condition that has been looked at already
                case ast.Import() | ast.ImportFrom() if not path:
                    self.changes += 1
                    for name, value in self._run(statement).items():
                        self.swaps.bind(self.module, name, value)
                case ast.If() | ast.Try() | ast.With():
                    continue  # what it binds was looked at
                case _:
                    said = ast.unparse(statement).splitlines()[0]
                    raise unsupported(self.where, f"the edit adds {said!r}, which runs")


def explicit_super(tree: ast.AST, cls: str) -> None:
    """Rewrite ``super()`` so that it needs no hidden variable ``__class__``.

    The compiler adds that variable wherever the name ``super`` occurs, so the function
    is reached in another way.
    """
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef) and function.args.args:
            first = function.args.args[0].arg
            for node in ast.walk(function):
                match node:
                    case ast.Call(func=ast.Name(id="super"), args=[]):
                        node.func = ast.parse(_SUPER, mode="eval").body
                        owner = ast.parse(cls, mode="eval").body
                        node.args = [owner, ast.Name(first, ast.Load())]
                        ast.fix_missing_locations(node)


def dumped(node: ast.AST) -> str:
    """The syntax tree of a piece of text as a string: its meaning in any layout."""
    return ast.dump(node)


def _numbered(body: list[ast.stmt]) -> Iterator[tuple[tuple[str, int], ast.stmt]]:
    """Each definition by its name, and how often the name was bound before."""
    seen: dict[str, int] = {}
    for name, statement in definitions(body):
        yield (name, seen.get(name, 0)), statement
        seen[name] = seen.get(name, 0) + 1
