"""The matrix of answers: no cell is empty, and what it says is so.

For each field of what a store answers, and each situation, a store lies about that
field there, upward and downward; one of the laws that the cell names must notice.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from click.testing import CliRunner

from crashmq.harness.cli import main
from crashmq.harness.episodes.episode import run_program
from crashmq.harness.judging import matrix
from crashmq.harness.judging.matrix import (
    BOUNDS,
    REASONS,
    SITUATIONS,
    Cell,
    cells,
    fields_of_answers,
)
from crashmq.harness.listing.matrix import empty, lines
from crashmq.harness.mutants.mutation import Edit, Mutant, applied
from crashmq.models.laws.registry import declared_laws
from crashmq.models.ops import (
    Crash,
    Damage,
    DeleteTopic,
    DiskFault,
    During,
    LookMessage,
    Op,
    PullMessage,
    PutMessage,
    QueryMessage,
    Restart,
    RunService,
    SearchOffset,
    Shutdown,
    Together,
)
from crashmq.models.program import Program, Setup
from crashmq.models.verdict import Outcome

KEYED = PutMessage("T0", 0, 16, keys="a b")
OTHER = PutMessage("T1", 0, 16)
REPUT = RunService("reput")
INDEXED = Setup(index_slots=8, index_entries=20)
SERVES = Setup(index_slots=8, index_entries=20, on_damage="serve")
STOCKED = (KEYED, KEYED, KEYED, REPUT)
FAILS = During(OTHER, 1, DiskFault("write", "EIO", path="consumequeue"))
DAMAGED = (Shutdown(), Damage("commitlog[0]", "flip", at=235), Restart())


@dataclass(frozen=True)
class Told:
    """An answer: what asks for it, and where the subject makes it."""

    read: Op
    verb: str


PULLED = Told(PullMessage("T0", 0, 0), "pull")
ASKED = {
    "Pulled": PULLED,
    "Looked": Told(LookMessage(0), "look"),
    "Searched": Told(SearchOffset("T0", 0, 0), "search"),
    "Queried": Told(QueryMessage("T0", "a"), "query"),
}
_STATUS = "PULL_STATUSES[result.status.value],"
_LOOKED = "Looked(self._store.look_message_by_offset(phy_offset))"
_QUERIED = "Queried(result.messages)"
LIES: dict[str, list[tuple[str, str]]] = {
    "Pulled.status": [
        (_STATUS, "'NO_MATCHED_MESSAGE',"),
        (_STATUS, "'OFFSET_OVERFLOW_ONE',"),
    ],
    **{
        f"Pulled.{name}": [
            (f"result.{name},", f"result.{name} + 1,"),
            (f"result.{name},", f"result.{name} - 1,"),
        ]
        for name in ("next_begin_offset", "min_offset", "max_offset")
    },
    "Pulled.messages": [
        ("result.messages,", "result.messages[:-1],"),
        ("result.messages,", "result.messages + result.messages[:1],"),
        ("result.messages,", "result.messages[::-1],"),
    ],
    "Looked.message": [
        (_LOOKED, "Looked(None)"),
        (_LOOKED, _LOOKED.replace("phy_offset)", "phy_offset)[:-1]")),
    ],
    "Searched.queue_offset": [
        ("Searched(found,", "Searched(found + 1,"),
        ("Searched(found,", "Searched(found - 1,"),
    ],
    "Searched.stored_at": [
        ("stored_at, earliest)", "stored_at + 1, earliest)"),
        ("stored_at, earliest)", "stored_at - 1, earliest)"),
    ],
    "Searched.earliest": [
        ("stored_at, earliest)", "stored_at, earliest + 1)"),
        ("stored_at, earliest)", "stored_at, earliest - 1)"),
    ],
    "Queried.messages": [
        (_QUERIED, "Queried(result.messages[:-1])"),
        (_QUERIED, "Queried(result.messages * 2)"),
    ],
}


def program_of(situation: str, read: Op) -> Program:
    """A store that is read in a situation, and never before it."""
    ops: dict[str, tuple[Op, ...]] = {
        "calm": (*STOCKED, read),
        "beside others": (*STOCKED, Together((OTHER, read))),
        "amid a stop": (*STOCKED, Together((read, Shutdown()))),
        "amid deletion": (*STOCKED, Together((read, DeleteTopic("T0")))),
        "before a crash": (
            *STOCKED,
            During(Together((read, OTHER, OTHER)), 2, Crash("process_kill")),
        ),
        "around damage": (*STOCKED, *DAMAGED, read),
        "after a fault": (*STOCKED, FAILS, REPUT, read),
    }
    setup = SERVES if situation == "around damage" else INDEXED
    return Program(setup, ops[situation])


OF_STORES = [
    cell for cell in cells() if cell.field.split(".")[0] in ASKED and cell.is_bounded
]


def test_no_cell_is_empty_and_no_reason_is_left_over() -> None:
    assert empty() == []


def test_each_law_of_the_matrix_is_one() -> None:
    assert {law for law, _ in BOUNDS} <= {*declared_laws()}


def test_each_field_that_a_law_bounds_is_one_of_an_answer() -> None:
    bounded = {name for named in BOUNDS.values() for name in named}

    assert bounded <= {*fields_of_answers()}
    assert {field for field, _ in REASONS} <= {*fields_of_answers()}
    assert {name for _, name in REASONS} <= {one.name for one in SITUATIONS}


@pytest.mark.slow
@pytest.mark.parametrize("situation", [one.name for one in SITUATIONS])
@pytest.mark.parametrize("told", ASKED.values(), ids=ASKED)
def test_an_honest_store_is_passed(situation: str, told: Told) -> None:
    result = run_program(program_of(situation, told.read), keep_trace=False)

    assert result.outcome is Outcome.PASSED, result.message


@pytest.mark.slow
@pytest.mark.parametrize(
    "cell", OF_STORES, ids=lambda cell: f"{cell.field} {cell.situation}"
)
def test_a_lie_about_a_field_is_noticed_by_a_law_of_its_cell(cell: Cell) -> None:
    told = ASKED[cell.field.split(".")[0]]
    laws = {law for law, _ in cell.laws}
    for before, after in LIES[cell.field]:
        edit = Edit(
            "crashmq.harness.subjects.python_store",
            f"PythonStore.{told.verb}",
            before,
            after,
        )
        with applied(Mutant("lie", "misreports", (), (edit,))):
            program = program_of(cell.situation, told.read)
            result = run_program(program, keep_trace=False)

        assert result.law in laws, (after, result.law, result.message)


def test_the_matrix_is_printed() -> None:
    result = CliRunner().invoke(main, ["list", "laws", "--matrix"])

    assert result.exit_code == 0
    assert "Pulled.status" in result.stdout
    assert "  beside others   RD-5" in result.stdout
    assert "EMPTY" not in result.stdout
    assert result.stdout.splitlines()[-1].endswith("crashmq list laws")


def test_an_empty_cell_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    fewer = {key: of for key, of in BOUNDS.items() if key[0] != "RD-5"}
    monkeypatch.setattr(matrix, "BOUNDS", fewer)

    result = CliRunner().invoke(main, ["list", "laws", "--matrix"])

    assert result.exit_code == 1
    assert "EMPTY  Pulled.status, beside others: no law bounds it" in result.stdout


def test_a_reason_that_a_law_has_overtaken_is_a_finding(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    more = {**REASONS, ("Pulled.status", "calm"): "who knows"}
    monkeypatch.setattr(matrix, "REASONS", more)

    assert empty() == ["Pulled.status, calm"]


def test_the_matrix_is_of_laws_alone() -> None:
    result = CliRunner().invoke(main, ["list", "probes", "--matrix"])

    assert result.exit_code == 2
    assert "crashmq list laws --matrix" in result.stderr


def test_each_line_names_a_field_or_a_situation() -> None:
    told = [line.strip() for line in lines()]

    assert len(told) == 1 + len([*fields_of_answers()]) * (1 + len(SITUATIONS))
