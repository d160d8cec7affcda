"""Places: the pieces of the engine's text that operators change, one at a time.

A place is a function, or a constant of a module or class, as edits name it. Its text
begins in column 0. Places without effect on a simulated run are skipped: the real host,
texts for people, and checks of our own mistakes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from crashmq import engine
from crashmq.harness.mutants.edits import definitions, text_of_place

NOT_MUTATED = {
    "host": "no simulated history runs the real host, and its probes and ports do "
    "nothing; `tests/selftest/planted_host.py` has its mutants",
}
"""Packages of the engine without machine-made mutants, and why."""

_ENGINE = Path(engine.__file__).parent
_FOR_PEOPLE = ("__repr__", "__str__", "_check")


@dataclass(frozen=True, slots=True)
class Place:
    """A function or a constant of the engine.

    Attributes:
        module: its import name.
        function: as an edit names it: ``name``, ``Class.name``.
        text: its whole text, from column 0 on.
        line: where it begins in its module, from 1.
    """

    module: str
    function: str
    text: str
    line: int

    def is_part_of(self, name: str) -> bool:
        """Whether ``name`` is the place's, or that of a class or module around it.

        Our packages may be left out of it.
        """
        module, short = (
            text.removeprefix("crashmq.").removeprefix("engine.")
            for text in (self.module, name)
        )
        return f"{module}.{self.function}.".startswith(f"{short}.")

    @property
    def is_field(self) -> bool:
        """Whether it is a field of a class, with its default."""
        (statement,) = ast.parse(self.text).body[:1]
        return "." in self.function and isinstance(statement, ast.AnnAssign)


@cache
def places() -> tuple[Place, ...]:
    """Every place of the engine, module by module, in the order of their text."""
    found: list[Place] = []
    for path in sorted(_ENGINE.rglob("*.py")):
        parts = path.relative_to(_ENGINE).with_suffix("").parts
        if parts[0] not in NOT_MUTATED and parts[-1] != "__init__":
            module = ".".join(("crashmq.engine", *parts))
            found += places_of(module, path.read_text("utf-8"))
    return tuple(found)


def places_of(module: str, source: str) -> Iterator[Place]:
    """The places of one module's text."""
    lines: dict[str, int] = {}
    for name, statement in _named(ast.parse(source).body, ""):
        lines.setdefault(name, _first_line(statement))
    for name, line in lines.items():
        yield Place(module, name, text_of_place(source, name, module), line)


def _named(body: list[ast.stmt], path: str) -> Iterator[tuple[str, ast.stmt]]:
    for name, statement in definitions(body):
        match statement:
            case ast.ClassDef(body=inner, bases=bases):
                names = {each.id for each in bases if isinstance(each, ast.Name)}
                if not names & {"Protocol", "Enum", "IntEnum"}:
                    yield from _named(inner, f"{path}{name}.")
            case ast.FunctionDef() if name not in _FOR_PEOPLE:
                yield path + name, statement
            case ast.Assign() if _is_a_constant(name):
                yield path + name, statement
            case ast.AnnAssign(value=ast.expr()) if not name.startswith("__"):
                yield path + name, statement


def _is_a_constant(name: str) -> bool:
    return not name.startswith("__")


def _first_line(statement: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(each.lineno for each in decorators)])
