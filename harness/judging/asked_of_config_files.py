"""When the laws of a broker's config files are asked.

Each file is replaced by a rename, so no crash leaves it torn.
"""

from __future__ import annotations

from crashmq.harness.judging.asking import Breaches, Checks, asked, asked_together
from crashmq.models.files.config_files import TABLES
from crashmq.models.files.delays import DELAYS_PATH
from crashmq.models.files.filters import FILTERS_PATH
from crashmq.models.files.offsets import OFFSETS_PATH
from crashmq.models.knowledge.facts import Fact
from crashmq.models.knowledge.moments import FilesAtRest, StartLeft
from crashmq.models.knowledge.moments_of_consumers import TableTurned
from crashmq.models.knowledge.tampering import Origin
from crashmq.models.laws.config_files import (
    bits_are_those_of_their_group,
    config_files_are_whole,
    filters_are_in_their_place,
)
from crashmq.models.laws.config_tables import (
    backup_is_one_write_behind,
    start_leaves_the_text_it_took,
    tables_are_written_as_rocketmq_does,
    tables_say_what_they_should,
    versions_count_changes,
)
from crashmq.models.laws.judged import Judged
from crashmq.models.laws.registry import Law
from crashmq.models.program import Setup

OF_FILTERS: tuple[Law[[Judged]], ...] = (
    filters_are_in_their_place,
    bits_are_those_of_their_group,
)
NEEDS = (Fact.UNTOUCHED, Fact.WRITTEN_STAYS)
OF_VALUES = (*NEEDS, Fact.VALUES_ARE_OURS)


def _is_a_broker(at: FilesAtRest) -> bool:
    return at.known.setup.keeps_progress


@asked(config_files_are_whole, on=FilesAtRest, needs=NEEDS, where=_is_a_broker)
def _ask_cfg_1(at: FilesAtRest) -> Breaches:
    judged = at.known.judged(at.image, None, clean=False)
    return config_files_are_whole.judge(judged)


@asked_together(OF_FILTERS, on=FilesAtRest, needs=OF_VALUES, where=_is_a_broker)
def _ask_filters_at_rest(at: FilesAtRest, checks: Checks) -> None:
    judged = at.known.judged(at.image, None, clean=False)
    for law in OF_FILTERS:
        law.hold(checks, judged)


def _is_its_own(at: FilesAtRest) -> bool:
    """Whether the broker itself wrote the files, not another program."""
    return _is_a_broker(at) and at.known.tampering.origin is Origin.OURS


@asked(
    tables_say_what_they_should,
    on=FilesAtRest,
    needs=(*OF_VALUES, Fact.SYNCED_STAYS),
    where=_is_its_own,
)
def _ask_cfg_5(at: FilesAtRest) -> Breaches:
    judged = at.known.judged(at.image, None, clean=False)
    changed, queues = at.known.progress.topics.changed, at.known.setup.retry_queues
    return tables_say_what_they_should.judge(judged, changed, queues)


@asked(
    tables_are_written_as_rocketmq_does,
    on=FilesAtRest,
    needs=(*OF_VALUES, Fact.SYNCED_STAYS),
    where=_is_its_own,
)
def _ask_cfg_8(at: FilesAtRest) -> Breaches:
    judged = at.known.judged(at.image, None, clean=False)
    return tables_are_written_as_rocketmq_does.judge(judged)


OF_TURNS = (*OF_VALUES, Fact.SYNCED_STAYS, Fact.DISK_WORKED, Fact.DISK_WORKS)


@asked(versions_count_changes, on=TableTurned, needs=OF_TURNS)
def _ask_cfg_6(at: TableTurned) -> Breaches:
    return versions_count_changes.judge(at.turn)


def _read_by(setup: Setup) -> tuple[str, ...]:
    """The config files that a broker of this setup reads and does not lower."""
    is_broker = setup.keeps_progress or setup.delivers_delayed
    reads = {DELAYS_PATH: setup.delivers_delayed, FILTERS_PATH: setup.filters}
    own = [one for one in TABLES if one != OFFSETS_PATH and reads.get(one, is_broker)]
    return (*own,)


@asked(
    start_leaves_the_text_it_took,
    on=StartLeft,
    needs=(Fact.WRITTEN_STAYS, Fact.SYNCED_STAYS, Fact.DISK_WORKS),
    where=lambda at: bool(_read_by(at.known.setup)),
)
def _ask_cfg_9(at: StartLeft) -> Breaches:
    judge = start_leaves_the_text_it_took.judge
    return judge(at.found.files, at.left, _read_by(at.known.setup))


@asked(
    backup_is_one_write_behind,
    on=TableTurned,
    needs=(*OF_TURNS, Fact.HAD_ROOM),
    where=lambda at: at.turn.backup is not None,
)
def _ask_cfg_7(at: TableTurned) -> Breaches:
    return backup_is_one_write_behind.judge(at.turn)
