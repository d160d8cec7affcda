"""Extras: what is missing is named, with the command that installs it here."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import NoReturn

import pytest

from crashmq.reports import extras
from crashmq.reports.errors import EnvironmentMissing
from crashmq.reports.extras import install


def not_installed(name: str) -> NoReturn:
    raise PackageNotFoundError(name)


def test_what_is_installed_is_named_to_pip() -> None:
    assert install("spark") == "pip install 'crashmq[spark]'"
    assert install("") == "pip install crashmq"


def test_a_checkout_that_is_only_on_the_path_is_named_by_its_directory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    root = tmp_path / "my checkout"
    root.mkdir()
    (root / "pyproject.toml").touch()
    monkeypatch.setattr(extras, "distribution", not_installed)
    monkeypatch.setattr(extras, "_ROOT", root)

    assert install("spark") == f"pip install -e '{root}[spark]'"


def test_what_lies_nowhere_is_named_to_pip(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(extras, "distribution", not_installed)
    monkeypatch.setattr(extras, "_ROOT", tmp_path)

    assert install("reports") == "pip install 'crashmq[reports]'"


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "REPORT_PACKAGES", ("json", "no_such_package"))

    with pytest.raises(EnvironmentMissing, match="package no_such_package, which is"):
        extras.require_packages()
