"""What is asked of a broker's config files, as it leaves them.

Each file is written anew and then renamed, so that no crash leaves it torn.
"""

from __future__ import annotations

from crashmq.harness.judging.asking import Checks, asked_together
from crashmq.models.knowledge.facts import Fact
from crashmq.models.knowledge.moments import FilesAtRest
from crashmq.models.laws.config_files import (
    bits_are_those_of_their_group,
    config_files_are_whole,
    filters_are_in_their_place,
)
from crashmq.models.laws.judged import Judged
from crashmq.models.laws.registry import Law

OF_CONFIG_FILES: tuple[Law[[Judged]], ...] = (
    config_files_are_whole,
    filters_are_in_their_place,
    bits_are_those_of_their_group,
)
NEEDS = (Fact.UNTOUCHED, Fact.WRITTEN_STAYS)


def _is_a_broker(at: FilesAtRest) -> bool:
    return at.known.setup.keeps_progress


@asked_together(OF_CONFIG_FILES, on=FilesAtRest, needs=NEEDS, where=_is_a_broker)
def _ask_config_files_at_rest(at: FilesAtRest, checks: Checks) -> None:
    judged = at.known.judged(at.image, None, clean=False)
    for law in OF_CONFIG_FILES:
        law.hold(checks, judged)
