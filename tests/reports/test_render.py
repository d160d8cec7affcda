from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from sample_run import PROBES, SampleTask

from crashmq.reports.errors import NotARun
from crashmq.reports.files import write_json

render = pytest.importorskip("crashmq.reports.render", reason="jinja2 is not installed")
aggregates = pytest.importorskip(
    "crashmq.reports.aggregates", reason="pyarrow is not installed"
)
store = pytest.importorskip("sample_store")


def reported(out: Path) -> Any:
    """The report of a run, written as `crashmq report` does."""
    figures = render.collect_figures(aggregates.LocalAggregates(out), out)
    return render.render(figures, out)


CASE = '{\n  "message": "T<0> & ```",\n  "ops": []\n}\n'


@pytest.fixture(scope="module")
def red(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with four violated episodes, and its report."""
    out: Path = store.write_run(
        tmp_path_factory.mktemp("red") / "out", SampleTask(break_every=50)
    )
    (out / "cases").mkdir()
    (out / "cases" / "CQ-3@Restart.case.json").write_text(CASE)
    reported(out)
    return out


@pytest.mark.slow
def test_a_red_run_tells_its_failure_and_all_else_on_one_page(red: Path) -> None:
    page = (red / "report.html").read_text()

    assert "Violated: 1 distinct failure of CQ-3 in 4 of 200 episodes." in page
    assert "IX-1" in page
    assert "queue.never" in page
    assert page.count("<svg") >= 4
    assert len(page) < 200_000


def test_nothing_a_store_says_becomes_markup(red: Path) -> None:
    page = (red / "report.html").read_text()

    assert "put 120 B to T&lt;0&gt;/1" in page
    assert "T<0>" not in page
    assert "<taken>" not in page + (red / "report.md").read_text()


def test_the_page_refers_to_nothing_outside_itself(red: Path) -> None:
    page = (red / "report.html").read_text()

    assert re.search(r"https?:|//cdn|<link|@import|src=", page) is None
    assert re.findall(r"url\(([^)]*)\)", page) == ["#hatch"]


def test_only_the_script_that_filters_may_run_and_without_it_all_is_shown(
    red: Path,
) -> None:
    page = (red / "report.html").read_text()

    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    allowed = (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    )
    assert page.count("<script") == 1
    assert f'http-equiv="Content-Security-Policy" content="{allowed}"' in page
    assert re.findall(r"<([a-z]+)[^>]* hidden", page) == ["p"]
    assert '<tr id="law-CQ-3" data-words="violated">' in page


@pytest.mark.slow
def test_a_saved_case_is_found_by_its_signature_and_can_be_replayed(red: Path) -> None:
    summary = json.loads((red / "summary.json").read_text())

    (failure,) = summary["distinct_failures"]
    assert failure["case"].endswith("cases/CQ-3@Restart.case.json")
    assert f"crashmq replay {failure['case']}" in (red / "report.html").read_text()
    assert summary["exit_code"] == 1


def test_a_page_holds_the_case_file_to_read_and_to_save(red: Path) -> None:
    page, text = (red / "report.html").read_text(), (red / "report.md").read_text()

    saved = re.search(
        r'download="CQ-3@Restart.case.json" href="data:application/json;base64,(.*?)"',
        page,
    )
    assert saved is not None
    assert base64.b64decode(saved[1]).decode() == CASE
    shown = CASE.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    assert f'<pre class="case">{shown.rstrip()}</pre>' in page
    assert f"````json\n{CASE}````\n" in text


def test_a_finding_leads_to_its_law(red: Path) -> None:
    page, text = (red / "report.html").read_text(), (red / "report.md").read_text()

    assert '<a href="#law-CQ-3">CQ-3</a></span>: what CQ-3 promises' in page
    assert page.count('<tr id="law-CQ-3"') == 1
    assert page.count("crashmq explain CQ-3") == text.count("crashmq explain CQ-3") == 1
    summary = json.loads((red / "summary.json").read_text())
    (failure,) = summary["distinct_failures"]
    assert failure["sentence"] == "what CQ-3 promises, in a sentence"


def test_both_reports_tell_how_many_kinds_of_state_starts_found(red: Path) -> None:
    summary = json.loads((red / "summary.json").read_text())
    page, text = (red / "report.html").read_text(), (red / "report.md").read_text()

    found = summary["found_states"]
    assert found > 1
    assert f"<b>{found}</b><span>kinds of state found; the next is a new one:" in page
    assert f"Starts found {found} kinds of state." in text


@pytest.mark.slow
def test_a_page_of_many_long_findings_stays_small(tmp_path: Path) -> None:
    out = store.write_run(tmp_path / "out", SampleTask(break_every=50), 100)
    figures = render.collect_figures(aggregates.LocalAggregates(out), out)
    (one,) = figures.findings
    events = [event | {"step": n} for n, event in enumerate(one.events * 20)]
    one = replace(one, step=100, events=events)
    many = [replace(one, signature=f"CQ-3-{n}") for n in range(300)]
    (out / "cases").mkdir()
    cases = {found.signature: out / "cases" / found.signature for found in many}
    for place in cases.values():
        place.write_text("x" * 10_000)

    render.render(replace(figures, findings=many), out, cases)

    page, text = (out / "report.html").read_text(), (out / "report.md").read_text()
    assert len(page) < 2_000_000
    assert len(text) < 1_000_000
    for told in (page, text):
        assert 10 < told.count("x" * 10_000) < 290
        assert told.lower().count("the case file is too long to be shown here") > 10
        assert all(f"cases/CQ-3-{n}" in told for n in range(300))


def test_a_report_made_again_is_the_same_report(red: Path) -> None:
    names = ("report.html", "report.md", "summary.json")
    before = [(red / name).read_bytes() for name in names]

    reported(red)

    assert [(red / name).read_bytes() for name in names] == before


@pytest.mark.slow
def test_the_summary_says_the_same_to_programs(tmp_path: Path) -> None:
    out = store.write_run(tmp_path / "out", SampleTask())

    summary = reported(out)

    assert json.loads((out / "summary.json").read_text()) == asdict(summary)
    assert (summary.exit_code, summary.violations, summary.episodes) == (0, 0, 200)
    assert summary.vacuous_laws == ["IX-1"]
    assert summary.probes_never_hit == ["queue.never"]
    assert summary.episodes_per_second == 50.0


@pytest.mark.slow
def test_the_report_says_what_excused_which_law(tmp_path: Path) -> None:
    out = store.write_run(tmp_path / "out", SampleTask())

    summary = reported(out)

    excused = sum(SampleTask().episode(n).excuses[0].times for n in range(200))
    page, short = (out / "report.html").read_text(), render.short(excused)
    assert '<th class="upright"><span>alone</span></th>' in page
    assert "Facts that excused nothing: lives, disk worked." in page
    assert f"| alone {short} |" in (out / "report.md").read_text()
    assert summary.mostly_excused == []


def test_a_run_of_a_version_that_kept_no_excuses_has_a_report(tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    out = store.write_old_run(tmp_path / "out", SampleTask())
    for shard in (out / "episodes").iterdir():
        pq.write_table(pq.read_table(shard).drop_columns(["excuses"]), shard)
    declared = json.loads((out / "declared.json").read_text())
    del declared["facts"]
    write_json(out / "declared.json", declared)

    reported(out)

    page = (out / "report.html").read_text()
    assert "None: each law was asked wherever it applied." in page


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0004, "<0.1%"),
        (0.305, "30.5%"),
        (0.996, "99.6%"),
        (0.9996, ">99.9%"),
        (1.0, "100%"),
    ],
)
def test_a_share_is_never_rounded_to_all_or_nothing(share: float, text: str) -> None:
    assert render.part(share) == text


@pytest.mark.slow
def test_a_run_of_the_first_version_has_the_same_report(tmp_path: Path) -> None:
    task = SampleTask(break_every=50)
    old = reported(store.write_old_run(tmp_path / "old", task))
    new = reported(store.write_run(tmp_path / "new", task))

    assert asdict(old) == asdict(new)


@pytest.mark.slow
def test_a_required_probe_that_was_not_hit_is_not_green(tmp_path: Path) -> None:
    out = store.write_run(tmp_path / "out", SampleTask(probes=PROBES[:1]))

    summary = reported(out)

    assert summary.exit_code == 5
    assert summary.missing_required[0].name == "recovery.abnormal"
    assert "required by power_loss" in (out / "report.html").read_text()


def test_a_directory_without_a_run_has_no_report(tmp_path: Path) -> None:
    with pytest.raises(NotARun):
        reported(tmp_path)

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (987, "987"), (1234, "1.2k"), (45_000, "45k"), (3_400_000, "3.4M")],
)
def test_a_count_is_shortened_to_fit_a_box(number: int, text: str) -> None:
    assert render.short(number) == text


@pytest.mark.slow
def test_a_title_names_few_scenarios_and_counts_many() -> None:
    assert render.few(["a", "b"]) == "a, b"
    assert render.few(list("abcde")) == "5 scenarios"


def test_a_page_says_when_where_and_by_what_command_it_was_made(red: Path) -> None:
    page, text = (red / "report.html").read_text(), (red / "report.md").read_text()

    for told in (page, text):
        assert "<code>crashmq soak</code>" in told or "`crashmq soak`" in told
        assert "on here, 4.0 s" in told
    assert "2026-11-24 00:00:00 UTC on here" in page


def test_each_place_that_the_contents_name_is_there(red: Path) -> None:
    page = (red / "report.html").read_text()

    named = re.findall(r'<a href="#([a-z-]+)"', page)
    assert len(named) == 8
    assert all(f'<h2 id="{name}"' in page for name in named)


def test_laws_that_nobody_checked_are_folded_away_if_they_are_many(red: Path) -> None:
    page = (red / "report.html").read_text()

    assert "Never checked in this run: 1 law" in page
    assert page.index("IX-1", page.index('id="laws"')) > page.index("Never checked in")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.04, "0.0 s"), (59.9, "59.9 s"), (245.2, "4 min 5 s"), (21_660, "6 h 1 min")],
)
def test_a_time_is_told_in_two_units_at_most(seconds: float, text: str) -> None:
    assert render.duration(seconds) == text
