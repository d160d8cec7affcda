"""Each law is fired by two edits or more: by planted bugs, or by a store that lies.

Part of the self-test of the harness. Which law a planted bug's trigger breaks stands in
``triggered.json``; ``tests/harness/test_mutants.py`` holds it against the triggers.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from lies_beside import LIES_BESIDE
from lies_of_administrators import LIES_OF_ADMINISTRATORS
from lies_of_answers import LIES_OF_ANSWERS
from lies_of_config_files import LIES_OF_CONFIG_FILES
from lies_of_consumers import LIES_OF_CONSUMERS
from lies_of_files import LIES_OF_FILES
from lies_of_lives import LIES_OF_LIVES
from lies_of_the_medium import LIES_OF_THE_MEDIUM
from misreporting import Lie

from crashmq.harness.episodes.episode import run_program
from crashmq.harness.mutants.mutation import applied
from crashmq.models.laws.registry import declared_laws
from crashmq.models.verdict import Outcome

LIES = (
    *LIES_OF_FILES,
    *LIES_OF_CONFIG_FILES,
    *LIES_OF_ANSWERS,
    *LIES_OF_LIVES,
    *LIES_OF_THE_MEDIUM,
    *LIES_OF_CONSUMERS,
    *LIES_BESIDE,
    *LIES_OF_ADMINISTRATORS,
)
TRIGGERED: dict[str, str] = json.loads(
    (Path(__file__).parent / "triggered.json").read_text("utf-8")
)
NOT_IN_EPISODES = {
    "CL-3": "where a filler is gone, CL-1 speaks first; it is for fsck of stores that "
    "RocketMQ wrote, whose left-over bytes CL-1 excuses",
    "CFG-2": "judged by fsck alone; OFS-9 is its like in episodes",
    "CP-10": "judged by fsck alone, since episodes rot such bytes too",
    "DET-1": "judged over two runs, by soak and by the gate",
    "REC-5": "RUN-9 tells of a stop first, and PUT-2 of a put; it is for stores that "
    "do not tell their positions",
    "TOP-2": "CFG-6 tells of it first, as the table is written",
    "RES-1": "judged where there is a process to count handles of: on real disks",
}


def test_every_law_is_fired_by_two_edits_or_is_known_to_be_out_of_reach() -> None:
    fired = Counter([*TRIGGERED.values(), *(lie.law for lie in LIES)])
    seldom = {law for law in declared_laws() if fired[law] < 2}

    assert seldom == {*NOT_IN_EPISODES}
    assert not [law for law in seldom if fired[law]]


def test_no_two_lies_are_the_same() -> None:
    told = [(lie.law, lie.edit, lie.program) for lie in LIES]

    assert len({*told}) == len(told)


@pytest.mark.slow
@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie.id)
def test_a_law_fires_at_what_it_watches_and_at_nothing_else(lie: Lie) -> None:
    honest = run_program(lie.program, keep_trace=False)
    with applied(lie.as_mutant()):
        lying = run_program(lie.program, keep_trace=False)

    assert honest.outcome is Outcome.PASSED, honest.message
    assert lying.law == lie.law, lying.message
