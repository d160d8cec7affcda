"""Standard output and standard error: coloured timelines, and progress.

Colour and progress bars are for terminals, and only then rich is imported; NO_COLOR and
FORCE_COLOR are honoured. Elsewhere progress is a plain line every ten seconds, later
less often, and none while nothing changes.
"""

from __future__ import annotations

import os
import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

import click

from crashmq.harness.episodes.marks import (
    BREACH_MARK,
    FAULT_MARK,
    PASSED_MARK,
    UNKNOWN_MARK,
)
from crashmq.harness.guards.interrupts import INTERRUPTS
from crashmq.models.printable import printable, printable_lines

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

_QUIET_S = 10.0
_SAID_OF_ALL = 10  # and later each tenth of the time that has gone
_STYLES = {
    BREACH_MARK: "bold red",
    UNKNOWN_MARK: "bold yellow",
    PASSED_MARK: "green",
    FAULT_MARK: "yellow",
}
_MARK_COLUMN = 5


def print_timeline(text: str) -> None:
    """Print a timeline, with its marked lines in colour on a terminal."""
    if not (sys.stdout.isatty() or os.environ.get("FORCE_COLOR")):
        say(text)
        return
    from rich.console import Console

    console = Console(highlight=False, markup=False, soft_wrap=True)
    for number, line in enumerate(map(printable, text.split("\n"))):
        mark = line[_MARK_COLUMN : _MARK_COLUMN + 1]
        style = "bold" if number == 0 else _STYLES.get(mark)
        console.print(line, style=style)


def drawn_as_svg(text: str, title: str) -> str:
    """A timeline as an SVG picture, with its marked lines in colour."""
    from io import StringIO

    from rich.console import Console

    lines = list(map(printable, text.split("\n")))
    width = max(map(len, lines))
    console = Console(
        record=True, width=width, file=StringIO(), highlight=False, markup=False
    )
    for number, line in enumerate(lines):
        mark = line[_MARK_COLUMN : _MARK_COLUMN + 1]
        console.print(line, style="bold" if number == 0 else _STYLES.get(mark))
    return console.export_svg(title=title, unique_id="timeline")


def say(text: str, *, err: bool = False) -> None:
    """Print lines; control characters in them are escaped.

    A line end in a quoted text stays one: quote such text by ``printable``.
    """
    click.echo(printable_lines(text), err=err)


def terminal_width() -> int:
    """Columns to write to: the terminal's, within limits; 100 elsewhere."""
    if not sys.stdout.isatty():
        return 100
    columns = os.get_terminal_size(sys.stdout.fileno()).columns
    return min(max(columns, 60), 140) if columns else 100


class Progress:
    """The progress of some work, shown on standard error while it lasts."""

    def __init__(self, what: str, *, quiet: bool = False) -> None:
        self.what = what
        self.quiet = quiet
        self._bar: Bar | None = None
        self._begun_at = self._said_at = time.monotonic()
        self._said: tuple[str, int] = ("", 0)

    def __enter__(self) -> Self:
        """Begin; a bar appears on a terminal."""
        if sys.stderr.isatty() and not self.quiet:
            self._bar = _bar()
            self._bar.start()
            self._bar.add_task(self.what, total=None, detail="")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove the bar."""
        if self._bar:
            self._bar.stop()

    def tell(self, what: str, done: int, total: int) -> None:
        """Begin another part of the work, and show its progress."""
        if what != self.what:
            self.what = what
            if self._bar:
                self._bar.reset(self._bar.task_ids[0], description=what, total=total)
        self.update(done, total)

    def update(self, done: int, total: int | None, detail: str = "") -> None:
        """Set how much is done; cheap enough to be called for every episode.

        Raises:
            KeyboardInterrupt: an earlier interrupt was not delivered.
        """
        INTERRUPTS.heed()
        if self._bar:
            task = self._bar.task_ids[0]
            self._bar.update(task, completed=done, total=total, detail=detail)
            return
        if not self.quiet and self._said != (self.what, done) and self._is_time():
            self._said = (self.what, done)
            of = f" of {total:,}" if total else ""
            after = f"{_between(detail)}{detail}" if detail else ""
            say(f"{self.what}: {done:,}{of}{after}", err=True)

    def _is_time(self) -> bool:
        """Whether a plain line is due: about sixty in a night, not thousands."""
        now = time.monotonic()
        wait = max(_QUIET_S, (now - self._begun_at) / _SAID_OF_ALL)
        if now - self._said_at < wait:
            return False
        self._said_at = now
        return True


def _between(detail: str) -> str:
    """The separator between the numbers and a detail, which may begin with a unit."""
    return " " if detail.startswith("s;") else ", "


def _bar() -> Bar:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn
    from rich.progress import Progress as RichProgress

    return RichProgress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("{task.fields[detail]}"),
        console=Console(stderr=True, highlight=False),
        transient=True,
        refresh_per_second=4,
    )
