"""Exit codes, the same for every command, and the errors that lead to them.

::

    click.ClickException
        BadInput             2  what was given cannot be used
        EnvironmentLacking   4  something of this machine is missing
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

import click

from crashmq.reports.errors import EnvironmentMissing, ReportError

CLEAN = 0
FINDINGS = 1
BAD_INPUT = 2
OWN_DEFECT = 3
ENVIRONMENT = 4
TOO_LITTLE = 5
LOSES = 6
INTERRUPTED = 130


class BadInput(click.ClickException):
    """The input cannot be used; one sentence says what is wrong, where, what to do."""

    exit_code = BAD_INPUT

    def show(self, file: object = None) -> None:  # noqa: ARG002  # click's signature
        """Print the message as one line, escaping what it quotes."""
        from crashmq.models.printable import printable  # help and usage need no models

        click.echo(f"crashmq: {printable(self.message)}", err=True)


class EnvironmentLacking(BadInput):
    """Something is not installed here; one sentence says how to install it."""

    exit_code = ENVIRONMENT


def error_for(error: ReportError) -> BadInput:
    """An error of ``reports`` as the one that leads to its exit code."""
    kind = EnvironmentLacking if isinstance(error, EnvironmentMissing) else BadInput
    return kind(str(error))


def nearest(name: str, known: Iterable[str]) -> str:
    """``; did you mean X`` if a known name is spelt similarly, else ""."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}" if close else ""


def unknown(what: str, name: str, known: Iterable[str], hint: str) -> BadInput:
    """The error for an unknown name."""
    return BadInput(f"there is no {what} {name!r}{nearest(name, known)}. {hint}")
