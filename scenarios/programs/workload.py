"""Generates the program of an episode from a scenario and a source of choices.

It takes a few microseconds an op. Every program has its own weights for the kinds of
ops (swarm testing), so that some never pull, some rarely run a service, and some do
little else than crash. Ops that belong together come as a phrase, such as a crash and
the restart after it. Seeds and Hypothesis use the same phrases, which are in the other
modules of this package, by subject.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import TypeAlias

from crashmq.models.ops import EVERYTHING, Capability, Op
from crashmq.models.program import Program, Setup
from crashmq.scenarios.catalogue.scenarios import Scenario
from crashmq.scenarios.programs.ageing import perhaps_dispatch, serve, wait
from crashmq.scenarios.programs.chance import Chance, SeededChance
from crashmq.scenarios.programs.consuming import progress
from crashmq.scenarios.programs.crashing import crash, first_start, restart
from crashmq.scenarios.programs.delaying import delay
from crashmq.scenarios.programs.draft import Draft
from crashmq.scenarios.programs.faulting import fault, fill_after_all
from crashmq.scenarios.programs.filtering import filtering
from crashmq.scenarios.programs.harming import OF_FILES
from crashmq.scenarios.programs.holding import hold
from crashmq.scenarios.programs.living import OF_CONSUMERS
from crashmq.scenarios.programs.meeting import contend, interleave, together
from crashmq.scenarios.programs.overlapping import overlap
from crashmq.scenarios.programs.restricting import within
from crashmq.scenarios.programs.space import Kind, Space

Phrase: TypeAlias = Callable[[Draft], None]
Change: TypeAlias = Callable[[Space, Setup], tuple[Space, Setup]]

SWARM_WEIGHTS = (0, 1, 1, 2, 2, 6)  # of a kind in one program; 0 drops it
ENDING_BURSTS = 4  # one burst of so many ends with a put at its file's end


def program_for(
    scenario: Scenario,
    run: int,
    episode: int,
    can: frozenset[Capability] = EVERYTHING,
    change: Change | None = None,
) -> Program:
    """The program of one episode of a run.

    Args:
        scenario: the scenario.
        run: the run's seed, >= 0.
        episode: the number of the episode in its run, >= 0.
        can: the subject's capabilities beyond the core; the program needs no others.
        change: makes other ranges and another setup of those that the scenario has
            drawn; the ops are drawn for these.

    Returns:
        A program that depends on the arguments alone.

    Raises:
        ValueError: the subject can run no op of the scenario.
    """
    return program_by(scenario, SeededChance(run, episode), can, change)


def program_by(
    scenario: Scenario,
    chance: Chance,
    can: frozenset[Capability] = EVERYTHING,
    change: Change | None = None,
) -> Program:
    """A program of a scenario, with choices made by ``chance``."""
    space, setup = scenario.drawn(chance)
    if change is not None:
        space, setup = change(space, setup)
    if can != EVERYTHING:
        space = within(space, can)
    length = chance.integer(*scenario.length)
    draft = Draft(space, setup, chance, can)
    if setup.starts_by_an_op:
        first_start(draft)
    kinds = swarm_kinds(space, chance)
    while len(draft.ops) < length:
        PHRASES[chance.pick(kinds)](draft)
    return Program(setup, tuple(draft.ops[:length]))


def first_ops(draft: Draft) -> tuple[Op, ...]:
    """The drawn ops of the first start, if the program's ops make it; else none."""
    if draft.setup.starts_by_an_op:
        first_start(draft)
    ops = tuple(draft.ops)
    draft.ops.clear()
    return ops


def phrase_for(space: Space, setup: Setup, kind: Kind, run: int) -> tuple[Op, ...]:
    """Generate one phrase, a short run of ops of one kind, as it occurs in programs.

    Args:
        space: the ranges of ops, topics and sizes.
        setup: the store's setup.
        kind: the kind of the phrase, such as a crash or a burst of puts.
        run: the seed.
    """
    draft = Draft(space, setup, SeededChance(run, 0))
    draft.joined.update({one.client: one for one in space.consumers})
    PHRASES[kind](draft)
    return tuple(draft.ops)


def swarm_kinds(space: Space, chance: Chance) -> tuple[Kind, ...]:
    """The kinds of ops of one program, each listed as often as its drawn weight."""
    weights: dict[Kind, int] = {}
    for kind in dict.fromkeys(space.kinds):
        weight = chance.pick(SWARM_WEIGHTS)
        weights[kind] = max(1, weight) if kind in space.kept else weight
    return tuple([kind for kind in space.kinds for _ in range(weights[kind])])


def burst(draft: Draft) -> None:
    """Add several puts, all alike or each drawn anew."""
    chance, drawn = draft.chance, draft.drawn
    size = chance.pick(draft.space.burst_sizes)
    if chance.coin():
        draft.add(*[drawn.put() for _ in range(size)])
    else:
        draft.add(*[drawn.put(size)] * size)
    if chance.one_in(ENDING_BURSTS):
        draft.add(drawn.put_at_the_end())


def _pull(draft: Draft) -> None:
    perhaps_dispatch(draft)
    draft.add(draft.drawn.pull())


def _search(draft: Draft) -> None:
    perhaps_dispatch(draft)
    draft.add(draft.drawn.search())


PHRASES: dict[Kind, Phrase] = {
    "put": lambda draft: draft.add(draft.drawn.put()),
    "burst": burst,
    "batch": lambda draft: draft.add(draft.drawn.batch()),
    "pull": _pull,
    "look": lambda draft: draft.add(draft.drawn.look()),
    "search": _search,
    "query": lambda draft: draft.add(draft.drawn.query()),
    "service": serve,
    "clock": wait,
    "restart": restart,
    "crash": crash,
    "fault": fault,
    "interleave": interleave,
    "together": together,
    "contend": contend,
    "overlap": overlap,
    **OF_FILES,
    "fill": fill_after_all,
    "progress": progress,
    "hold": hold,
    "filter": filtering,
    "delay": delay,
    **OF_CONSUMERS,
}
"""What writes a phrase of each kind."""

RULES_MAX = 9
"""Of a machine; with more of them a test case is too short to take each."""

ALWAYS: dict[str, tuple[Kind, ...]] = {
    "put": ("put", "burst"),
    "serve": ("service",),
    "restart": ("restart",),
}
"""What each machine does; no store is too simple for it."""

IF_LISTED: dict[str, tuple[Kind, ...]] = {
    "batch": ("batch",),
    "pull": ("pull",),
    "look": ("look",),
    "search": ("search",),
    "query": ("query",),
    "wait": ("clock",),
    "crash": ("crash",),
    "interleave": ("interleave",),
    "together": ("together",),
    "fail_disk": ("fault",),
    "expire": ("expire", "delete"),
    "contend": ("contend",),
    "overlap": ("overlap",),
    "fill": ("fill",),
    "damage": ("damage", "disown"),
    "consume": (
        "consume",
        "outlive",
        "stay",
        "hang",
        "listen",
        "suspend",
        "send",
        "ask",
        "subscribe",
        "lock",
        "commit",
    ),
    "hold": ("hold",),
    "progress": ("progress", "filter"),
    "delay": ("delay", "retry"),
}

JOINED = (("wait", "serve"), ("fill", "fail_disk"))
"""Which rule is part of which other one, in this order, if there are too many."""


def rules_of(space: Space) -> dict[str, tuple[Kind, ...]]:
    """Kinds of phrases, by the name of the Hypothesis rule that takes one of them."""
    rules = dict(ALWAYS)
    for name, kinds in IF_LISTED.items():
        listed = tuple([kind for kind in kinds if kind in space.kinds])
        if listed:
            rules[name] = listed
    for name, other in JOINED:
        if len(rules) > RULES_MAX and name in rules and other in rules:
            rules[other] += rules.pop(name)
    return rules


def write_one_of(kinds: tuple[Kind, ...], draft: Draft) -> tuple[Op, ...]:
    """The ops of a phrase of one of ``kinds``; the draft loses these ops.

    Where the draft's store has none of ``kinds``, as in a mixture of two scenarios, any
    kind of its own is chosen.
    """
    known = {*chain(*ALWAYS.values()), *draft.space.kinds}
    offered = [kind for kind in kinds if kind in known] or draft.space.kinds
    PHRASES[draft.chance.pick(offered)](draft)
    ops = tuple(draft.ops)
    draft.ops.clear()
    return ops
