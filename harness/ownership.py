"""Ownership: whether our packages' plain names are still ours.

``models`` or ``engine`` may be a name of the project under test as well. Whoever
stands first on the path wins, and then half of crashmq would be someone else's code.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

PACKAGES = ("engine", "harness", "models", "reports", "scenarios")


def foreign_packages(home: Path | None = None) -> list[str]:
    """Our package names that stand for something else, each with where it is.

    Args:
        home: the directory that should hold them all; by default the one of this
            very package.
    """
    own = home or Path(__file__).resolve().parent.parent
    found = {name: _home_of(name) for name in PACKAGES}
    return [
        f"{name} (in {where})" if where else f"{name} (not found)"
        for name, where in found.items()
        if where != own
    ]


def foreign_sentence(foreign: list[str]) -> str:
    """One sentence on what ``foreign_packages`` found."""
    return (
        f"crashmq: {', '.join(foreign)} is not crashmq's package of that name; rename "
        f"yours, or take its directory off sys.path."
    )


def _home_of(name: str) -> Path | None:
    spec = find_spec(name)
    if spec is None:
        return None
    if spec.origin is None:  # a directory without __init__.py
        places = list(spec.submodule_search_locations or [])
        return Path(places[0]).resolve().parent if places else None
    return Path(spec.origin).resolve().parent.parent
