"""The campaigns of machine-made mutants in a directory of nights: their kill rates.

A campaign is what ``crashmq mutants --operators --out DIR`` wrote; only its
``summary.json`` is read. One that cannot be read is left out, like a file of others.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from crashmq.reports.errors import BadRequest
from crashmq.reports.operator_figures import Rate, rate_of
from crashmq.reports.operator_records import ASKED_FILE
from crashmq.reports.places import Place, is_there, listed
from crashmq.reports.trust import read_object

_SUMMARY_FILE = "summary.json"


@dataclass(frozen=True, slots=True)
class Campaign:
    """One campaign; ``rates`` are by processor time, without equivalent mutants."""

    name: str
    code_version: str
    seed: int
    rates: tuple[Rate, ...]


def campaigns_in(directory: Place) -> list[Campaign]:
    """The campaigns directly below a directory, by name."""
    found = []
    for place in listed(directory):
        with suppress(BadRequest, ValueError, KeyError, TypeError):
            if is_there(place / ASKED_FILE):
                found.append(_read(place))
    return found


def _read(place: Place) -> Campaign:
    told = read_object(place / _SUMMARY_FILE)
    rates = tuple([_rate(row) for row in told["by_budget_without_equivalent"]])
    return Campaign(place.name, str(told["code_version"]), int(told["seed"]), rates)


def _rate(row: Any) -> Rate:
    return rate_of(str(row["name"]), int(row["killed"]), int(row["of"]))
