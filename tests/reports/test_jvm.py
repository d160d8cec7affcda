from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path

import pytest

from crashmq.reports import jvm
from crashmq.reports.errors import EnvironmentMissing
from crashmq.reports.jvm import ask, default_cache_dir, find_java, java_home, shim_home

LISTS_17 = "echo java.base@17.0.1; echo jdk.incubator.vector@17.0.1"
LISTS_21 = "echo java.base@21.0.8"
LISTS_8 = "echo unrecognised option >&2; exit 1"


def a_java(home: Path, script: str) -> Path:
    """A home whose ``bin/java`` is a script."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\n{script}\n")
    java.chmod(0o755)
    return home


def test_java_says_its_version_and_whether_spark_can_start_on_it(
    tmp_path: Path,
) -> None:
    java = ask(a_java(tmp_path, LISTS_21), "JAVA_HOME")

    assert java == jvm.Java(tmp_path, 21, "JAVA_HOME", has_vector_module=False)


@pytest.mark.parametrize("script", [LISTS_8, "kill -9 $$"])
def test_a_java_that_cannot_say_is_none(tmp_path: Path, script: str) -> None:
    assert ask(a_java(tmp_path, script), "JAVA_HOME") is None
    assert ask(tmp_path / "absent", "JAVA_HOME") is None


def test_java_home_goes_before_the_path(tmp_path: Path) -> None:
    named = a_java(tmp_path / "named", LISTS_17)
    on_path = a_java(tmp_path / "path", LISTS_17)
    environment = {"JAVA_HOME": str(named), "PATH": str(on_path / "bin")}

    assert find_java(environment).home == named
    assert find_java({"PATH": str(on_path / "bin")}).home == on_path


def test_a_java_of_another_version_is_passed_over(tmp_path: Path) -> None:
    old = a_java(tmp_path / "old", "echo java.base@11.0.2")
    good = a_java(tmp_path / "good", LISTS_17)

    found = find_java({"JAVA_HOME": str(old), "PATH": str(good / "bin")})

    assert found.home == good


def test_a_complete_java_is_taken_as_it_is(tmp_path: Path) -> None:
    home = a_java(tmp_path / "java", LISTS_17)

    assert java_home(tmp_path / "cache", {"JAVA_HOME": str(home)}) == home
    assert not (tmp_path / "cache").exists()


def test_the_shim_drops_the_one_argument_and_keeps_the_rest(tmp_path: Path) -> None:
    home = a_java(tmp_path / "a java's", 'for a in "$@"; do echo "<$a>"; done')
    shim = shim_home(home, tmp_path / "cache")
    arguments = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "$x", ""]

    answer = subprocess.run(
        [shim / "bin" / "java", *arguments], capture_output=True, text=True, check=True
    )

    assert answer.stdout.split("\n") == ["<-cp>", "<a b>", "<$x>", "<>", ""]


def test_the_shim_is_made_once_for_each_java(tmp_path: Path) -> None:
    first = shim_home(tmp_path / "one", tmp_path / "cache")
    made = (first / "bin" / "java").stat().st_mtime_ns

    assert shim_home(tmp_path / "one", tmp_path / "cache") == first
    assert (first / "bin" / "java").stat().st_mtime_ns == made
    assert shim_home(tmp_path / "two", tmp_path / "cache") != first


def test_a_cache_that_cannot_be_written_is_told_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")

    with pytest.raises(EnvironmentMissing, match="cannot write the Java starter"):
        shim_home(tmp_path, tmp_path / "cache")


def test_a_machine_without_java_is_told_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = a_java(tmp_path / "old", "echo java.base@11.0.2")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)

    with pytest.raises(EnvironmentMissing) as refusal:
        find_java({"JAVA_HOME": str(old), "PATH": str(tmp_path)})

    assert "17, 21, 25 (JAVA_HOME has Java 11)" in str(refusal.value)
    assert "pip install" in str(refusal.value)


def test_the_cache_follows_the_desktop_rules(tmp_path: Path) -> None:
    assert default_cache_dir({"XDG_CACHE_HOME": "/x"}) == Path("/x/crashmq")
    assert default_cache_dir({}).name == "crashmq"
