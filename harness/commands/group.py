"""``crashmq`` itself: the group of the commands, its errors and its exit codes.

The commands are imported one at a time, so that help needs no numpy, Hypothesis or
Spark. Results go to standard output, progress and errors to standard error. Exit codes
are those of ``exits``.
"""

from __future__ import annotations

import importlib
import io
import os
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any, NoReturn

import click

from crashmq.harness.commands import exits
from crashmq.harness.commands.settings import settings_for
from crashmq.harness.guards.asserts import are_checked, refusal
from crashmq.harness.guards.interrupts import CODE, INTERRUPTS
from crashmq.reports.errors import ReportError

_COMMANDS = {
    "check": "Run machines, cases and a small soak: the gate, without Java.",
    "soak": "Run many seeded episodes and write a report, or continue one.",
    "report": "Render the report of a soak again.",
    "nights": "Compare several soaks: what is new, known, resolved.",
    "merge": "Make one run of the parts that several machines ran.",
    "compact": "Join the small files of a soak into a few large ones.",
    "sql": "Answer a SELECT on the rows and sums of a soak.",
    "replay": "Run a case file and print it as a timeline.",
    "shrink": "Find the smallest program that breaks the same law.",
    "bisect": "Run a case file at several revisions, and print a table.",
    "explain": "Say what a law means, why, and which bugs it catches.",
    "case": "Print a case file in its short form, or as a test.",
    "explore": "Crash histories at every disk action, in every way.",
    "mutants": "Plant bugs and search for each as if it were unknown.",
    "corpus": "Collect the programs whose neighbours `mutants` tries.",
    "fsck": "Judge the files of a store directory; changes nothing.",
    "inspect": "Show topics, queues and messages of a store directory.",
    "diff": "Compare what two store directories serve.",
    "rebuild": "Rebuild queues, index and checkpoint from the log.",
    "salvage": "Copy every whole message of a damaged log to a new store.",
    "list": "List scenarios, laws, probes, mutants, services or ops.",
    "doctor": "Say what can run on this machine, and what is missing.",
}


_JUDGE_NOTHING = ("report", "nights", "merge", "compact", "sql", "list", "doctor")


class _Commands(click.Group):
    """The commands by name; each is imported when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's
        """The names, in the order in which to learn them."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """One command; its module is imported now."""
        if cmd_name not in _COMMANDS:
            near = exits.nearest(cmd_name, _COMMANDS)
            raise click.UsageError(f"there is no command {cmd_name!r}{near}.", ctx)
        if not are_checked() and cmd_name not in _JUDGE_NOTHING:
            raise exits.BadInput(refusal(f"`crashmq {cmd_name}`"))
        module = importlib.import_module(f"crashmq.harness.commands.{cmd_name}")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does; settings of pyproject.toml become the command's defaults."""
        name, command, rest = super().resolve_command(ctx, args)
        if name is not None and command is not None:
            command.name = name
            if not ctx.params["no_settings"]:
                ctx.default_map = {name: settings_for(command, _COMMANDS)}
        return name, command, rest

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002  # click's
        formatter: click.HelpFormatter,
    ) -> None:
        """The commands with a line on each, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run as click does; after an interrupt always with its exit code."""
        is_process = not args and "args" not in extra
        if is_process:
            INTERRUPTS.ignore_at_exit()
        with INTERRUPTS.heeded():
            try:
                if is_process:
                    _leave_nothing_here()
                result = super().main(*args, **extra)
                if not INTERRUPTS.seen:
                    return result
            # Click makes its own of an interrupt outside of a command; and what ends
            # here amid one would say what was found up to then as if it were all.
            except (SystemExit, KeyboardInterrupt) as end:
                if isinstance(end, SystemExit) and not INTERRUPTS.seen:
                    raise
            finally:
                if is_process:
                    INTERRUPTS.leave()
        sys.exit(CODE)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; whatever happens becomes an exit code."""
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")  # a terminal without our signs
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            _interrupted(ctx)
        except (click.ClickException, click.Abort, click.exceptions.Exit):
            raise
        except BrokenPipeError:  # `crashmq list | head`: click knows what to do
            raise
        # The last one to see an error: it is ours, and is kept for us to read.
        except Exception as error:
            if INTERRUPTS.seen:  # it is what became of one
                _interrupted(ctx)
            if isinstance(error, ReportError):
                raise exits.error_for(error) from None
            _own_defect(error)
            ctx.exit(exits.OWN_DEFECT)


def _leave_nothing_here() -> None:
    """Keep Hypothesis from writing its caches to the current directory."""
    from crashmq.reports.jvm import default_cache_dir

    os.environ.setdefault(
        "HYPOTHESIS_STORAGE_DIRECTORY", str(default_cache_dir() / "hypothesis")
    )


def _interrupted(ctx: click.Context) -> NoReturn:
    INTERRUPTS.take()
    click.echo("crashmq: interrupted.", err=True)
    ctx.exit(exits.INTERRUPTED)


def _own_defect(error: Exception) -> None:
    """Write the traceback to a file, and report a defect of crashmq."""
    from crashmq.models.printable import printable  # help and usage need no models

    text = "".join(traceback.format_exception(error))
    with tempfile.NamedTemporaryFile(
        "w", prefix="crashmq-error-", suffix=".txt", delete=False, encoding="utf-8"
    ) as file:
        file.write(f"crashmq {' '.join(sys.argv[1:])}\nPython {sys.version}\n\n{text}")
    click.echo(
        f"crashmq: {type(error).__name__}: {printable(str(error))}\n"
        f"This is a defect of crashmq, not of the store; please report it with "
        f"{Path(file.name)}.",
        err=True,
    )


@click.command(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="crashmq", prog_name="crashmq")
@click.option(
    "--no-settings",
    is_flag=True,
    help="Ignore [tool.crashmq] of pyproject.toml; before the command.",
)
def main(no_settings: bool) -> None:  # the group reads it
    """Find the bugs a RocketMQ-style message store has when it crashes.

    Exit codes: 0 clean, 1 findings, 2 usage or bad input, 3 a defect of crashmq,
    4 something is not installed or does not serve, 5 ran too little to judge, 6 a start
    loses messages, 130 interrupted.
    """
