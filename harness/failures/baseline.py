"""Baseline: failures that a team knows of; a gate stays useful while a bug is open.

A TOML file has an entry for each: the violated law, where, why nobody fixes it today,
and until when it is excused. A failure with a valid entry is counted and does not make
the gate red; from the day after the entry expires it does again.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from crashmq.harness.guards.regular_file import NotReadable, read_regular
from crashmq.models.printable import printable, shown

FILE_SIZE_MAX = 1024 * 1024
_NAMES = ("law", "scenario", "reason", "expires")


class BadBaseline(ValueError):
    """A file is no baseline; the message, of one line, says where and why."""

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))


@dataclass(frozen=True, slots=True)
class Known:
    """One known failure; ``scenario`` is "" if it may come from any."""

    law: str
    reason: str
    expires: date
    scenario: str = ""

    def is_of(self, law: str, scenario: str) -> bool:
        """Whether the entry is for this failure."""
        return self.law == law and self.scenario in ("", scenario)

    @property
    def sentence(self) -> str:
        """The entry in one line."""
        where = f" in {self.scenario}" if self.scenario else ""
        return f"{self.law}{where}, until {self.expires}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Baseline:
    """The entries that are valid on a day, and those that have expired."""

    current: tuple[Known, ...] = ()
    expired: tuple[Known, ...] = ()

    def excuse(self, law: str, scenarios: Iterable[str]) -> str:
        """Why a failure is excused, and until when; "" if it is not.

        Args:
            law: the one it violates.
            scenarios: all that met it; each needs an entry that is for it.
        """
        told = [self._excuse_in(scenario, law) for scenario in scenarios]
        return "; ".join(dict.fromkeys(told)) if all(told) else ""

    def _excuse_in(self, scenario: str, law: str) -> str:
        told = (one for one in self.current if one.is_of(law, scenario))
        return next((f"{one.reason}, until {one.expires}" for one in told), "")


def baseline_on(day: date, known: Iterable[Known]) -> Baseline:
    """The entries that are valid on a day, and those that have expired."""
    entries = tuple(known)
    return Baseline(
        tuple(one for one in entries if one.expires >= day),
        tuple(one for one in entries if one.expires < day),
    )


def read_baseline(
    path: Path, laws: Iterable[str], scenarios: Iterable[str]
) -> tuple[Known, ...]:
    """The entries of a baseline file, whether they have expired or not.

    Args:
        path: of a TOML file with an array of tables called ``known``.
        laws: the ids that there are.
        scenarios: the names that there are.

    Raises:
        BadBaseline: it cannot be read, or an entry is not one.
    """
    try:
        given = tomllib.loads(read_regular(path, FILE_SIZE_MAX).decode())
    except NotReadable as error:
        raise BadBaseline(f"{error} Name a TOML file.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadBaseline(f"{path}: is not TOML: {error}.") from None
    entries = given.pop("known", [])
    if given:
        raise BadBaseline(f"{path}: {shown(next(iter(given)))} is not `known`.")
    if not isinstance(entries, list):
        raise BadBaseline(f"{path}: write each entry below a line [[known]].")
    laws, scenarios = set(laws), set(scenarios)
    known = []
    for number, entry in enumerate(entries, start=1):
        where = f"{path}: entry {number}"
        one = _entry(entry, where)
        if one.law not in laws:
            raise BadBaseline(f"{where}: there is no law {shown(one.law)}.")
        if one.scenario and one.scenario not in scenarios:
            raise BadBaseline(f"{where}: there is no scenario {shown(one.scenario)}.")
        known.append(one)
    return tuple(known)


def _entry(entry: Any, where: str) -> Known:
    if not isinstance(entry, dict):
        raise BadBaseline(f"{where}: write it below a line [[known]].")
    unknown = [name for name in entry if name not in _NAMES]
    if unknown:
        raise BadBaseline(f"{where}: {shown(unknown[0])} is none of {_NAMES}.")
    texts = {name: entry.get(name, "") for name in ("law", "scenario", "reason")}
    for name, text in texts.items():
        if not isinstance(text, str):
            raise BadBaseline(f"{where}: {name} is {shown(text)}, and is to be text.")
    if not texts["reason"].strip():
        raise BadBaseline(f"{where}: say in `reason` why it is not fixed today.")
    expires = entry.get("expires")
    if type(expires) is not date:
        raise BadBaseline(
            f"{where}: expires is {shown(expires)}, and is to be a date as 2026-12-31, "
            f"without quotes."
        )
    return Known(texts["law"], texts["reason"], expires, texts["scenario"])
