"""Mixtures: scenarios combined on one store.

What a start can detect of damage depends on the other files, so scenarios that damage
files are not mixed. Running consumers subscribe for their group, and filter scenarios
do that by ops, so these two are not mixed with each other. And in a group with running
consumers nobody else commits, since then it would be unknown which messages the group
has skipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from crashmq.scenarios.catalogue.scenario import Scenario
from crashmq.scenarios.programs.mixing import each_once, in_view, mixed_space, promising
from crashmq.scenarios.programs.spaces import CORE_LAWS

_DAMAGING = (
    *("truncated_files", "window_damage", "bit_rot"),
    *("foreign_files", "unmarked_stores", "latent_errors", "lost_writes"),
)
_COMMITTING = frozenset({"progress", "hold"})
"""Kinds of op that tell a broker how far a group is."""


def mixable(
    stores: Sequence[Scenario],
    brokers: Sequence[Scenario],
    consumers: Sequence[Scenario],
) -> tuple[tuple[Scenario, ...], ...]:
    """The scenarios that can be mixed with each other.

    Those of stores, these and those of brokers, and those that can be beside running
    consumers and those of consumers.
    """
    calm = [one for one in stores if one.name not in _DAMAGING]
    beside_consumers = [
        one
        for one in (*calm, *brokers)
        if not {"filter", *_COMMITTING} & {*one.space.kinds}
    ]
    return (*calm,), (*calm, *brokers), (*beside_consumers, *consumers)


def partners_of(
    circles: Sequence[Sequence[Scenario]],
) -> dict[str, tuple[Scenario, ...]]:
    """For each scenario in a circle, by name, the others of all its circles."""
    found: dict[str, dict[str, Scenario]] = {}
    for circle in circles:
        for one in circle:
            others = {each.name: each for each in circle if each is not one}
            found.setdefault(one.name, {}).update(others)
    return {name: (*others.values(),) for name, others in found.items()}


def mixtures_of(circles: Sequence[Sequence[Scenario]]) -> tuple[Scenario, ...]:
    """A mixture of each circle of ``mixable`` scenarios."""
    calm, with_brokers, with_consumers = circles
    return (
        _mixture(
            "mixtures",
            "the ops of two other scenarios, drawn anew for each program, on one store",
            calm,
        ),
        _mixture(
            "broker_mixtures",
            "the ops of two other scenarios on one store, those of brokers included: "
            "consumer offsets, filters, long polling, delays",
            with_brokers,
        ),
        _mixture(
            "consumer_mixtures",
            "the ops of two other scenarios on one store, beside running consumers",
            with_consumers,
        ),
    )


def _mixture(name: str, sentence: str, mixed: Sequence[Scenario]) -> Scenario:
    space = each_once(reduce(mixed_space, [one.space for one in mixed]))
    return Scenario(
        name=name,
        sentence=sentence,
        space=space,
        setups=tuple(
            in_view(space, promising(store)) for one in mixed for store in one.setups
        ),
        required_laws=CORE_LAWS,
        mixes=tuple(mixed),
    )
