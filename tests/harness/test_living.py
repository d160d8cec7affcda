"""Every function that a module's text made is found, each once, settled or not."""

from __future__ import annotations

import gc
import types
from collections.abc import Iterator

import pytest

from crashmq.harness.mutants.living import functions_of, settle

TEXT = """
def plain(): pass
def outer():
    def inner(): pass
    return inner
class Holder:
    def method(self): pass
held = {"a": outer()}
"""


@pytest.fixture
def module() -> Iterator[types.ModuleType]:
    made = types.ModuleType("made")
    exec(compile(TEXT, "made.py", "exec"), vars(made))
    yield made
    vars(made).clear()  # frozen cycles are not collected


def names_of(module: types.ModuleType) -> list[str]:
    return sorted(each.__qualname__ for each in functions_of(module))


FIRST = ["Holder.method", "outer", "outer.<locals>.inner", "plain"]


def test_what_lived_when_all_was_settled_is_found_and_what_came_later(
    module: types.ModuleType,
) -> None:
    assert names_of(module) == FIRST

    settle()
    later = module.outer()

    assert not any(each is module.plain for each in gc.get_objects())
    assert names_of(module) == sorted([*FIRST, "outer.<locals>.inner"])
    del later, module.held["a"]
    assert names_of(module) == ["Holder.method", "outer", "plain"]


def test_who_settles_twice_finds_each_function_once(module: types.ModuleType) -> None:
    settle()
    settle()

    assert names_of(module) == FIRST
