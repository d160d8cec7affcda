from __future__ import annotations

import errno
import json
import os
import re
from pathlib import Path

import pytest
from sample_figures import clean
from sample_run import SampleTask

from crashmq.reports.campaigns import campaigns_in
from crashmq.reports.errors import NotARun
from crashmq.reports.nights import night_of, side_by_side
from crashmq.reports.records import LawChecks

render = pytest.importorskip(
    "crashmq.reports.nights_render", reason="pyarrow or jinja2 is not installed"
)
store = pytest.importorskip("sample_store")


def nights_in(directory: Path) -> Path:
    """Three nights; the second one has a bug that breaks every fourth episode."""
    for day, breaks in ((1, 0), (2, 4), (3, 0)):
        task = SampleTask(run_id=f"run{day}", seed=day, break_every=breaks)
        store.write_run(directory / f"2026-11-0{day}-run{day}", task, 120)
    return directory


@pytest.mark.slow
def test_three_nights_are_a_page_that_tells_what_was_new_and_is_resolved(
    tmp_path: Path,
) -> None:
    directory = nights_in(tmp_path)

    found, unreadable = render.read_nights(directory)
    until_two = side_by_side(found[:2])
    render.render_nights(side_by_side(found), directory, unreadable)

    page = (directory / "nights.html").read_text()
    told = json.loads((directory / "nights.json").read_text())
    assert [one.told for one in until_two.failures] == ["new"]
    assert "resolved, last seen 2026-11-02-run2" in page
    assert "resolved, last seen" in (directory / "nights.md").read_text()
    assert [night["counts"]["violated"] for night in told["nights"]] == [0, 30, 0]
    assert told["failures"][0]["episodes"] == [0, 30, 0]
    assert page.count("<svg") == 9
    assert [night["vacuous_laws"] for night in told["nights"]] == [["IX-1"]] * 3
    assert told["silent_laws"][0]["told"] == "never checked in each night"
    assert "Never checked in each night: 1 law<" in page
    text = (directory / "nights.md").read_text()
    assert "- never checked in each night: IX-1\n" in text
    assert unreadable == []


def test_a_law_that_fell_silent_has_its_row_of_nights(tmp_path: Path) -> None:
    nights = [
        night_of(
            f"2026-11-{day:02d}-x",
            clean(laws=[LawChecks("CL-1", "power_loss", 70 * (day < 19), 0, 0)]),
        )
        for day in range(1, 21)
    ]

    render.render_nights(side_by_side(nights), tmp_path)

    page, text = (tmp_path / "nights.html").read_text(), (tmp_path / "nights.md")
    (row,) = re.findall(r"<b>CL-1</b>.*?</tr>", page, re.DOTALL)
    shown = re.findall(r'title="(.*?)"', row)
    assert shown == ["never checked"] * 2 + ["asked"] * 12
    assert "never checked since 2026-11-19-x" in row
    assert "- CL-1: never checked since 2026-11-19-x\n" in text.read_text()


@pytest.mark.slow
def test_a_night_is_told_beside_those_that_its_name_comes_after(tmp_path: Path) -> None:
    place = nights_in(tmp_path) / "2026-11-02-run2"
    store.write_run(tmp_path / "mine", SampleTask(), 60)

    assert [night.name for night in render.nights_before(place)] == ["2026-11-01-run1"]


@pytest.mark.slow
def test_a_run_that_cannot_be_read_is_told_and_left_out(tmp_path: Path) -> None:
    directory = nights_in(tmp_path)
    (directory / "2026-11-01-run1" / "declared.json").write_text("[")

    found, (told,) = render.read_nights(directory)

    assert [night.name for night in found] == ["2026-11-02-run2", "2026-11-03-run3"]
    assert "declared.json cannot be read" in told


def test_a_directory_without_runs_is_told(tmp_path: Path) -> None:
    with pytest.raises(NotARun, match="holds no run that can be read; give a nightly"):
        render.read_nights(tmp_path)


def test_campaigns_of_mutants_are_told_by_their_rates(tmp_path: Path) -> None:
    row = {"name": "60 s", "killed": 8, "of": 10}
    told = {"seed": 7, "code_version": "abc", "by_budget_without_equivalent": [row]}
    for name, text in (("m1", json.dumps(told)), ("m2", "{}"), ("m3", "?")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "operators.json").write_text("{}")
        (tmp_path / name / "summary.json").write_text(text)

    (one,) = campaigns_in(tmp_path)
    nights = side_by_side([night_of("2026-11-01", clean())])
    render.render_nights(nights, tmp_path, (), [one])

    assert (one.name, one.seed, one.rates[0].rate) == ("m1", 7, 0.8)
    assert (
        "| m1 | `abc` | 7 | 60 s | 8 | 10 | 80" in (tmp_path / "nights.md").read_text()
    )
    page = (tmp_path / "nights.html").read_text()
    assert "Machine-made mutants" in page
    assert json.loads((tmp_path / "nights.json").read_text())["campaigns"]


@pytest.mark.slow
def test_a_night_that_cannot_be_looked_at_is_told_and_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = nights_in(tmp_path)
    exists = Path.exists

    def refuse(path: Path) -> bool:  # as for another user; root is let in anywhere
        if path.parent.name == "2026-11-02-run2":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return exists(path)

    monkeypatch.setattr(Path, "exists", refuse)
    found, unreadable = render.read_nights(directory)

    assert [night.name for night in found] == ["2026-11-01-run1", "2026-11-03-run3"]
    (told,) = unreadable
    assert "2026-11-02-run2/run.json cannot be looked at: Permission denied" in told
    assert campaigns_in(directory) == []
