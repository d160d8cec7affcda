"""Which values of the input occur together in no program of a soak."""

from __future__ import annotations

from crashmq.scenarios.catalogue.scenarios import SCENARIOS
from crashmq.scenarios.programs.dimensions import Pairs, values_of
from crashmq.scenarios.programs.workload import program_for

EPISODES = 20_000
SEED = 0
NAMED_MAX = 6


def rows() -> dict[str, str]:
    """Each value with the number of values it occurs with, and some it does not."""
    pairs = pairs_in(EPISODES)
    told: dict[str, str] = {}
    met = possible = 0
    for value in sorted(pairs.numbers):
        others = pairs.others_of(value)
        missing, mine = others["missing"], len(others["met"])
        met, possible = met + mine, possible + mine + len(missing)
        told[value] = f"meets {mine} of {mine + len(missing)}{_named(missing)}"
        for why in sorted(set(others) - {"met", "missing"}):
            told[value] += f"; {len(others[why])} kept apart: {why}"
    said = f"{met // 2:,} of {possible // 2:,} that mean something"
    return {f"pairs in {pairs.programs:,} episodes": said, **told}


def pairs_in(episodes: int, seed: int = SEED) -> Pairs:
    """The pairs of values in seeded programs of all scenarios; nothing is run."""
    pairs, names = Pairs(), tuple(SCENARIOS)
    for number in range(episodes):
        scenario = SCENARIOS[names[number % len(names)]]
        pairs.add(values_of(program_for(scenario, seed, number)))
    return pairs


def _named(missing: list[str]) -> str:
    if not missing:
        return ""
    more = f" and {len(missing) - NAMED_MAX} more" if len(missing) > NAMED_MAX else ""
    return f", never {', '.join(missing[:NAMED_MAX])}{more}"
