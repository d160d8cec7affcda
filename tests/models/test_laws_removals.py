from __future__ import annotations

from dataclasses import replace
from struct import pack

import pytest

from crashmq.models.history import TakenAway
from crashmq.models.laws.registry import LawViolated
from crashmq.models.laws.removals import (
    listing_is_needless,
    log_file_is_needless,
    orderly_end_is_durable_first,
    what_is_renamed_is_synced,
)

QUEUE = "consumequeue/T0/0/00000000000000000000"
ABORT = TakenAway("remove", "abort", b"", True, (), b"", b"", ())


def log_path(base: int) -> str:
    return f"commitlog/{base:020d}"


def units(*places: int) -> bytes:
    return b"".join(pack(">qiq", place, 100, 0) for place in places).ljust(200, b"\0")


def test_a_file_is_synced_before_it_takes_anothers_name() -> None:
    renamed = replace(ABORT, verb="rename", path="config/topics.json.tmp")

    what_is_renamed_is_synced.hold({}, renamed)
    with pytest.raises(LawViolated):
        what_is_renamed_is_synced.hold({}, replace(renamed, is_synced=False))


def test_the_abort_file_goes_last() -> None:
    orderly_end_is_durable_first.hold({}, replace(ABORT, unsynced=(("abort", 0),)))
    with pytest.raises(LawViolated, match="consumequeue"):
        orderly_end_is_durable_first.hold({}, replace(ABORT, unsynced=((QUEUE, 0),)))


def test_a_log_file_waits_for_the_mark_the_file_before_and_the_units() -> None:
    taken = replace(ABORT, path=log_path(0), log=(log_path(0), log_path(512)))
    files = {QUEUE: units(0, 600)}
    told = [str(one.seen) for one in log_file_is_needless.violations(taken, 512, files)]
    later = replace(taken, path=log_path(512), unsynced=((QUEUE, 25),))
    of_later = log_file_is_needless.violations(later, 512, files)
    of_first = replace(taken, unsynced=((QUEUE, 25),))

    assert told == ["the checkpoint on the medium has log_min_offset 0"]
    assert [one.seen for one in of_later][1:] == [
        f"{log_path(0)} could come back",
        "a power loss could take the unit of the record at 600",
    ]
    assert len(log_file_is_needless.violations(of_first, 512, files)) == 1


def test_a_listing_waits_until_its_last_record_is_gone_from_the_medium() -> None:
    taken = replace(ABORT, path=QUEUE, content=units(0, 600))

    listing_is_needless.hold({}, replace(taken, log=(log_path(1024),)))
    listing_is_needless.hold({}, replace(taken, content=units(), log=(log_path(0),)))
    with pytest.raises(LawViolated, match="record at 600"):
        listing_is_needless.hold({}, replace(taken, log=(log_path(512),)))
