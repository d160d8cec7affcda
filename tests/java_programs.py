"""RocketMQ's own classes in a JVM: the Java programs of ``golden``, built once.

A build is kept beside RocketMQ's jars, under the digest of its sources, so that neither
another worker nor the next run builds it again.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path

import pytest
from rocketmq import cache_root

GOLDEN = Path(__file__).parent / "golden"
JVM_SECONDS_MAX = 300


def built(name: str) -> Path:
    """The jar of a Java program of ``golden``; skips where no JVM or Maven is."""
    require_java_and_maven()
    source = GOLDEN / name
    texts = sorted(path for path in source.rglob("*") if path.is_file())
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in texts))
    home = cache_root() / f"golden-{name}-{digest.hexdigest()[:16]}"
    home.parent.mkdir(parents=True, exist_ok=True)
    with home.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two workers need not build the same
        if not home.is_dir():
            with tempfile.TemporaryDirectory(dir=home.parent) as scratch:
                build = Path(scratch) / "build"
                settings = ("-q", "-B", f"-Dgolden.build={build}")
                done = ran("mvn", *settings, "-f", str(source / "pom.xml"), "package")
                assert done.returncode == 0, done.stdout + done.stderr
                build.rename(home)
    (jar,) = home.glob("golden-*.jar")
    return jar


def require_java_and_maven() -> None:
    if shutil.which("java") is None or shutil.which("mvn") is None:
        pytest.skip("needs `java` and `mvn` on the PATH: RocketMQ runs in a JVM")


def java_on(jar: Path, home: Path) -> tuple[str, ...]:
    """A short-lived JVM: what is compiled well is never needed."""
    return (
        *("java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
        *(f"-Duser.home={home}", "-jar", str(jar)),
    )


def ran(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, capture_output=True, encoding="utf-8", timeout=JVM_SECONDS_MAX
    )


class OneJvm:
    """A process of ``golden/writer`` that is asked again and again."""

    def __init__(self, jar: Path, home: Path) -> None:
        self._command = (*java_on(jar, home), "serve")
        self._log = home / "serve.log"
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> OneJvm:
        return self

    def __exit__(self, *error: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()

    def ask(self, *verb: str | Path) -> subprocess.CompletedProcess[str]:
        """What a process of its own would have answered."""
        process = self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        clock = threading.Timer(JVM_SECONDS_MAX, process.kill)
        clock.start()
        try:
            process.stdin.write(json.dumps([str(each) for each in verb]) + "\n")
            process.stdin.flush()
            lines: list[str] = []
            while line := process.stdout.readline():
                end = json.loads(line)
                if "exit" in end:
                    told = "".join(lines), end["said"]
                    return subprocess.CompletedProcess(verb, end["exit"], *told)
                lines.append(line)
        finally:
            clock.cancel()
        said = self._log.read_text("utf-8", "replace")[-2000:]
        raise AssertionError(f"the JVM ended at {verb}: {said}")

    def _running(self) -> subprocess.Popen[str]:
        if self._process is None:
            with self._log.open("w") as log:
                self._process = subprocess.Popen(
                    self._command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    encoding="utf-8",
                )
        return self._process
