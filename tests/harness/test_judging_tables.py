from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from crashmq.harness.judging import tables
from crashmq.harness.judging.asking import questions
from crashmq.harness.judging.tables import ASKED_ELSEWHERE, DOCS, TABLES, with_table
from crashmq.models.knowledge.facts import Fact, decided_by
from crashmq.models.knowledge.moments import Moment, PullOver
from crashmq.models.laws.reading import pull_is_answered_right
from crashmq.models.laws.registry import declared_laws
from crashmq.models.ops import EVERYTHING


def row_of(table: str, first: str) -> list[str]:
    (row,) = [row for row in table.splitlines() if row.startswith(f"| {first} |")]
    return [cell.strip() for cell in row.strip("|").split("|")]


@pytest.mark.parametrize(("page", "name", "table"), TABLES)
def test_the_docs_say_what_the_declarations_say(
    page: str, name: str, table: Callable[[], str]
) -> None:
    text = (DOCS / page).read_text("utf-8")

    wanted = with_table(text, name, table())

    assert text == wanted, "run python -m crashmq.harness.judging.tables"


def test_a_table_is_written_between_its_comments_alone() -> None:
    page = "a\n<!-- generated: x -->\nold \\1\n<!-- end -->\nb\n<!-- end -->\n"

    written = with_table(page, "x", "new \\1\n")

    assert written == page.replace("old", "new")
    assert with_table(written, "x", "new \\1\n") == written


@pytest.mark.parametrize(
    "page",
    [
        "nothing",
        "<!-- generated: x -->\nwithout an end",
        "<!-- generated: x -->\n<!-- end -->\n<!-- generated: x -->\n<!-- end -->\n",
    ],
)
def test_a_page_without_a_place_for_its_table_is_told_so(page: str) -> None:
    with pytest.raises(ValueError, match="generated: x"):
        with_table(page, "x", "new\n")


def test_the_tables_are_written_into_the_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for page, name, _ in TABLES:
        with (tmp_path / page).open("a") as written:  # a page may have several
            written.write(f"<!-- generated: {name} -->\nstale\n<!-- end -->\n")
    monkeypatch.setattr(tables, "DOCS", tmp_path)

    changed, again = tables.write(), tables.write()

    assert (changed, again) == ([page for page, _, _ in TABLES], [])
    assert "stale" not in (tmp_path / "laws.md").read_text()


def test_a_page_that_lost_its_place_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "architecture.md").write_text("nothing")
    monkeypatch.setattr(tables, "DOCS", tmp_path)

    with pytest.raises(SystemExit, match=r"architecture\.md: the page must say"):
        tables.main()


@pytest.mark.parametrize("law", ASKED_ELSEWHERE)
def test_who_asks_what_the_judge_does_not_names_the_law(law: str) -> None:
    path, _ = ASKED_ELSEWHERE[law]

    text = (DOCS.parent / path).read_text("utf-8")

    assert declared_laws()[law].judge.__name__ in text


def test_every_law_is_asked_at_a_moment_or_elsewhere() -> None:
    asked = {law.id for each in questions().values() for q in each for law in q.laws}

    assert asked.isdisjoint(ASKED_ELSEWHERE)
    assert asked | ASKED_ELSEWHERE.keys() == declared_laws().keys()


def test_every_kind_of_moment_has_its_row() -> None:
    table = tables.when_the_judge_looks()

    assert row_of(table, "`PullOver`")[2] == "FL-7, RD-1, RD-2"
    assert table.count("\n| `") == len(questions())
    assert {kind.__mro__[1] for kind in questions()} == {Moment}


def test_a_fact_names_what_it_excuses_and_where_that_is_still_asked() -> None:
    table = tables.asked_and_excused()

    assert row_of(table, "topic stays")[1:] == [
        Fact.TOPIC_STAYS.value,
        "FL-7, FLT-1 to FLT-3, FLT-6, IX-11, RD-2",
        "RD-1 at `MessagesPulled`",
    ]
    assert row_of(table, "lives")[2:] == [
        "CP-15, DEL-16, DLY-3, DUR-5, DUR-6, PUT-7, PUT-9, REC-14, RUN-8, SVC-1",
        "",
    ]
    assert row_of(table, "no other op")[2:] == ["RUN-6, RUN-9", "RUN-2 at `OpOver`"]
    assert table.count("\n| ") == len(Fact) - len(decided_by(EVERYTHING))
    assert "No fact ever excuses ADM-1 to ADM-3, ADM-5 to ADM-7, CON-3 to CON" in table


def test_after_a_crash_only_the_laws_are_asked_that_no_crash_may_break() -> None:
    table = tables.after_a_crash()

    assert (
        row_of(table, "CP-3")[2]
        == "undamaged log, untouched, files are ours, checkpoint is whole"
    )
    assert "| CQ-1 |" not in table
    assert "after an orderly end alone: CL-2 to CL-5," in table


def test_the_way_from_the_readme_to_the_answer_of_a_pull_is_there() -> None:
    (asked,) = [q for q in questions()[PullOver] if q.laws == (pull_is_answered_right,)]
    way = (DOCS / "laws.md").read_text("utf-8").partition("## How a law is asked")[2]

    assert asked.judge is not None
    for step in ("judge.py", "Judge.ask", "asked_of_reads.py", asked.judge.__name__):
        assert f"{step}`" in way
    assert f"`{pull_is_answered_right.judge.__name__}`" in way
    assert asked.judge.__module__.endswith("asked_of_reads")


def test_a_capability_names_the_laws_that_fall_silent_without_it() -> None:
    table = tables.laws_of_subjects()

    assert (
        row_of(table, "the core")[3] == "PUT-1, RD-1, RD-2, RD-13, REC-4, REC-8, RUN-1"
    )
    assert row_of(table, "`TellsCounts`")[2:] == ["`statistics`", "ST-1"]
    assert row_of(table, "`Searches`")[3].endswith("RD-3, RD-4, RD-8, RD-10 to RD-12")
    assert table.count("\n| ") == 1 + len(EVERYTHING)
