"""``crashmq report``: what it writes beside the report."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from sample_run import SampleTask

from crashmq.harness.cli import main
from crashmq.reports.mutation_records import HUNTS_FILE
from crashmq.reports.records import EpisodeRecord

store = pytest.importorskip("sample_store", reason="pyarrow is not installed")


def report(*args: object) -> Result:
    return CliRunner().invoke(main, ["report", *map(str, args)])


@pytest.mark.slow
@pytest.mark.parametrize(("break_every", "red"), [(0, []), (50, ["CQ-3"])])
def test_a_run_is_told_to_ci_servers_in_xml(
    tmp_path: Path, break_every: int, red: list[str]
) -> None:
    out = store.write_run(tmp_path / "run", SampleTask(break_every=break_every))

    result = report(out, "--junitxml", tmp_path / "new" / "j.xml")

    suites = ET.parse(tmp_path / "new" / "j.xml").getroot()
    names = ["clean_restart", "power_loss", "the run"]
    assert [suite.get("name") for suite in suites] == names
    assert [one.get("type") for one in suites.iter("failure")] == red
    assert result.exit_code == len(red), result.output


class LongNamed(SampleTask):
    """Two failures whose signatures are longer than a file's name may be."""

    def episode(self, episode_id: int) -> EpisodeRecord:
        row = super().episode(episode_id)
        if row.signature:
            row.signature = f"CQ-3-{'Restart' * 50}{episode_id}"
        return row


@pytest.mark.slow
def test_a_long_signature_has_a_case_file_of_its_own(tmp_path: Path) -> None:
    out = store.write_run(tmp_path / "run", LongNamed(break_every=50), 100)

    result = report(out)

    assert result.exit_code == 1, result.output
    assert len(list((out / "cases").glob("CQ-3-Restart*.case.json"))) == 2


@pytest.mark.slow
def test_an_entry_for_one_scenario_excuses_no_failure_that_others_met_too(
    tmp_path: Path,
) -> None:
    out = store.write_run(tmp_path / "run", SampleTask(break_every=25))
    baseline = tmp_path / "known.toml"
    entry = '[[known]]\nlaw = "CQ-3"\nreason = "open"\nexpires = 9999-12-31\n'
    baseline.write_text(entry + 'scenario = "power_loss"\n')

    one = report(out, "--baseline", baseline)
    baseline.write_text(baseline.read_text() + entry + 'scenario = "clean_restart"\n')
    both = report(out, "--baseline", baseline)

    assert (one.exit_code, both.exit_code) == (1, 0), one.output + both.output
    assert "    met in  clean_restart, power_loss\n" in one.stdout
    assert "    known   " not in one.stdout
    assert "    known   open, until 9999-12-31\n" in both.stdout


@pytest.mark.slow
def test_a_page_for_a_job_is_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = store.write_run(tmp_path / "run", SampleTask(break_every=50))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "page.md"))

    report(out)

    page = (tmp_path / "page.md").read_text()
    assert page == (out / "report.md").read_text()
    assert '"violated": "CQ-3"' in page


def test_a_place_that_cannot_be_written_is_told_before_anything_is_summed_up(
    tmp_path: Path,
) -> None:
    result = report(tmp_path / "none", "--junitxml", tmp_path)

    assert (result.exit_code, result.stdout) == (2, "")
    assert f"{tmp_path} is a directory; name a file in it." in result.stderr


def test_a_report_of_mutants_has_no_xml(tmp_path: Path) -> None:
    (tmp_path / HUNTS_FILE).touch()

    result = report(tmp_path, "--junitxml", tmp_path / "j.xml")

    assert result.exit_code == 2
    assert "--junitxml is for reports of `crashmq soak`." in result.stderr


def test_a_report_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    out = store.write_run(tmp_path / "run", SampleTask(), 60)
    (out / "report.html").mkdir()

    result = report(out)

    assert (result.exit_code, result.stdout) == (4, "")
    assert result.stderr.startswith(f"crashmq: {out} cannot be written: Is a directory")
    assert not list(out.glob(".*"))


@pytest.mark.parametrize(
    "args",
    [
        ("report", "LONG"),
        ("report", "LONG/run"),
        ("nights", "LONG"),
        ("compact", "LONG"),
        ("sql", "LONG", "select 1"),
        ("merge", "LONG", "LONG"),
        ("soak", "power_loss", "--episodes", "9", "--local", "--out", "LONG"),
        ("soak", "power_loss", "--episodes", "9", "--local", "--out", "LONG/run"),
        ("report", "here", "--junitxml", "LONG"),
    ],
)
def test_a_name_that_is_too_long_is_one_sentence(
    tmp_path: Path, args: tuple[str, ...]
) -> None:
    long = str(tmp_path / ("x" * 300))

    result = CliRunner().invoke(main, [arg.replace("LONG", long) for arg in args])

    assert (result.exit_code, result.stdout) == (2, "")
    (sentence,) = result.stderr.splitlines()
    assert "File name too long" in sentence
