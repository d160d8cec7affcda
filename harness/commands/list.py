"""``crashmq list``: scenarios, laws, probes and more by name, one sentence each.

Each kind is imported when it is listed, so listing laws does not load the mutants.
"""

from __future__ import annotations

import importlib

import click

from crashmq.harness.commands.exits import FINDINGS, BadInput
from crashmq.harness.commands.output import say

_KINDS = ("scenarios", "laws", "probes", "mutants", "services", "ops", "pairs")


@click.command()
@click.argument("kind", type=click.Choice(_KINDS), default="scenarios")
@click.option(
    "--matrix",
    is_flag=True,
    help="With laws: each field of each answer, and the laws that bound it.",
)
def command(kind: str, *, matrix: bool) -> None:
    """List scenarios, laws, probes, mutants, services, ops, or pairs of inputs."""
    if matrix:
        if kind != "laws":
            raise BadInput(
                f"--matrix shows laws, not {kind}: say `crashmq list laws --matrix`."
            )
        _show_matrix()
        return
    rows: dict[str, str] = importlib.import_module(
        f"crashmq.harness.listing.{kind}"
    ).rows()
    width = max(map(len, rows), default=0)
    for name, sentence in rows.items():
        say(f"{name:<{width}}  {sentence}")


def _show_matrix() -> None:
    """Print which laws bound each field in each situation; report empty cells."""
    listed = importlib.import_module("crashmq.harness.listing.matrix")
    for line in listed.lines():
        say(line)
    empty = listed.empty()
    for line in empty:
        say(f"EMPTY  {line}: no law bounds it from both sides, and no reason says why")
    if empty:
        raise SystemExit(FINDINGS)
