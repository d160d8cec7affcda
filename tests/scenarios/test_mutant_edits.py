from __future__ import annotations

import marshal
from pathlib import Path

import mutant_targets as targets
import pytest
from mutant_targets import Counter, doubled

from models.program import Program, Setup
from scenarios.mutation import (
    Edit,
    Mutant,
    MutantApplied,
    MutantError,
    MutantStale,
    MutantUnsupported,
    applied,
)


def edit(function: str, before: str, after: str) -> Edit:
    return Edit("mutant_targets", function, before, after)


def mutant(*edits: Edit) -> Mutant:
    return Mutant("T01", "toy", ("XX-1",), edits, "none", Program(Setup(), ()))


def test_an_edit_is_seen_through_names_imported_elsewhere() -> None:
    with applied(mutant(edit("doubled", "number * 2", "number * 20"))):
        assert doubled(1) == 20
        assert targets.doubled(1) == 20

    assert doubled(1) == 2


@pytest.mark.parametrize(
    ("function", "before", "after", "use", "shipped", "mutated"),
    [
        ("Counter.count", "+= self.__step", "-= self.__step", "count", 1, -1),
        (
            "Counter.greet",
            "+counter",
            "+mutant",
            "greet",
            "base+counter",
            "base+mutant",
        ),
        ("Counter.unit", "bytes", "pages", "unit", "bytes", "pages"),
        ("Counter.named", "cls.__name__", "'other'", "named", "Counter", "other"),
    ],
)
def test_methods_of_every_kind_can_be_edited(
    function: str, before: str, after: str, use: str, shipped: object, mutated: object
) -> None:
    with applied(mutant(edit(function, before, after))):
        assert getattr(Counter(), use)() == mutated

    assert getattr(Counter(), use)() == shipped


def test_a_read_only_property_can_be_edited() -> None:
    with applied(mutant(edit("Counter.total", "self.__total", "self.__total + 7"))):
        assert Counter().total == 7

    assert Counter().total == 0


def test_a_generator_keeps_its_defaults() -> None:
    with applied(mutant(edit("Counter.generated", "yield default", "yield -default"))):
        assert list(Counter().generated()) == [-5, 0]


def test_edits_of_several_functions_come_and_go_together() -> None:
    both = mutant(
        edit("doubled", "number * 2", "0"), edit("Counter.unit", "bytes", "pages")
    )

    with applied(both):
        assert (doubled(1), Counter.unit()) == (0, "pages")
    assert (doubled(1), Counter.unit()) == (2, "bytes")


def test_two_edits_of_one_function_are_both_made() -> None:
    both = mutant(
        edit("doubled", "number * 2", "number * 4"),
        edit("doubled", "return result", "return -result"),
    )

    with applied(both):
        assert doubled(1) == -4


def test_afterwards_every_function_has_its_own_code_back_even_after_an_error() -> None:
    before = (doubled.__code__, marshal.dumps(doubled.__code__))

    with (
        pytest.raises(ZeroDivisionError),
        applied(mutant(edit("doubled", "number * 2", "number // 0"))),
    ):
        doubled(1)

    assert doubled.__code__ is before[0]
    assert marshal.dumps(doubled.__code__) == before[1]


def test_a_mutant_whose_second_edit_is_stale_leaves_the_first_function_alone() -> None:
    stale = mutant(edit("doubled", "number * 2", "0"), edit("Counter.unit", "gone", ""))

    with pytest.raises(MutantStale, match=r"Counter\.unit.*0 times"), applied(stale):
        pass

    assert doubled(1) == 2


def test_a_mutant_is_not_applied_twice_but_mutants_of_others_nest() -> None:
    first = mutant(edit("doubled", "number * 2", "0"))
    other = mutant(edit("Counter.unit", "bytes", "pages"))

    with applied(first), applied(other):
        with pytest.raises(MutantApplied, match="already"), applied(first):
            pass
        assert (doubled(1), Counter.unit()) == (0, "pages")


@pytest.mark.parametrize(
    ("function", "before", "after", "error", "says"),
    [
        ("doubled", "result", "r", MutantStale, "3 times"),
        ("halved", "x", "y", MutantStale, "'halved' is gone"),
        ("LIMIT", "10", "11", MutantUnsupported, "statements of a module"),
        ("Counter", "bytes", "pages", MutantUnsupported, "statements of a module"),
        ("guarded", "yield 1", "yield 2", MutantUnsupported, "decorated"),
        ("Counter.limit", "LIMIT", "0", MutantUnsupported, "read-only"),
        ("doubled", "number: int", "number: int = 3", MutantUnsupported, "signature"),
        ("doubled", "number * 2", "number *", MutantUnsupported, "not Python"),
        (
            "doubled",
            "return result",
            "return\nx = 1",
            MutantUnsupported,
            "one function",
        ),
        ("tripled", "* factor", "* 4", MutantUnsupported, "outer variables"),
    ],
)
def test_an_edit_that_cannot_be_made_says_which_and_why(
    function: str, before: str, after: str, error: type[MutantError], says: str
) -> None:
    impossible = mutant(edit(function, before, after))

    with pytest.raises(error, match=says) as caught, applied(impossible):
        pass

    assert f"mutant T01, mutant_targets.{function}" in str(caught.value)


def test_a_file_changed_after_it_was_imported_is_told_as_such(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other = "def tripled(number):\n    return number * 2\n"
    monkeypatch.setattr("inspect.getsource", lambda _: other)
    late = mutant(edit("doubled", "number * 2", "0"))

    with (
        pytest.raises(MutantStale, match="changed after it was imported"),
        applied(late),
    ):
        pass


def test_an_outer_variable_still_used_keeps_its_value() -> None:
    with applied(mutant(edit("tripled", "number * factor", "factor - number"))):
        assert targets.tripled(1) == 2


def test_a_mutants_traceback_names_the_mutant_and_the_shipped_line() -> None:
    with (
        pytest.raises(ZeroDivisionError) as caught,
        applied(mutant(edit("doubled", "number * 2", "number // 0"))),
    ):
        doubled(1)

    frame = caught.traceback[-1]
    shipped = Path(targets.__file__).read_text().splitlines()
    assert frame.frame.code.raw.co_filename == "<mutant T01 of mutant_targets>"
    assert shipped[frame.lineno] == "    result = number * 2"
