"""``crashmq list``: scenarios, laws, probes and more by name, one sentence each.

What is listed is imported when it is asked for: nobody waits for mutants to see laws.
"""

from __future__ import annotations

import importlib

import click

from crashmq.harness.commands.output import say

_KINDS = ("scenarios", "laws", "probes", "mutants", "services", "ops", "pairs")


@click.command()
@click.argument("kind", type=click.Choice(_KINDS), default="scenarios")
def command(kind: str) -> None:
    """List scenarios, laws, probes, mutants, services, ops, or pairs of inputs."""
    rows: dict[str, str] = importlib.import_module(
        f"crashmq.harness.listing.{kind}"
    ).rows()
    width = max(map(len, rows), default=0)
    for name, sentence in rows.items():
        say(f"{name:<{width}}  {sentence}")
