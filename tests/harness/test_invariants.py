"""Every class that lists invariants keeps them, and is caught when it does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from crashmq.engine.store.logfile.mapped_file import MappedFile
from crashmq.harness.episodes.episode import run_program
from crashmq.harness.failures.case_file import CaseFile
from crashmq.harness.guards.invariants import (
    InvariantBroken,
    checked_classes,
    invariants_checked,
)
from crashmq.harness.searches.aiming import perhaps_aimed
from crashmq.models.verdict import Outcome
from crashmq.scenarios.catalogue.scenarios import SCENARIOS
from crashmq.scenarios.programs.workload import program_for


class Counter:
    """Counts up.

    Invariants:
        0 <= count <= 2
    """

    def __init__(self) -> None:
        self.count = 0

    def _check(self) -> None:
        assert 0 <= self.count <= 2, self.count

    def up(self, times: int = 1) -> int:
        """Count ``times`` up, one call of this method after the other."""
        self.count += 1
        return self.up(times - 1) if times > 1 else self.count

    def there_and_back(self) -> int:
        """Break the invariant for as long as the call lasts."""
        self.up(9)
        self.count = 1
        return self.count


@pytest.fixture
def counter(monkeypatch: pytest.MonkeyPatch) -> Counter:
    name = "crashmq.harness.guards.invariants.checked_classes"
    monkeypatch.setattr(name, lambda: (Counter,))
    return Counter()


@pytest.mark.parametrize("cls", checked_classes(), ids=lambda cls: cls.__name__)
def test_a_class_that_lists_invariants_checks_them(cls: type) -> None:
    assert "_check" in vars(cls), "what is listed is asserted, or is prose"


def test_many_classes_list_some() -> None:
    assert len(checked_classes()) >= 19


def test_what_is_broken_when_a_method_ends_is_seen_then(counter: Counter) -> None:
    with (
        invariants_checked(),
        pytest.raises(InvariantBroken, match=r"Counter after up: 3"),
    ):
        counter.up(3)


def test_amid_a_method_nothing_is_asked(counter: Counter) -> None:
    with invariants_checked():
        assert counter.there_and_back() == 1


def test_outside_the_context_the_class_is_as_it_was_written(counter: Counter) -> None:
    written = vars(Counter)["up"]
    with invariants_checked():
        assert vars(Counter)["up"] is not written
        with invariants_checked():
            pass
        assert vars(Counter)["up"] is not written

    assert vars(Counter)["up"] is written
    assert counter.up(5) == 5


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENARIOS)
def test_no_class_of_ours_breaks_one_and_no_digest_changes(name: str) -> None:
    for number in range(3):
        program = perhaps_aimed(program_for(SCENARIOS[name], 17, number), 17, number)
        plain = run_program(program, name, keep_trace=False)
        with invariants_checked():
            checked = run_program(program, name, keep_trace=False)

        assert checked.outcome is Outcome.PASSED, checked.message
        assert checked.digest == plain.digest


def test_a_store_that_breaks_one_breaks_a_law(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    flush = MappedFile.flush

    def too_far(self: MappedFile, least_pages: int) -> int:
        flush(self, least_pages)
        self.flushed = self.wrote + 1
        return self.flushed

    monkeypatch.setattr(MappedFile, "flush", too_far)
    program = program_for(SCENARIOS["flush_modes"], 17, 0)
    with invariants_checked():
        result = run_program(program, "flush_modes")

    assert result.law == "RUN-1"
    assert "InvariantBroken: MappedFile after " in result.message
    case = CaseFile("flush_modes", program, "RUN-1", result.step, "", result.message)
    case.save(tmp_path / "a.case.json")
    assert CaseFile.load(tmp_path / "a.case.json").checks_invariants
