"""Named: a user's store, by the name of the function that makes one.

A command line, a case file and a soak's definition can name it as
``package.module:factory``; a test has the factory itself. The factory takes the
``Setup`` of a program, or nothing, and returns a new store each time; the first one
that was named is asked for its capabilities.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from crashmq.harness.subjects.subject import (
    CORE_METHODS,
    Subject,
    capabilities_of,
)
from crashmq.models.ops import Capability
from crashmq.models.program import Setup

OURS = "python"


class BadSubject(ValueError):
    """No store can be made by that name; the message says why, and what to do."""


class MakesSubjects(Protocol):
    """What makes a new store for a program's setup; ``name`` is for case files."""

    @property
    def name(self) -> str:
        """``package.module:factory``."""

    def made(self, setup: Setup) -> Subject:
        """A new store for a program of this setup."""


@dataclass(frozen=True, slots=True)
class NamedSubject:
    """A store by its name, and what it can do beyond the core."""

    name: str
    can: frozenset[Capability]

    def made(self, setup: Setup) -> Subject:
        """A new store for a program of this setup."""
        return _make(self.name, setup)


@dataclass(frozen=True, slots=True)
class FactorySubject:
    """A store by the function that makes one, which takes the setup or nothing."""

    factory: Callable[..., Subject]

    @property
    def name(self) -> str:
        """By which it can be imported, unless it was made within a function."""
        named = getattr(self.factory, "__qualname__", type(self.factory).__name__)
        return f"{self.factory.__module__}:{named}"

    def made(self, setup: Setup) -> Subject:
        """A new store for a program of this setup."""
        takes_setup = _takes_setup(self.factory, self.name)
        return self.factory(setup) if takes_setup else self.factory()


def paths_of_the_user() -> tuple[str, ...]:
    """The directories, beside Python's own, that modules are imported from here."""
    of_python = {Path(prefix) for prefix in (sys.prefix, sys.base_prefix)}
    paths = (Path(entry).absolute() for entry in sys.path)
    return tuple(str(path) for path in paths if of_python.isdisjoint(path.parents))


def import_also_from(paths: Iterable[str]) -> None:
    """Look for modules there too, after everywhere else."""
    sys.path += [path for path in paths if path not in sys.path]


@lru_cache(maxsize=16)
def subject_named(name: str) -> NamedSubject | None:
    """The store of this name; None for our own engine, which is ``python``.

    Raises:
        BadSubject: there is none, or it is no store.
    """
    if name in ("", OURS):
        return None
    try:
        made = _make(name, Setup())
    except BadSubject:
        raise
    except Exception as error:  # theirs, whatever it is
        raise BadSubject(
            f"{name} makes no store: {type(error).__name__}: {error}"
        ) from error
    missing = [one for one in CORE_METHODS if not hasattr(made, one)]
    if missing:
        raise BadSubject(
            f"{name} made a {type(made).__name__}, which lacks {', '.join(missing)} of "
            f"a store. docs/bring-your-own.md says what each has to do."
        )
    can = capabilities_of(made)
    made.close()
    return NamedSubject(name, can)


def _make(name: str, setup: Setup) -> Subject:
    factory, takes_setup = _factory(name)
    made: Subject = factory(setup) if takes_setup else factory()
    return made


_NAME_IT = "name a class or a function of it that makes one."


@lru_cache(maxsize=16)
def _factory(name: str) -> tuple[Callable[..., Subject], bool]:
    """The function that makes the store, and whether it takes the setup."""
    module_name, _, path = name.partition(":")
    if not module_name or not path:
        raise BadSubject(
            f"{name!r} names no store: say package.module:factory, or {OURS} for ours."
        )
    here = str(Path.cwd())
    if here not in sys.path:  # as `python -m` has it, a console script has not
        sys.path.insert(0, here)
    try:
        found = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise BadSubject(
            f"{name}: there is no module {error.name!r}. Start crashmq where it can be "
            f"imported, or install it."
        ) from None
    except Exception as error:  # theirs, whatever it is
        raise BadSubject(
            f"{name}: {module_name} cannot be imported: {type(error).__name__}: {error}"
        ) from error
    for part in path.split("."):
        if not hasattr(found, part):
            raise BadSubject(f"{name}: {module_name} has no {path!r}; {_NAME_IT}")
        found = getattr(found, part)
    if not callable(found):
        raise BadSubject(
            f"{name} is a {type(found).__name__}, and makes no store; {_NAME_IT}"
        )
    return found, _takes_setup(found, name)


def _takes_setup(factory: Callable[..., Subject], name: str) -> bool:
    """Whether a factory takes the setup; one that takes more is refused."""
    needed = [
        one
        for one in inspect.signature(factory).parameters.values()
        if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)
        and one.default is one.empty
    ]
    if len(needed) > 1:
        raise BadSubject(
            f"{name} wants {len(needed)} arguments; a factory takes the Setup, or "
            f"nothing."
        )
    return bool(needed)
