"""The options that say where a store's files are, for commands that read a store."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click

from crashmq.harness.commands import exits
from crashmq.harness.fsck.places import BadConf, Places, places_of, read_conf
from crashmq.harness.fsck.recognise import NotAStore
from crashmq.harness.fsck.store_files import Found, find_files

Command = TypeVar("Command", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--commitlog",
        "logs",
        multiple=True,
        metavar="PATH",
        type=click.Path(path_type=Path),
        help="The log's directory, if it is elsewhere; once for each of several.",
    ),
    click.option(
        "--broker-conf",
        "conf",
        metavar="FILE",
        type=click.Path(path_type=Path),
        help="The broker's configuration: paths, sizes, delay levels.",
    ),
    click.option(
        "--follow-links", is_flag=True, help="Read what links out of DIR lead to, too."
    ),
)


def store_options(command: Command) -> Command:
    """``--commitlog``, ``--broker-conf`` and ``--follow-links``."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def places_given(
    directory: Path, *, conf: Path | None, logs: tuple[Path, ...], follow_links: bool
) -> Places:
    """The places of the files, from the command line.

    Raises:
        BadInput: the configuration cannot be used.
    """
    try:
        read = read_conf(conf) if conf is not None else None
        places = places_of(directory, read, logs, follow_links=follow_links)
    except BadConf as error:
        raise exits.BadInput(str(error)) from None
    words = [str(directory), *(("--broker-conf", str(conf)) if conf else ())]
    words += [word for log in logs for word in ("--commitlog", str(log))]
    words += ["--follow-links"] * follow_links
    return replace(places, typed=shlex.join(words))


def files_at(places: Places) -> Found:
    """The files of a store.

    Raises:
        BadInput: there is no store that can be read.
    """
    try:
        return find_files(places)
    except NotAStore as error:
        raise exits.BadInput(f"{error.word}: {error}") from None
