"""``crashmq doctor``: what can run on this machine, and how to install the rest."""

from __future__ import annotations

import platform
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import click

import crashmq
from crashmq.harness.commands import exits
from crashmq.harness.commands.output import say
from crashmq.reports.errors import EnvironmentMissing
from crashmq.reports.extras import REPORT_PACKAGES, SPARK_PACKAGES, install
from crashmq.reports.jvm import ask, find_java

_PYTHON_MIN = (3, 11, 2)
_JDK_MIN = 17
_CORE = ("click", "greenlet", "hypothesis", "lark", "msgspec", "numpy", "pytest")
_ALSO = ("rich",)


@dataclass(frozen=True, slots=True)
class Finding:
    """One line: what was checked, whether it is there, and details or what to do."""

    what: str
    ok: bool
    note: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Purpose:
    """A use of crashmq: what it needs, and the command to run once that is there."""

    checks: tuple[Callable[[], Finding], ...]
    following: str


def _python() -> Finding:
    wanted = ".".join(map(str, _PYTHON_MIN))
    ok = sys.version_info >= _PYTHON_MIN
    note = f"{platform.python_version()}, needs {wanted} or later"
    return Finding("python", ok, note, f"a Python from {wanted} on, in a new venv")


def _ourselves() -> Finding:
    return Finding("crashmq itself", True, str(Path(crashmq.__file__).parent))


def _core_packages() -> Finding:
    return _packages("core packages", _CORE + _ALSO, install(""))


def _report_packages() -> Finding:
    return _packages("report packages", REPORT_PACKAGES, install("reports"))


def _spark_packages() -> Finding:
    return _packages("Spark packages", SPARK_PACKAGES, install("spark"))


def _packages(what: str, names: tuple[str, ...], remedy: str) -> Finding:
    found = {name: _version(name) for name in names}
    missing = [name for name, number in found.items() if not number]
    if missing:
        return Finding(what, False, ", ".join(missing), remedy)
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
        return Finding("Java", False, str(error), install("spark"))
    return Finding("Java", True, f"{java.version} from {java.source}")


def _jdk() -> Finding:
    compiler = shutil.which("javac")
    home = Path(compiler).resolve().parents[1] if compiler else None
    java = ask(home, "PATH") if home else None
    note = f"{java.version} in {home}" if java else "no javac on the PATH"
    ok = java is not None and java.version >= _JDK_MIN
    note = f"{note}, needs {_JDK_MIN} or later"
    return Finding("JDK", ok, note, _of_the_system("openjdk-17-jdk-headless"))


def _maven() -> Finding:
    found = shutil.which("mvn")
    note = f"{found}, which gets RocketMQ's jars" if found else "no mvn on the PATH"
    return Finding("Maven", found is not None, note, _of_the_system("maven"))


def _checkout() -> Finding:
    root = Path(exits.__file__).resolve().parents[2]
    ok = (root / "tests" / "corpus" / "rocketmq.py").is_file()
    note = str(root / "tests" / "corpus") if ok else "a wheel has no tests"
    return Finding("a checkout", ok, note, "the source distribution, unpacked")


def _of_the_system(package: str) -> str:
    """The command by which this machine installs a system package."""
    if shutil.which("apt-get"):
        return f"sudo apt-get install -y {package}"
    if shutil.which("brew"):
        return f"brew install {package.removesuffix('-jdk-headless').replace('-', '@')}"
    return f"the package {package} of your system"


_GATE = (_python, _core_packages, _ourselves)
PURPOSES = {
    "check": Purpose(_GATE, "crashmq check"),
    "soak": Purpose(
        (*_GATE, _report_packages, _spark_packages, _java),
        "crashmq soak power_loss --episodes 2000 --out runs/first",
    ),
    "soak --local": Purpose(
        (*_GATE, _report_packages),
        "crashmq soak power_loss --local --episodes 2000 --out runs/first",
    ),
    "rocketmq": Purpose(
        (*_GATE, _checkout, _jdk, _maven), "python -m pytest -m rocketmq tests"
    ),
}


@click.command()
@click.argument(
    "purpose",
    type=click.Choice(["check", "soak", "rocketmq"]),
    metavar="[check|soak|rocketmq]...",
    nargs=-1,
)
def command(purpose: tuple[str, ...]) -> None:
    """Say what can run on this machine, what is missing, and what installs it.

    Names decide the exit code: check, soak on Spark, or the tests that drive Apache
    RocketMQ. Without a name everything is listed, and only the gate decides. Exit code
    4 means that something is missing.
    """
    told = _purposes(purpose)
    findings = {
        check: check() for name in told for check in PURPOSES[name].checks
    }  # each once, the most needed first
    width = max(len(finding.what) for finding in findings.values())
    for finding in findings.values():
        state = "ok     " if finding.ok else "MISSING"
        say(f"{finding.what:<{width}}  {state}  {finding.note}")
    for name in told:
        for line in _verdict(name, findings):
            say(line)
    judged = purpose or ("check",)
    if not all(findings[c].ok for name in judged for c in PURPOSES[name].checks):
        raise SystemExit(exits.ENVIRONMENT)


def _purposes(asked: tuple[str, ...]) -> tuple[str, ...]:
    """The purposes to check; a soak is two, since one way of it needs no Spark."""
    if not asked:
        return tuple(PURPOSES)
    each = [("soak", "soak --local") if name == "soak" else (name,) for name in asked]
    return tuple(dict.fromkeys(name for names in each for name in names))


def _verdict(
    name: str, findings: dict[Callable[[], Finding], Finding]
) -> tuple[str, ...]:
    """Whether a purpose is possible; the next command, or what is missing."""
    purpose = PURPOSES[name]
    lacking = [findings[c] for c in purpose.checks if not findings[c].ok]
    if not lacking:
        return (f"{name}: can run", f"  next  {purpose.following}")
    remedies = dict.fromkeys(one.remedy for one in lacking)
    if install("spark") in remedies:  # which has all that reports need
        remedies.pop(install("reports"), None)
    return (
        f"{name}: lacks {', '.join(one.what for one in lacking)}",
        *(f"  get   {remedy}" for remedy in remedies),
    )
