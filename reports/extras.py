"""The command that installs an extra, for a wheel and for a checkout alike.

Where crashmq is installed, pip finds it by its name and adds what the extra has. A
checkout that is only on the path has no such name, so there its directory is named.
"""

from __future__ import annotations

import shlex
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]


def install(extra: str) -> str:
    """What to type to get an extra of pyproject.toml; "" for what every install has."""
    brackets = f"[{extra}]" if extra else ""
    if _is_installed() or not (_ROOT / "pyproject.toml").is_file():
        what = f"crashmq{brackets}"
        return f"pip install '{what}'" if extra else f"pip install {what}"
    return f"pip install -e {shlex.quote(f'{_ROOT}{brackets}')}"


def _is_installed() -> bool:
    try:
        distribution("crashmq")
    except PackageNotFoundError:
        return False
    return True
