from __future__ import annotations

import pytest
from damaged_store import END, FILES, broken, damaged, damages, judged
from hypothesis import given, settings
from written_store import log_path, patched, slot_bytes, without

from crashmq.models.laws.file_laws import FILE_LAWS
from crashmq.models.laws.registry import declared_laws


def test_a_whole_store_keeps_every_law() -> None:
    assert broken(FILES) == set()
    assert broken(FILES, clean=False) == set()
    assert broken(FILES, stale_allowed=True) == set()


def test_an_empty_store_keeps_every_law() -> None:
    assert broken({}) == set()


def test_a_store_without_its_first_files_keeps_every_law() -> None:
    mark = slot_bytes(9, 4096, END)
    files = patched(without(FILES, log_path(0)), "checkpoint", 1024, mark)

    assert broken(files) == set()


def test_ids_run_in_order_and_state_laws_of_the_catalogue() -> None:
    ids = [law.id for law in FILE_LAWS]

    assert ids == [
        *("CL-1", "CL-2", "CL-3", "CL-4", "CL-5"),
        *("CQ-1", "CQ-2", "CQ-3", "CQ-4", "CQ-5", "CQ-6", "CQ-7", "CQ-8", "CQ-9"),
        *("CQ-10", "CQ-11"),
        *("OFF-1", "CP-1", "CP-2", "CP-3", "CP-5", "CP-7", "CP-8"),
        *("IX-3", "IX-4", "IX-5", "IX-6", "IX-7", "IX-8", "IX-9"),
        *("DEL-7", "DEL-8"),
    ]
    assert all(law.catalogue.startswith("I") for law in FILE_LAWS)


@pytest.mark.slow
@settings(max_examples=80, deadline=None, derandomize=True, database=None)
@given(damages(), damages())
def test_no_bytes_make_a_law_fail_itself(
    one: tuple[str, int, bytes, int], other: tuple[str, int, bytes, int]
) -> None:
    """A law that raised would raise LawUnknown here."""
    files = damaged([one, other])
    asked = [
        judged(files),
        judged(files, stale_allowed=True),
        judged(files, clean=False, reput_from_offset=None),
    ]

    ids = {law.id for law in FILE_LAWS for j in asked if law.violations(j)}

    assert ids <= set(declared_laws())
