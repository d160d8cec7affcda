from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from sample_figures import DECLARED, clean, finding, point

from crashmq.reports.figures import Figures
from crashmq.reports.page import (
    Page,
    crash_name,
    detail_of,
    law_rows,
    op_bars,
    page_of,
    tone,
)
from crashmq.reports.records import ExcuseCount, LawChecks, OpCount
from crashmq.reports.summary import summarise


def page(figures: Figures) -> Page:
    return page_of(figures, summarise(figures, {}))


def test_a_file_kind_no_crash_met_has_its_column() -> None:
    cells = page(clean()).crashes_by_file.cells

    counts = {(cell.row, cell.column): cell.count.tried for cell in cells}
    assert counts["write", "commitlog"] == 10
    assert counts["sync", "checkpoint"] == 0


def test_an_action_nobody_foresaw_has_its_row() -> None:
    chart = page(clean(crash_points=[point(action="rename")])).crashes_by_file

    assert [label.text for label in chart.rows][-1] == "rename"


def test_crashes_at_one_place_are_added_up() -> None:
    points = [point(violated=1), point(survivors="none", crashes=4)]

    chart = page(clean(crash_points=points)).crashes_by_op

    assert [
        (c.count.tried, c.count.violated) for c in chart.cells if c.count.tried
    ] == [(14, 1)]


def test_a_crash_without_a_disk_action_is_counted_beside_the_map() -> None:
    points = [point(), point(action="none", file_kind="none", crashes=4, violated=1)]

    shown = page(clean(crash_points=points))

    assert sum(cell.count.tried for cell in shown.crashes_by_file.cells) == 10
    assert (shown.crashes_elsewhere.tried, shown.crashes_elsewhere.violated) == (4, 1)


def test_an_op_no_crash_met_is_named() -> None:
    assert page(clean(crash_points=[])).ops_never_crashed == ["PutMessage"]
    assert page(clean()).ops_never_crashed == []


def test_survivors_are_named_where_power_was_lost() -> None:
    assert crash_name(point()) == "power_loss, hashed"
    assert crash_name(point(kind="process_kill")) == "process_kill"


@pytest.mark.parametrize(
    ("numbers", "state"),
    [
        ((0, 0, 0), "vacuous"),
        ((9, 0, 0), "checked"),
        ((9, 0, 1), "unknown"),
        ((9, 2, 1), "violated"),
    ],
)
def test_a_law_is_as_bad_as_its_worst_check(
    numbers: tuple[int, int, int], state: str
) -> None:
    laws = [LawChecks("CL-1", "power_loss", *numbers)]

    (row,) = law_rows(clean(laws=laws))

    assert (row.state, row.cells[0].state, row.cells[0].required) == (
        state,
        state,
        True,
    )


def test_laws_come_by_their_numbers_with_their_sums() -> None:
    laws = [LawChecks(f"CL-{n}", "power_loss", n, 0, 0) for n in (10, 9)]

    rows = law_rows(clean(laws=laws))

    told = [(row.law, row.whole.checks, row.asked_in) for row in rows]
    assert told == [("CL-9", 9, 1), ("CL-10", 10, 1)]


def test_an_op_that_never_ran_has_an_empty_bar() -> None:
    bars = op_bars(clean(ops=[OpCount("PutMessage", "PUT_OK", 3)])).bars

    assert [(bar.label.text, bar.total) for bar in bars] == [
        ("PutMessage", 3),
        ("During", 0),
    ]


@pytest.mark.parametrize(
    ("status", "wanted"),
    [
        ("PUT_OK", "good"),
        ("Skipped", "idle"),
        ("PUT_OK+Crashed", "crash"),
        ("Refused", "odd"),
        ("Failed+Crashed", "bad"),
    ],
)
def test_the_worst_part_of_a_status_colours_it(status: str, wanted: str) -> None:
    assert tone(status) == wanted


def test_a_long_trace_is_cut_around_its_breach() -> None:
    events: list[dict[str, Any]] = [{"step": n} for n in range(-1, 100)]
    figures = clean(findings=[finding(step=80, events=events)])

    (card,) = page(figures).violated

    assert [event["step"] for event in card.events] == list(range(40, 84))
    assert (card.events_before, card.events_after) == (41, 16)
    assert card.sentence == "every record decodes"


def test_only_the_first_of_very_many_findings_have_their_traces() -> None:
    many = [finding(signature=f"{n}", events=[{"step": 2}]) for n in range(40)]

    shown = page(clean(findings=many)).violated

    assert [len(card.events) for card in shown] == [1] * 30 + [0] * 10


def test_a_short_trace_is_shown_from_the_start_of_the_store_on() -> None:
    events: list[dict[str, Any]] = [{"step": n} for n in range(-1, 4)]

    (card,) = page(clean(findings=[finding(events=events)])).violated

    assert card.events == events
    assert (card.events_before, card.events_after) == (0, 0)


@pytest.mark.parametrize(
    ("setup", "told"),
    [
        ('{"log_file_size": 8192, "cleans": false}', "log_file_size 8192"),
        ('{"log_file_size": 4096, "cleans": false}', "all settings as usual"),
        ('{"brokers": 2}', "brokers 2"),
        ("{}", ""),
    ],
)
def test_of_a_store_only_what_is_unusual_is_told(setup: str, told: str) -> None:
    (card,) = page(clean(findings=[finding(setup=setup)])).violated

    assert card.setup == told


@pytest.mark.parametrize(
    ("message", "detail"),
    [
        (
            "CL-1 (I1), every record decodes:\n  byte 7: 0\n  byte 9: 1",
            "byte 7: 0\nbyte 9: 1",
        ),
        ("the law raised KeyError", "the law raised KeyError"),
        ("CL-1 (I1) alone", "CL-1 (I1) alone"),
        ("", ""),
    ],
)
def test_a_message_does_not_say_its_law_twice(message: str, detail: str) -> None:
    assert detail_of(finding(message=message)) == detail


def test_a_probe_nobody_hit_is_among_the_unhit() -> None:
    assert [row.probe for row in page(clean()).probes_hit] == ["log.roll"]
    missing = [row for row in clean().probes if row.hits < 0]
    assert page(clean(probes=missing)).probes_hit == []


def test_excuses_are_shown_by_law_and_fact_the_most_excused_law_first() -> None:
    excuses = [
        ExcuseCount("CL-1", "alone", 20),
        ExcuseCount("CL-1", "strange", 10),
        ExcuseCount("RD-2", "strange", 5),
    ]
    laws = DECLARED.laws | {"RD-2": "a pull is answered"}

    shown = page(clean(excuses=excuses, declared=replace(DECLARED, laws=laws))).excuses

    assert shown.facts == {"alone": "nothing else happened", "strange": ""}
    assert shown.never == ["lives"]
    rows = [(r.law, r.asked, r.excused, r.share, r.cells) for r in shown.rows]
    assert rows == [
        ("RD-2", 0, 5, 1.0, {"alone": 0, "strange": 5}),
        ("CL-1", 70, 30, 0.3, {"alone": 20, "strange": 10}),
    ]
    assert [row.is_mostly_excused for row in shown.rows] == [True, False]


def test_checks_of_all_scenarios_stand_against_the_excuses() -> None:
    laws = [LawChecks("CL-1", name, 45, 0, 0) for name in ("a", "b")]
    excuses = [ExcuseCount("CL-1", "alone", 10)]

    (row,) = page(clean(laws=laws, excuses=excuses)).excuses.rows

    assert (row.asked, row.share) == (90, 0.1)
