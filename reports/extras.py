"""The command that installs an extra, for an installed package and for a checkout.

If crashmq is installed, pip finds it by its name. A checkout that is only on the path
has no installed name, so the command names its directory.
"""

from __future__ import annotations

import shlex
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]


def install(extra: str) -> str:
    """The command that installs an extra of pyproject.toml; extra "": no extra."""
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
