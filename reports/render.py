"""The report of a run: collects its figures, judges it, and writes three files.

``report.html`` is a single file that opens offline, without fonts or references, and
holds the case files. Its one script filters findings and rows; without it all are
there, and no other script may run. ``report.md`` is a short version;
``summary.json`` is for programs. The templates escape every text of a store.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from crashmq.reports.aggregates import Aggregates
from crashmq.reports.embedded import as_html, as_markdown, read_cases
from crashmq.reports.figures import Figures, Finding
from crashmq.reports.files import read_declared, read_run_file, write_json, write_text
from crashmq.reports.page import page_of
from crashmq.reports.places import Place, listed
from crashmq.reports.records import LawChecks, OpCount, ProbeHits
from crashmq.reports.run_dir import elapsed_of, read_sessions
from crashmq.reports.summary import Summary, summarise

HTML_FILE = "report.html"
MARKDOWN_FILE = "report.md"
SUMMARY_FILE = "summary.json"

_TEMPLATES = Path(__file__).parent / "templates"


class _Code(str):
    """Text that is already a code span of Markdown."""

    __slots__ = ()


def render(
    figures: Figures, out: Place, cases: Mapping[str, Place] | None = None
) -> Summary:
    """Write the report of the run in ``out``, replacing an older one.

    Args:
        figures: the run's, from ``collect_figures``.
        out: the run's directory.
        cases: the saved case files by signature, which the report holds and whose
            replay commands it says; None: those in ``out/cases`` named after their
            signature.
    """
    saved = cases_in(out, figures.findings) if cases is None else cases
    summary = summarise(figures, {key: str(place) for key, place in saved.items()})
    files = read_cases(figures.findings, saved)
    values = {"page": page_of(figures, summary), "sessions": read_sessions(out)}
    pages, texts = environments()
    page = pages.get_template("report.html").render(values, files=as_html(files))
    write_text(out / HTML_FILE, page)
    text = texts.get_template("report.md").render(values, files=as_markdown(files))
    write_text(out / MARKDOWN_FILE, text)
    write_json(out / SUMMARY_FILE, asdict(summary))
    return summary


def cases_in(out: Place, found: list[Finding]) -> dict[str, Place]:
    """The case files of ``out/cases`` that are named after a signature."""
    names = {failure.signature: f"{failure.signature}.case.json" for failure in found}
    there = {path.name: path for path in listed(out / "cases", "*.case.json")}
    return {key: there[name] for key, name in names.items() if name in there}


def collect_figures(aggregates: Aggregates, out: Place) -> Figures:
    """Every table of the report of the aggregated run in ``out``.

    Raises:
        NotARun: no run was written to ``out``.
    """
    run, declared, sums = read_run_file(out), read_declared(out), aggregates.sums()
    ops = {row.op for row in sums["ops"]}
    probes = {row.probe for row in sums["probes"]}
    laws = {row.law for row in sums["laws"]}
    return Figures(
        run=run,
        declared=declared,
        elapsed_s=elapsed_of(out),
        digest=aggregates.digest(),
        scenarios=sums["scenarios"],
        ops=sums["ops"] + [OpCount(op, "", 0) for op in declared.ops if op not in ops],
        crash_points=sums["crash_points"],
        probes=sums["probes"]
        + [ProbeHits(name, "", 0, 0) for name in declared.probes if name not in probes],
        laws=sums["laws"]
        + [LawChecks(law, "", 0, 0, 0) for law in declared.laws if law not in laws],
        excuses=sums["excuses"],
        states=sums["states"],
        findings=sorted(
            aggregates.findings(),
            key=lambda f: (f.outcome != "violated", -f.episodes, f.signature),
        ),
    )


def environments() -> tuple[Environment, Environment]:
    """The Jinja environments for HTML and for Markdown."""
    return _html(), _markdown()


def _html() -> Environment:
    environment = _with_filters(
        Environment(
            loader=FileSystemLoader(_TEMPLATES),
            autoescape=True,
            finalize=_without_controls,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
        )
    )
    script = (_TEMPLATES / "filter.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    environment.globals |= {
        "filter_script": script,
        "filter_digest": f"sha256-{digest}",
    }
    return environment


def _markdown() -> Environment:
    return _with_filters(
        Environment(
            loader=FileSystemLoader(_TEMPLATES),
            autoescape=False,  # for HTML; `finalize` escapes for Markdown instead
            finalize=_plain_in_markdown,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
        )
    )


def _with_filters(environment: Environment) -> Environment:
    environment.filters |= {
        "thousands": lambda number: f"{number:,}",
        "short": short,
        "percent": lambda share: f"{share:.1%}" if share < 0.995 else "100%",
        "part": part,
        "few": few,
        "duration": duration,
        "command": lambda words: " ".join(map(shlex.quote, words)),
        "json": lambda value: json.dumps(value, ensure_ascii=False),
        "code": _code,
        # The content of an element, where a quotation mark may stay as it is.
        "content": partial(html.escape, quote=False),
        "fenced": _Code,
    }
    return environment


def few(names: Sequence[str]) -> str:
    """Up to four names; of more, how many scenarios there are."""
    return ", ".join(names) if len(names) <= 4 else f"{len(names)} scenarios"


def short(number: int) -> str:
    """A count in at most five characters: 987, 1.2k, 45k, 3.4M."""
    for size, unit in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if number >= size:
            scaled = number / size
            return f"{scaled:.1f}{unit}" if scaled < 9.95 else f"{scaled:.0f}{unit}"
    return str(number)


def duration(seconds: float) -> str:
    """A duration in at most two units: 12.3 s, 4 min 5 s, 6 h 1 min."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def part(share: float) -> str:
    """A share in percent; 0 % and 100 % only if it is exactly that."""
    if 0 < share < 0.001:
        return "<0.1%"
    if 0.999 < share < 1:
        return ">99.9%"
    return f"{share:.1%}" if share < 1 else "100%"


def _code(text: Any) -> _Code:
    plain = " ".join(str(text).replace("`", "'").replace("|", "\\|").split())
    return _Code(f"`{plain}`" if plain else "")


def _without_controls(value: Any) -> Any:
    """Escape control characters and those that change the direction of writing.

    ``models.printable`` does the same for one line; this package imports no other.
    """
    if not isinstance(value, str) or value.isprintable():
        return value
    shown = "".join(
        sign
        if sign.isprintable() or sign == "\n"
        else sign.encode("unicode_escape").decode("ascii")
        for sign in value
    )
    return type(value)(shown)  # ``Markup`` of a template stays what it is


def _plain_in_markdown(value: Any) -> Any:
    """Escape what Markdown or HTML would read as markup, in every printed value."""
    value = _without_controls(value)
    if isinstance(value, _Code) or not isinstance(value, str):
        return value
    escaped = value.replace("&", "&amp;").replace("<", "&lt;")
    return re.sub(r"([\\`*_\[\]|#])", r"\\\1", " ".join(escaped.split()))
