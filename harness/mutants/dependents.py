"""Dependents: computes again what depends on a constant that an edit has changed.

A constant's value is copied when modules are imported: into modules that import it by
name, into constants computed from it, into class attributes, and into defaults of
functions and fields. Each copy is found in the text of the package's modules and
computed again, until nothing more depends on a change.
"""

from __future__ import annotations

import ast
import inspect
import sys
from types import ModuleType
from typing import Any

from crashmq.harness.mutants.codes import new_defaults
from crashmq.harness.mutants.edits import definitions
from crashmq.harness.mutants.living import functions_of
from crashmq.harness.mutants.module_names import room_of
from crashmq.harness.mutants.swaps import ChangedFunction, Planner, Swaps


def plan_dependents(swaps: Swaps, packages: set[str], where: str) -> None:
    """Plan new values for everything that depends on ``swaps.values``."""
    if not swaps.values:
        return
    readers = [
        _Reader(Planner(swaps, module, where))
        for name, module in sorted(sys.modules.items())
        if room_of(name) in packages and getattr(module, "__file__", None)
    ]
    while sum(reader.follow() for reader in readers):
        pass


class _Reader:
    """One module, and which of its values were computed again."""

    def __init__(self, planner: Planner) -> None:
        self.planner = planner
        self.module = planner.module
        self.tree = ast.parse(inspect.getsource(planner.module))
        self.done: set[str] = set()

    def follow(self) -> bool:
        """Compute again what depends on changes since the last call; False: nothing."""
        before = len(self.done)
        self._imports()
        names = set(self._values(self.module))
        if names:
            self._body(self.tree.body, names, self.module, "")
        return len(self.done) > before

    def _values(self, module: ModuleType) -> dict[str, Any]:
        return self.planner.swaps.values.get(module.__name__, {})

    def _imports(self) -> None:
        for node in ast.walk(self.tree):
            if not isinstance(node, ast.ImportFrom) or not node.module:
                continue
            changed = self.planner.swaps.values.get(node.module, {})
            for alias in node.names:
                name = alias.asname or alias.name
                if alias.name in changed and name in vars(self.module):
                    if name not in self.done:
                        self.planner.swaps.bind(self.module, name, changed[alias.name])
                    self.done.add(name)

    def _body(
        self,
        body: list[ast.stmt],
        names: set[str],
        holder: type | ModuleType,
        path: str,
    ) -> None:
        for name, statement in definitions(body):
            place = path + name
            match statement:
                case ast.ClassDef(body=inner):
                    cls = vars(holder).get(name)
                    if isinstance(cls, type):
                        self._body(inner, names, cls, f"{place}.")
                case ast.FunctionDef():
                    self._defaults(statement, names, holder, place)
                case ast.Assign(value=value) | ast.AnnAssign(value=value) if value:
                    self._value(value, names, holder, place)

    def _value(
        self, value: ast.expr, names: set[str], holder: type | ModuleType, place: str
    ) -> None:
        name = place.rpartition(".")[2]
        is_planned = isinstance(holder, ModuleType) and name in self._values(holder)
        if place in self.done or is_planned or not _uses(value, names):
            return
        self.done.add(place)
        new = self.planner.value_in(value, holder)
        if isinstance(holder, type):
            self.planner.swaps.class_value(holder, name, new, self.planner.where)
        else:
            self.planner.swaps.bind(holder, name, new)

    def _defaults(
        self,
        function: ast.FunctionDef,
        names: set[str],
        holder: type | ModuleType,
        place: str,
    ) -> None:
        given = [*function.args.defaults, *filter(None, function.args.kw_defaults)]
        if place in self.done or not any(_uses(each, names) for each in given):
            return
        self.done.add(place)
        cls = holder if isinstance(holder, type) else None
        bare = ast.parse("def nothing(): pass").body[0]
        assert isinstance(bare, ast.FunctionDef)
        change = ChangedFunction(place, cls, bare, function)
        for each in functions_of(self.module):
            if each.__code__.co_qualname == place:
                positional, keyword = new_defaults(self.planner, change, each)
                self.planner.swaps.attribute(each, "__defaults__", positional)
                self.planner.swaps.attribute(each, "__kwdefaults__", keyword)


def _uses(value: ast.expr, names: set[str]) -> bool:
    """Whether computing the expression reads one of the names."""
    return any(
        isinstance(node, ast.Name) and node.id in names for node in ast.walk(value)
    )
