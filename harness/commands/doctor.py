"""``crashmq doctor``: what can run on this machine, one line each, and what to do."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import click

import crashmq
from crashmq.harness.commands import exits
from crashmq.harness.commands.output import say
from crashmq.reports.errors import EnvironmentMissing
from crashmq.reports.jvm import INSTALL, INSTALL_LOCAL, find_java

_PYTHON_MIN = (3, 11)
_CORE = ("click", "greenlet", "hypothesis", "msgspec", "numpy", "pytest", "rich")
_REPORTS = ("pyarrow", "jinja2", "duckdb")
_SPARK = ("pyspark", "pandas")


@dataclass(frozen=True, slots=True)
class Finding:
    """One line: what was checked, whether it is well, and what to know or do."""

    what: str
    ok: bool
    note: str


@click.command()
def command() -> None:
    """Say what can run on this machine, and what is missing."""
    findings = list(examine())
    width = max(len(finding.what) for finding in findings)
    for finding in findings:
        state = "ok     " if finding.ok else "MISSING"
        say(f"{finding.what:<{width}}  {state}  {finding.note}")
    raise SystemExit(exits.CLEAN if all(f.ok for f in findings) else exits.ENVIRONMENT)


def examine() -> Iterator[Finding]:
    """All checks, the most needed first."""
    yield _python()
    yield _packages("core packages", _CORE, "pip install crashmq")
    yield Finding("crashmq itself", True, str(Path(crashmq.__file__).parent))
    yield _packages("report packages", _REPORTS, f"{INSTALL_LOCAL}, for soak, report")
    yield _packages("Spark packages", _SPARK, f"{INSTALL}, for soak without --local")
    yield _java()


def _python() -> Finding:
    wanted = ".".join(map(str, _PYTHON_MIN))
    ok = sys.version_info >= _PYTHON_MIN
    return Finding(
        "python", ok, f"{platform.python_version()}, needs {wanted} or later"
    )


def _packages(what: str, names: tuple[str, ...], remedy: str) -> Finding:
    found = {name: _version(name) for name in names}
    missing = [name for name, number in found.items() if not number]
    if missing:
        return Finding(what, False, f"{', '.join(missing)}: run {remedy}")
    return Finding(what, True, ", ".join(f"{n} {v}" for n, v in found.items()))


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _java() -> Finding:
    try:
        java = find_java()
    except EnvironmentMissing as error:
        return Finding("Java", False, str(error))
    return Finding(
        "Java", True, f"{java.version} from {java.source}, for soak without --local"
    )
