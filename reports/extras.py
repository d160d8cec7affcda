"""The packages of the extras, and the command that installs an extra.

If crashmq is installed, pip finds it by its name. A checkout that is only on the path
has no installed name, so the command names its directory.
"""

from __future__ import annotations

import shlex
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path

from crashmq.reports.errors import NotInstalled

REPORT_PACKAGES = ("pyarrow", "jinja2", "duckdb")
SPARK_PACKAGES = ("pyspark", "pandas")
_ROOT = Path(__file__).resolve().parents[1]


def install(extra: str) -> str:
    """The command that installs an extra of pyproject.toml; extra "": no extra."""
    brackets = f"[{extra}]" if extra else ""
    if _is_installed() or not (_ROOT / "pyproject.toml").is_file():
        what = f"crashmq{brackets}"
        return f"pip install '{what}'" if extra else f"pip install {what}"
    return f"pip install -e {shlex.quote(f'{_ROOT}{brackets}')}"


def require_packages(*, spark: bool = True) -> None:
    """Check that the packages imported here are installed, without importing them.

    Args:
        spark: whether Spark is needed, too; a run with processes on this machine, and
            its report, need none.

    Raises:
        NotInstalled: a package is missing; the message names it.
    """
    for package in REPORT_PACKAGES + (SPARK_PACKAGES if spark else ()):
        if find_spec(package) is None:
            whose, extra = ("Spark", "spark") if spark else ("a report", "reports")
            raise NotInstalled(
                f"{whose} needs the Python package {package}, which is not installed; "
                f"run {install(extra)}."
            )


def _is_installed() -> bool:
    try:
        distribution("crashmq")
    except PackageNotFoundError:
        return False
    return True
