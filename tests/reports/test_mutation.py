"""Hunts for planted bugs, added up by Spark and drawn."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from crashmq.reports.errors import NotARun
from crashmq.reports.files import write_declared
from crashmq.reports.mutation_records import HuntRecord, read_rows, write_rows
from crashmq.reports.records import Declared, ProbeHit

mutation = pytest.importorskip(
    "crashmq.reports.mutation", reason="pyspark is not installed"
)
mutation_render = pytest.importorskip("crashmq.reports.mutation_render")
spark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def a_hunt(mutant: str, law: str = "", **more: Any) -> HuntRecord:
    plain: dict[str, Any] = {
        "title": f"bug {mutant}",
        "component": "CQ",
        "difficulty": 2,
        "policy": "",
        "seed": 0,
        "outcome": "killed" if law else "survived",
        "law": law,
        "elapsed_us": 1_000_000 if law else 9_000_000,
        "signature": f"{law} of {mutant}" if law else "",
        "ops": 3 if law else 0,
        "trigger_ops": 2,
        "states": 10,
    }
    return HuntRecord(mutant, **(plain | more))


HUNTS = [
    a_hunt("A", "CQ-3", is_named=1),
    a_hunt("A", "REC-1", seed=1, elapsed_us=3_000_000),
    a_hunt("B", "CQ-3", elapsed_us=2_000_000),
    a_hunt("B", seed=1),
    a_hunt("CANARY", "CL-1"),
    a_hunt(""),
]
DECLARED = Declared(laws={"CQ-3": "units", "CL-1": "whole <records>"})


def campaign(out: Path, rows: Sequence[HuntRecord] = HUNTS) -> Path:
    out.mkdir(exist_ok=True)
    write_rows(rows, out)
    write_declared(out, DECLARED)
    summary = {
        "mutants": 2,
        "mutants_killed": 2,
        "mutants_killed_by_named_law": 1,
        "verdict": "Killed: 2 of 2 <b>mutants</b>.",
        "exit_code": 0,
        "seeds": 2,
        "median_seconds": 2.0,
        "p95_seconds": None,
        "states": 60,
        "histories": 5,
        "budget_seconds": 9.0,
        "code_version": "c0de",
        "first_seed": 0,
    }
    (out / "summary.json").write_text(json.dumps(summary))
    return out


@pytest.fixture
def hunts(session: Any, tmp_path: Path) -> Any:
    return mutation.read_hunts(session, campaign(tmp_path / "run [1]"))


def sorted_rows(frame: Any) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, frame.collect()))


def test_rows_are_read_as_they_were_written(tmp_path: Path) -> None:
    rows = [a_hunt("A", "CQ-3", probes=[ProbeHit("x.y", 3)], message='say "ä"\n')]
    rows += [a_hunt("A", "CQ-3", seed=2**63 - 1)]
    write_rows(rows, tmp_path)

    assert read_rows(tmp_path) == rows


@pytest.mark.parametrize("text", [None, "{", '{"mutant": 1}', "[]"])
def test_what_holds_no_hunts_is_told_so(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "hunts.jsonl").write_text(text)

    with pytest.raises(NotARun, match="holds no hunts"):
        read_rows(tmp_path)


@pytest.mark.parametrize(
    "wrong",
    [{"difficulty": "3"}, {"title": None}, {"probes": [{"probe": "x", "hits": 0.5}]}],
)
def test_a_value_of_another_type_is_told(tmp_path: Path, wrong: dict[str, Any]) -> None:
    write_rows([a_hunt("A", "CQ-3")], tmp_path)
    path = tmp_path / "hunts.jsonl"
    path.write_text(json.dumps(json.loads(path.read_text()) | wrong) + "\n")

    with pytest.raises(NotARun, match=r"holds no hunts .*'A': \w+ is "):
        read_rows(tmp_path)


class TestOnSpark:
    pytestmark = spark

    def test_totals_count_a_survivor_with_all_of_its_time(self, hunts: Any) -> None:
        rows = mutation.mutant_totals(hunts).orderBy("mutant").collect()

        seen = [(r.mutant, r.hunts, r.kills, r.laws, r.p95_us, r.ops) for r in rows]
        assert seen == [
            ("A", 2, 2, "CQ-3, REC-1", 3_000_000, 3),
            ("B", 2, 1, "CQ-3", 9_000_000, 3),
        ]

    def test_a_curve_falls_with_each_kill_and_leaves_survivors(
        self, hunts: Any
    ) -> None:
        assert sorted_rows(mutation.survival(hunts)) == [
            ("", 1_000_000, 3, 4),
            ("", 2_000_000, 2, 4),
            ("", 3_000_000, 1, 4),
        ]

    def test_the_matrix_knows_which_kills_are_argued(self, hunts: Any) -> None:
        assert sorted_rows(mutation.kill_matrix(hunts)) == [
            ("A", "CQ-3", 1, 1),
            ("A", "REC-1", 1, 0),
            ("B", "CQ-3", 1, 0),
        ]

    def test_a_law_that_killed_nothing_has_a_row(
        self, session: Any, hunts: Any
    ) -> None:
        declared = session.createDataFrame(
            [("CQ-3", "units"), ("CL-1", "whole")], "law string, sentence string"
        )

        assert sorted_rows(mutation.law_kills(hunts, declared)) == [
            ("CL-1", "whole", 0, 0),
            ("CQ-3", "units", 2, 2),
            ("REC-1", "", 1, 1),
        ]

    def test_pairs_of_failures_tell_how_good_buckets_are(
        self, session: Any, tmp_path: Path
    ) -> None:
        rows = [a_hunt("A", "L", signature="s", seed=n) for n in range(3)]
        rows += [a_hunt("B", "L", signature="s")]
        frame = mutation.read_hunts(session, campaign(tmp_path, rows))

        assert sorted_rows(mutation.bucket_pairs(frame)) == [(4, 1, 3, 6, 3)]

    def test_policies_are_compared_by_mutants_and_by_searches(
        self, session: Any, tmp_path: Path
    ) -> None:
        rows = [
            a_hunt("A", "L", policy="ours"),
            a_hunt("A", policy="ours", seed=1),
            a_hunt("A", policy="omit_one"),
        ]
        frame = mutation.read_hunts(session, campaign(tmp_path, rows))

        assert sorted_rows(mutation.policy_totals(frame)) == [
            ("omit_one", 1, 0, 1, 0, 9_000_000, 10),
            ("ours", 1, 1, 2, 1, 1_000_000, 20),
        ]

    @pytest.mark.slow
    def test_the_page_says_what_changed_and_escapes_what_it_prints(
        self, session: Any, tmp_path: Path
    ) -> None:
        older = campaign(tmp_path / "old", [a_hunt("A", "CQ-3"), a_hunt("C", "CQ-3")])
        out = campaign(tmp_path / "new")

        page = mutation_render.campaign_page(session, out, older)
        summary = mutation_render.render_campaign(session, out, older)

        assert [row["mutant"] for row in page.changes] == ["B", "C"]
        assert (page.precision, page.recall) == (None, 0.0)
        assert [row["law"] for row in page.idle_laws] == ["CL-1"]
        assert summary["exit_code"] == 0
        html = (out / "report.html").read_text()
        assert "&lt;b&gt;mutants" in html
        assert "whole &lt;records&gt;" in html
        assert '<path class="curve tone0" d="M' in html
        assert "| A | bug A | 2 of 2 | CQ-3, REC-1 |" in (out / "report.md").read_text()

    @pytest.mark.slow
    def test_without_an_older_run_nothing_is_said_of_change(
        self, session: Any, tmp_path: Path
    ) -> None:
        out = campaign(tmp_path / "new")

        mutation_render.render_campaign(session, out)

        assert "No older run was given" in (out / "report.html").read_text()
