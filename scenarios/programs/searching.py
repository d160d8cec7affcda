"""Programs as searches run them: a scenario's, and now and then more than that.

A scenario has its own subject. A search that tries each of forty scenarios a few times
rarely combines two of them, so some programs get what other scenarios have: options,
the ops of a second scenario, or a twist. Each is decided by a choice of its own, so
one program may have all three.
"""

from __future__ import annotations

from dataclasses import replace

from crashmq.models.ops import EVERYTHING, Capability
from crashmq.models.program import Program, Setup
from crashmq.scenarios.catalogue.scenarios import PARTNERS, Scenario
from crashmq.scenarios.programs.chance import SeededChance
from crashmq.scenarios.programs.mixing import in_view, mixed
from crashmq.scenarios.programs.options import with_options, with_what_options_need
from crashmq.scenarios.programs.space import Space
from crashmq.scenarios.programs.twists import twisted
from crashmq.scenarios.programs.workload import Change, program_for

VARIED = 4
"""One program of so many has options that its scenario does not list."""

MIXED = 5
"""One program of so many has the ops and options of another scenario as well."""

DOWN = 8
"""One program of so many makes the store's first start itself."""

# Seeds apart from those that programs are drawn, aimed and twisted by.
_OPTIONS = 3 << 32
_MIXES = 4 << 32
_BEGINNINGS = 5 << 32


def searched_program(
    scenario: Scenario,
    run: int,
    number: int,
    can: frozenset[Capability] = EVERYTHING,
) -> Program:
    """The program of a scenario as searches run it.

    One in ``VARIED`` has a setup with other options, one in ``MIXED`` is mixed with
    another scenario, and one in ``DOWN`` makes the first start, which may fail or be
    killed, if the subject is capable of all; one in ``TWISTED`` has a twist.
    The arguments are those of ``program_for``, and decide everything.
    """
    if can != EVERYTHING:
        return twisted(program_for(scenario, run, number, can), run, number, can)
    mix, options = mix_of(scenario, run, number), SeededChance(run + _OPTIONS, number)
    is_varied = options.one_in(VARIED)
    is_down = SeededChance(run + _BEGINNINGS, number).one_in(DOWN)

    def change(space: Space, setup: Setup) -> tuple[Space, Setup]:
        if mix is not None:
            space, setup = mix(space, setup)
        if is_varied:
            setup = with_options(setup, options)
            if setup.multi_dispatch:
                # A light queue may lie in log files alone that a start leaves unread.
                setup = in_view(space, setup)
        return space, replace(setup, begins_down=is_down and not setup.begins_with)

    drawn = program_for(scenario, run, number, change=change)
    if is_varied:
        drawn = with_what_options_need(drawn, options)
    return twisted(drawn, run, number)


def mix_of(scenario: Scenario, run: int, number: int) -> Change | None:
    """How another scenario is mixed in, for one number in ``MIXED``; else None.

    None as well for a scenario that cannot be mixed, or is a mixture.
    """
    chance = SeededChance(run + _MIXES, number)
    partners = PARTNERS.get(scenario.name)
    if partners is None or not chance.one_in(MIXED):
        return None
    other = chance.pick(partners).drawn(chance)
    return lambda space, setup: mixed((space, setup), other)
