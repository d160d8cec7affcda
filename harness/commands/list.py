"""``crashmq list``: scenarios, laws, probes and more by name, one sentence each."""

from __future__ import annotations

from collections.abc import Callable

import click

import crashmq.harness.episodes.episode  # noqa: F401  # declares every law and probe of a run
from crashmq.engine.host.probe import declared_probes, unreachable_probes
from crashmq.harness.commands.output import say
from crashmq.harness.mutants.mutants import LEFT_OUT, MUTANTS
from crashmq.harness.mutants.mutation import Mutant
from crashmq.models.laws.registry import declared_laws
from crashmq.models.ops import OP_CLASSES, SERVICE_NAMES
from crashmq.scenarios.catalogue.scenarios import SCENARIOS

_SERVICES = {
    "reput": "hands what the log gained to the consume queues",
    "flush_commit_log": "makes the log durable",
    "flush_consume_queue": "makes the consume queues durable",
    "checkpoint": "writes what recovery may rely on",
    "flush_index": "makes full index files durable",
    "commit": "takes what lies in write buffers to the log's files",
    "allocate": "makes the log's next file before a put needs it",
    "clean_commit_log": "removes log files that have expired",
    "clean_consume_queue": "removes queue files whose records are gone",
    "persist_consumer_offset": "writes how far groups of consumers have come",
    "client_housekeeping": "drops clients of which nothing was heard for too long",
    "pull_request_hold": "looks at the pulls that the broker holds",
    "persist_consumer_filter": "writes by what groups of consumers filter",
    "deliver_delayed": "puts delayed messages that are due into their queues",
    "persist_delay_offset": "writes how far each delay level is delivered",
}


def _laws() -> dict[str, str]:
    laws = declared_laws()
    return {name: f"{law.sentence} ({law.catalogue})" for name, law in laws.items()}


def _mutants() -> dict[str, str]:
    return {name: _mutant(mutant) for name, mutant in MUTANTS.items()} | {
        name: f"left out: {reason}" for name, reason in LEFT_OUT.items()
    }


def _mutant(mutant: Mutant) -> str:
    told = [
        mutant.title,
        f"{mutant.component} D{mutant.difficulty}" if mutant.component else "",
        f"needs {mutant.needs}" if mutant.needs else "",
        "as shipped" if mutant.as_shipped else "",
        f"killed by {' or '.join(mutant.killed_by)}",
    ]
    return ", ".join(filter(None, told))


def _probes() -> dict[str, str]:
    reasons = unreachable_probes()
    return {
        name: f"{sentence}; unreachable: {reasons[name]}"
        if name in reasons
        else sentence
        for name, sentence in declared_probes().items()
    }


_KINDS: dict[str, Callable[[], dict[str, str]]] = {
    "scenarios": lambda: {name: one.sentence for name, one in SCENARIOS.items()},
    "laws": _laws,
    "probes": _probes,
    "mutants": _mutants,
    "services": lambda: {name: _SERVICES[name] for name in SERVICE_NAMES},
    "ops": lambda: {
        cls.__name__: (cls.__doc__ or "").partition("\n")[0] for cls in OP_CLASSES
    },
}


@click.command()
@click.argument("kind", type=click.Choice(list(_KINDS)), default="scenarios")
def command(kind: str) -> None:
    """List scenarios, laws, probes, mutants, services or ops."""
    rows = _KINDS[kind]()
    width = max(map(len, rows), default=0)
    for name, sentence in rows.items():
        say(f"{name:<{width}}  {sentence}")
