"""The page that compares the runs of a directory: reads them, and writes three files.

Each run is aggregated from its manifests, as its own report is, so a run copied from
another machine, or never reported, counts as well. A run that cannot be read is named
and left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from crashmq.reports.aggregates import LocalAggregates
from crashmq.reports.campaigns import Campaign
from crashmq.reports.charts import Columns, columns
from crashmq.reports.errors import BadRequest, NotARun
from crashmq.reports.figures import Figures
from crashmq.reports.files import RUN_FILE, write_json, write_text
from crashmq.reports.nights import Night, Nights, date_of, night_of, without_earlier
from crashmq.reports.places import Place, is_there, listed
from crashmq.reports.render import collect_figures, environments
from crashmq.reports.run_dir import read_sessions
from crashmq.reports.silent_laws import silent_laws

HTML_FILE = "nights.html"
MARKDOWN_FILE = "nights.md"
JSON_FILE = "nights.json"
_SHOWN_MAX = 14  # nights that have a column in the table of failures


@dataclass(frozen=True, slots=True)
class Panel:
    """One chart of a value over the nights: its title, columns, and the last value."""

    title: str
    chart: Columns
    last: float | None


def nights_before(place: Place) -> list[Night]:
    """The readable runs in the same directory whose names come before a run's.

    Only names that begin with a date count (``date_of``), so that their order is that
    of time.
    """
    nights = []
    for other in listed(place.parent):
        if date_of(other.name) and other.name < place.name:
            with suppress(BadRequest):
                nights.append(_read(other))
    return nights


def read_nights(directory: Place) -> tuple[list[Night], list[str]]:
    """The runs in a directory, and a sentence for each that cannot be read.

    Raises:
        NotARun: none of them can be read.
    """
    nights, unreadable = [], []
    for place in listed(directory):
        try:
            if is_there(place / RUN_FILE):
                nights.append(_read(place))
        except BadRequest as error:
            unreadable.append(str(error))
    if not nights:
        why = f": {unreadable[0]}" if unreadable else "; give a nightly soak's --out."
        raise NotARun(f"{directory} holds no run that can be read{why}")
    return nights, unreadable


def revisions_of_nights(directory: Place) -> list[str]:
    """The revisions that ran the nights in a directory, by when they began.

    Raises:
        NotARun: none of them can be read.
    """
    nights, _ = read_nights(directory)
    ordered = sorted(nights, key=lambda night: (night.when, night.name))
    return [night.run["revision"] for night in ordered if night.run["revision"]]


def _read(place: Place) -> Night:
    return one_night(place, collect_figures(LocalAggregates(place), place))


def one_night(place: Place, figures: Figures) -> Night:
    """An aggregated run as a night."""
    sessions = read_sessions(place)
    if not sessions:
        return night_of(place.name, figures)
    return night_of(place.name, figures, sessions[0].began, sessions[-1].revision)


def render_nights(
    nights: Nights,
    directory: Place,
    unreadable: Sequence[str] = (),
    campaigns: Sequence[Campaign] = (),
) -> None:
    """Write the page of these nights; an older one is replaced.

    Args:
        nights: the runs, side by side.
        directory: where to write it.
        unreadable: a sentence for each run that is left out.
        campaigns: of machine-made mutants, by name.
    """
    shown = without_earlier(nights, _SHOWN_MAX)
    values: dict[str, Any] = {
        "all": nights,
        "shown": shown,
        "panels": panels_of(nights),
        "unreadable": unreadable,
        "campaigns": campaigns,
        "silent": silent_laws(nights.nights),
        "rows": list(zip(nights.nights, nights.discovery, strict=True))[::-1],
    }
    html, markdown = environments()
    page = html.get_template("nights.html").render(**values)
    write_text(directory / HTML_FILE, page)
    text = markdown.get_template("nights.md").render(**values)
    write_text(directory / MARKDOWN_FILE, text)
    told = as_json(nights) | {"campaigns": [asdict(one) for one in campaigns]}
    write_json(directory / JSON_FILE, told)


def panels_of(nights: Nights) -> list[Panel]:
    """The charts of a page that compares nights, one value per night each."""
    each = nights.nights
    found = nights.discovery
    drawn: dict[str, list[float | None]] = {
        "episodes": [night.counts.episodes for night in each],
        "episodes a second": [night.episodes_per_second for night in each],
        "failures met": [len(night.met) for night in each],
        "episodes that failed": [
            night.counts.violated + night.counts.unjudged for night in each
        ],
        "failures ever met": [night.failures for night in found],
        "kinds of crashes ever tried": [night.places for night in found],
        "kinds of state ever found": [night.states for night in found],
        "laws never checked": [len(night.vacuous) for night in each],
        "laws mostly excused": [len(night.mostly_excused) for night in each],
    }
    names = [night.name for night in each]
    return [
        Panel(title, columns(dict(zip(names, values, strict=True))), values[-1])
        for title, values in drawn.items()
    ]


def as_json(nights: Nights) -> dict[str, Any]:
    """The nights as JSON; of kinds their number, of laws the silent ones."""
    rows, left_out = [], ("places", "states", "laws")
    for night, found in zip(nights.nights, nights.discovery, strict=True):
        row = asdict(night) | {"discovery": asdict(found)}
        row |= {"vacuous_laws": night.vacuous, "mostly_excused": night.mostly_excused}
        rows.append({key: row[key] for key in row if key not in left_out})
    failures = [asdict(one) | {"told": one.told} for one in nights.failures]
    return {
        "exit_code": nights.exit_code,
        "verdict": nights.verdict,
        "nights": rows,
        "failures": failures,
        "silent_laws": [
            asdict(one) | {"told": one.told} for one in silent_laws(nights.nights)
        ],
    }
