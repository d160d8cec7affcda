"""What a soak declares before it begins: all that it could reach.

A report tells from it what was never checked, never run or never reached.
"""

from __future__ import annotations

from dataclasses import asdict

from crashmq.engine.host.probe import declared_probes, unreachable_probes
from crashmq.harness.judging.asking import askable
from crashmq.harness.mutants.mutants import MUTANTS
from crashmq.harness.subjects.named import subject_named
from crashmq.models.knowledge.facts import Fact, decided_by
from crashmq.models.laws.registry import declared_laws
from crashmq.models.ops import EVERYTHING, OP_CLASSES
from crashmq.models.program import Setup
from crashmq.reports.records import Declared
from crashmq.scenarios.catalogue.scenarios import SCENARIOS


def declared(scenarios: tuple[str, ...], subject: str = "") -> Declared:
    """Every op, probe and law that a run of these scenarios could have reached.

    Probes are branches of our engine; a store of somebody else, named by ``subject``,
    has none, and is not asked what it lacks the capabilities for.

    Raises:
        BadSubject: no store can be made by that name.
    """
    chosen = [SCENARIOS[name] for name in scenarios]
    store = subject_named(subject)
    can = store.can if store else EVERYTHING
    never = {law for law, _ in askable(can).never}
    laws = {name: law for name, law in declared_laws().items() if name not in never}
    certain = decided_by(can)
    probes = {one.name: list(one.required_probes) for one in chosen if not store}
    return Declared(
        ops=[cls.__name__ for cls in OP_CLASSES],
        probes={} if store else declared_probes(),
        unreachable={} if store else unreachable_probes(),
        laws={name: law.sentence for name, law in laws.items()},
        catalogue={name: law.catalogue for name, law in laws.items()},
        facts={fact.label: fact.value for fact in Fact if not certain.get(fact)},
        scenarios={one.name: one.sentence for one in chosen},
        required_probes=probes,
        required_laws={
            one.name: [law for law in one.required_laws if law not in never]
            for one in chosen
        },
        mutants={name: mutant.title for name, mutant in MUTANTS.items()},
        setup=asdict(Setup()),
    )
