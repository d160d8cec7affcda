from __future__ import annotations

import gc
import importlib
import marshal
from pathlib import Path

import mutant_targets as targets
import pytest
from mutant_targets import Counter, doubled

from crashmq.harness.mutants.edits import edited
from crashmq.harness.mutants.mutation import (
    Edit,
    Mutant,
    MutantApplied,
    MutantError,
    MutantStale,
    MutantUnsupported,
    applied,
    diff_of,
)
from crashmq.models.program import Program, Setup


def edit(function: str, before: str, after: str) -> Edit:
    return Edit("mutant_targets", function, before, after)


def mutant(*edits: Edit) -> Mutant:
    return Mutant("T01", "toy", ("XX-1",), edits, "none", Program(Setup(), ()))


@pytest.mark.slow
def test_an_edit_is_seen_through_names_imported_elsewhere() -> None:
    with applied(mutant(edit("doubled", "number * 2", "number * 20"))):
        assert doubled(1) == 20
        assert targets.doubled(1) == 20

    assert doubled(1) == 2


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_generator_keeps_its_defaults() -> None:
    with applied(mutant(edit("Counter.generated", "yield default", "yield -default"))):
        assert list(Counter().generated()) == [-5, 0]


@pytest.mark.slow
def test_edits_of_several_functions_come_and_go_together() -> None:
    both = mutant(
        edit("doubled", "number * 2", "0"), edit("Counter.unit", "bytes", "pages")
    )

    with applied(both):
        assert (doubled(1), Counter.unit()) == (0, "pages")
    assert (doubled(1), Counter.unit()) == (2, "bytes")


@pytest.mark.slow
def test_two_edits_of_one_function_are_both_made() -> None:
    both = mutant(
        edit("doubled", "number * 2", "number * 4"),
        edit("doubled", "return result", "return -result"),
    )

    with applied(both):
        assert doubled(1) == -4


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_mutant_is_not_applied_twice_but_mutants_of_others_nest() -> None:
    first = mutant(edit("doubled", "number * 2", "0"))
    other = mutant(edit("Counter.unit", "bytes", "pages"))

    with applied(first), applied(other):
        with pytest.raises(MutantApplied, match="already"), applied(first):
            pass
        assert (doubled(1), Counter.unit()) == (0, "pages")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "before", "after", "error", "says"),
    [
        ("doubled", "result", "r", MutantStale, "3 times"),
        ("halved", "x", "y", MutantStale, "'halved' is gone"),
        ("Color.RED", "1", "2", MutantUnsupported, "member of an enum"),
        ("Counter", "(Base)", "", MutantUnsupported, "bases of Counter"),
        ("guarded", "@contextmanager\n", "", MutantUnsupported, "decorator list"),
        ("Options", "most: int", "least: int", MutantUnsupported, "removes .*most"),
        ("Options", "most:", "x: int = 0\n    most:", MutantUnsupported, "the field x"),
        ("doubled", "number * 2", "number *", MutantUnsupported, "not Python"),
        ("doubled", "# The comment", "# A comment", MutantUnsupported, "nothing that"),
        ("LIMIT", "10", "nowhere", MutantUnsupported, "NameError"),
        ("doubled", " ", "x", MutantStale, "`before` is empty"),
        ("doubled", "return reslt", "x", MutantStale, "nearest line is 'return res"),
        ("doubled", "return result", "return\nprint()", MutantUnsupported, "runs"),
        ("multiplier", "* factor", "* 4", MutantUnsupported, "outer variables"),
    ],
)
def test_an_edit_that_cannot_be_made_says_which_and_why(
    function: str, before: str, after: str, error: type[MutantError], says: str
) -> None:
    impossible = mutant(edit(function, before, after))

    with pytest.raises(error, match=says) as caught, applied(impossible):
        pass

    assert "mutant T01, mutant_targets" in str(caught.value)


def test_a_file_changed_after_it_was_imported_is_told_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "short_lived_target.py"
    file.write_text("def one() -> int:\n    return 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("short_lived_target")
    file.write_text("\n\ndef one() -> int:\n    return 1\n")
    late = mutant(Edit("short_lived_target", "one", "return 1", "return 2"))

    with (
        pytest.raises(MutantStale, match="changed after it was imported"),
        applied(late),
    ):
        pass


@pytest.mark.slow
def test_an_outer_variable_still_used_keeps_its_value() -> None:
    with applied(mutant(edit("multiplier", "number * factor", "factor - number"))):
        assert targets.tripled(1) == 2


@pytest.mark.slow
def test_what_a_call_that_is_over_left_in_a_cycle_stops_no_edit() -> None:
    change = mutant(edit("counted_down", "left > number - number", "left > 1"))
    gc.disable()
    try:
        assert targets.counted_down(3) == 0  # `lower` knows itself: only gc finds it
        with applied(change):
            assert targets.counted_down(3) == 0
    finally:
        gc.enable()


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


COPIES = """
from planted.constants import LIMIT, limited
from planted.constants import TWICE as DOUBLE

FOUR_TIMES = DOUBLE * 2


class Reader:
    most = LIMIT

    def read(self, number, most=LIMIT, *, least=-LIMIT):
        return max(limited(number, most), least)
"""


@pytest.mark.slow
def test_a_constant_is_edited_for_all_that_was_made_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "planted").mkdir()
    text = Path(targets.__file__).read_text()
    (tmp_path / "planted" / "constants.py").write_text(text)
    (tmp_path / "planted" / "copies.py").write_text(COPIES)
    monkeypatch.syspath_prepend(tmp_path)
    copies = importlib.import_module("planted.copies")
    constants = importlib.import_module("planted.constants")

    def seen() -> list[int]:
        return [
            *(constants.LIMIT, constants.TWICE, copies.DOUBLE, copies.FOUR_TIMES),
            *(constants.limited(1000), copies.Reader().read(1000)),
            *(copies.Reader().read(-1000), copies.Reader.most),
            *(constants.Outer.double, constants.Options().most),
        ]

    with applied(mutant(Edit("planted.constants", "LIMIT", "10", "100"))):
        assert seen() == [100, 200, 200, 400, 100, 100, -100, 100, 101, 200]

    assert seen() == [10, 20, 20, 40, 10, 10, -10, 10, 11, 20]


@pytest.mark.slow
@pytest.mark.parametrize("function", ["", "Options", "Options.name"])
def test_the_default_of_a_field_is_edited_wherever_the_edit_says_it_is(
    function: str,
) -> None:
    with applied(mutant(edit(function, '"shipped"', '"mutant"'))):
        assert targets.Options().name == "mutant"
        assert targets.Options(3) == targets.Options(3, "mutant")

    assert targets.Options().name == "shipped"


@pytest.mark.slow
@pytest.mark.parametrize(
    "before",
    [
        "first = 1\nsecond = 2\n",
        "\n        first = 1\n        second = 2\n",
        "first   =   1\nsecond = (2)",
    ],
)
def test_lines_are_found_whatever_their_margin_and_layout(before: str) -> None:
    with applied(mutant(edit("Outer.Inner.deep", before, "first = second = 7"))):
        assert targets.Outer.Inner().deep() == 14

    assert targets.Outer.Inner().deep() == 3


@pytest.mark.slow
@pytest.mark.parametrize(
    "before",
    [
        "first = 1\n                second = 2",  # from the middle of a line on
        "first = 1\n                second = 2\n                return first + second",
        "Outer.size:\n                first = 1\n                second = 2",
        "first = 1\nsecond = 2",
        "1\n  second = 2",
    ],
)
def test_lines_copied_from_the_middle_of_one_are_found(before: str) -> None:
    file = Path(targets.__file__).read_text("utf-8")
    assert before in file or before.count("                ") == 0

    after = before.replace("2", "200", 1)
    with applied(mutant(edit("Outer.Inner.deep", before, after))):
        assert targets.Outer.Inner().deep() == 201

    assert targets.Outer.Inner().deep() == 3


@pytest.mark.slow
def test_lines_that_are_moved_out_of_a_block_are_out_of_it() -> None:
    before = "                first = 1\n                second = 2\n"
    after = "                first = 1\n            return 9\n"
    text = "def deep(size):\n    if size:\n        first = 1\n        second = 2\n"

    moved = edited(text, Edit("m", "deep", before, after), "T01")

    assert moved == "def deep(size):\n    if size:\n        first = 1\n    return 9\n"


@pytest.mark.parametrize(
    ("function", "before", "after"),
    [
        ("doubled", "return result", "return result\nresult = 7\nreturn result"),
        ("doubled", "return result", "return result\n    raise ValueError"),
        ("Outer.Inner.deep", "return 0", "return 0\nreturn 7"),
        ("limited", "return min(number, most)", "return (min(number, most))"),
        (
            "remembered",
            "return number + 1",
            "if 0:\n        number = 3\n    return number + 1",
        ),
    ],
)
def test_an_edit_of_what_never_runs_is_refused(
    function: str, before: str, after: str
) -> None:
    with (
        pytest.raises(MutantUnsupported, match="changes nothing that runs"),
        applied(mutant(edit(function, before, after))),
    ):
        pass


def test_one_idle_edit_among_others_is_refused() -> None:
    idle = edit("limited", "return min(number, most)", "return min(number,most)")

    with (
        pytest.raises(MutantUnsupported, match=r"limited: .* changes nothing"),
        applied(mutant(edit("doubled", "number * 2", "number * 3"), idle)),
    ):
        pass


def test_a_mutant_is_shown_as_the_diff_that_is_planted() -> None:
    shown = diff_of(mutant(edit("Outer.Inner.deep", "second   =   2", "second = 3")))

    assert [line for line in shown.splitlines() if line[0] in "+-"] == [
        "--- mutant_targets.py",
        "+++ mutant_targets.py with T01",
        "-                second = 2",
        "+                second = 3",
    ]


@pytest.mark.parametrize(
    "after", ["-" * 60_000 + "1", "(" * 5_000 + "1" + ")" * 5_000, "1\0"]
)
def test_text_that_is_nested_too_deep_is_told_in_a_sentence(after: str) -> None:
    with (
        pytest.raises(MutantUnsupported, match="is not Python"),
        applied(mutant(edit("limited", "min(number, most)", after))),
    ):
        pass


def test_a_whole_body_can_be_replaced() -> None:
    body = "result = number * 2\nassert result % 2 == 0\nreturn result"

    with applied(mutant(edit("doubled", body, "return -number"))):
        assert doubled(4) == -4


def test_a_whole_function_can_be_replaced_its_signature_too() -> None:
    whole = """
        def limited(number: int, most: int = LIMIT) -> int:
            return min(number, most)
    """
    after = "def limited(number: int, most: int = 3, *, off: int = 2) -> int:\n    "

    with applied(mutant(edit("limited", whole, f"{after}return most + off"))):
        assert targets.limited(0) == 5

    assert targets.limited(0) == 0


def test_an_expression_is_found_whatever_its_layout() -> None:
    with applied(mutant(edit("limited", "min( number,most )", "max(number, most)"))):
        assert targets.limited(50) == 50


def test_a_function_under_a_decorator_is_edited_and_its_results_forgotten() -> None:
    targets.remembered(1)

    with applied(mutant(edit("remembered", "+ 1", "+ 2"))):
        assert targets.remembered(1) == 3
    assert targets.remembered(1) == 2


def test_either_part_of_a_property_can_be_edited() -> None:
    with applied(mutant(edit("Counter.limit", "return LIMIT", "return 0"))):
        assert Counter().limit == 0
    with applied(mutant(edit("Counter.limit", "= value", "= value * 2"))):
        counter = Counter()
        counter.limit = 4
        assert counter.total == 8

    assert Counter().limit == 10


@pytest.mark.slow
def test_new_functions_methods_and_imports_are_there_while_the_mutant_is() -> None:
    helped = mutant(
        edit("", "LIMIT = 10\n", "import math\n\nLIMIT = 10\nNEW = 5\n"),
        edit(
            "doubled",
            "return result\n",
            "return helper(NEW)\n\ndef helper(n):\n    return math.sqrt(n * n)\n",
        ),
        edit(
            "Counter",
            "def unit()",
            "def more():\n        return 1\n\n    @staticmethod\n    def unit()",
        ),
    )

    with applied(helped):
        assert doubled(1) == 5.0
        assert Counter.more() == 1  # type: ignore[attr-defined]
    assert not hasattr(targets, "helper")
    assert not hasattr(Counter, "more")


@pytest.mark.slow
def test_super_may_come_and_go() -> None:
    with applied(mutant(edit("Counter.greet", "super().greet() +", ""))):
        assert Counter().greet() == "+counter"
    with applied(
        mutant(
            edit("Counter.count", "return self.__total", "return len(super().greet())")
        )
    ):
        assert Counter().count() == 4


def test_a_whole_method_with_blank_lines_in_it_is_found() -> None:
    source = "class A:\n    def f(self):\n        x = 1\n\n        return x\n"
    whole = "def f(self):\n    x = 1\n\n    return x\n"

    text = edited(source, Edit("m", "A.f", whole, whole.replace("1", "2")), "here")

    assert text == source.replace("1", "2")
