"""Project-wide defaults: ``[tool.crashmq]`` of the nearest ``pyproject.toml``.

A table for each command, ``[tool.crashmq.check]``, has its options by their long names,
and ``scenario`` for its arguments; ``subject``, ``workers`` and ``mutant-file`` may
stand in ``[tool.crashmq]`` itself, for every command that has them. The command line
overrides the file. Paths are relative to the file's directory.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from crashmq.harness.commands.exits import BadInput, nearest

FILE = "pyproject.toml"
SHARED = ("subject", "workers", "mutant-file")


def settings_for(command: click.Command, commands: Iterable[str]) -> dict[str, Any]:
    """The defaults of a command's parameters, by their names in code.

    Args:
        command: the command that is run.
        commands: the names of all commands.

    Raises:
        BadInput: the file is no TOML, or has an unknown name.
    """
    path = _nearest_file()
    if path is None:
        return {}
    table = _table(path)
    shared = {name: one for name, one in table.items() if name in SHARED}
    own: Mapping[str, Any] = {}
    for name, one in table.items():
        if name in shared:
            continue
        if name not in commands or not isinstance(one, dict):
            hint = nearest(name, [*commands, *SHARED])
            raise BadInput(f"{path}: [tool.crashmq] has no {name!r}{hint}.")
        if name == command.name:
            own = one
    return {
        **_named(command, shared, path, strict=False),
        **_named(command, own, path, strict=True),
    }


def _nearest_file() -> Path | None:
    here = Path.cwd()
    for directory in (here, *here.parents):
        if (directory / FILE).is_file():
            return directory / FILE
    return None


def _table(path: Path) -> Mapping[str, Any]:
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadInput(f"{path}: cannot be read: {error}.") from None
    table = given.get("tool", {}).get("crashmq", {})
    if not isinstance(table, dict):
        raise BadInput(f"{path}: tool.crashmq is no table.")
    return table


def _named(
    command: click.Command, given: Mapping[str, Any], path: Path, *, strict: bool
) -> dict[str, Any]:
    """The values by parameter names; unknown names are skipped unless strict."""
    params = {_typed(one): one for one in command.params}
    defaults = {}
    for name, value in given.items():
        param = params.get(name)
        if param is None:
            if strict:
                where = f"{path}: [tool.crashmq.{command.name}]"
                raise BadInput(f"{where} has no {name!r}{nearest(name, params)}.")
            continue
        if isinstance(value, str):
            value = _from_there(value, param, path)
        defaults[str(param.name)] = value
    return defaults


def _from_there(value: str, param: click.Parameter, path: Path) -> str | list[str]:
    """A text as the parameter takes it: a path from the file's directory, or a list."""
    is_path = isinstance(param.type, click.Path) or param.type.name == "place"
    if is_path and value != "-" and "://" not in value:
        return str(path.parent / value)
    return [value] if param.nargs == -1 or param.multiple else value


def _typed(param: click.Parameter) -> str:
    """The name of a parameter on the command line, without the dashes."""
    longest = max(param.opts, key=len)
    return longest.lstrip("-")
