"""Operator campaign: searches a sample of machine-made mutants; can be continued.

A directory has the sample, and each row once its hunt has ended. Called again with the
same directory, a campaign does what is missing: mutants that were not searched yet, and
survivors whose budget has grown, from the slice on at which they were left. Survivors
that are judged equivalent are searched no further.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from crashmq.harness.guards.pools import mapped
from crashmq.harness.mutants.mutation import Edit, Mutant
from crashmq.harness.mutants.operators.equivalent import equivalent_mutants
from crashmq.harness.mutants.operators.generate import Drawing, Made, sample
from crashmq.harness.mutants.operators.lines import add_lines, counted_lines
from crashmq.harness.mutants.operators.operator_hunt import (
    COMPARED,
    OperatorHunt,
    differing,
    search,
)
from crashmq.harness.searches.soak import code_version
from crashmq.reports.errors import BadRequest
from crashmq.reports.files import write_text
from crashmq.reports.operator_figures import left_after
from crashmq.reports.operator_records import (
    ASKED_FILE,
    LINES_FILE,
    ROWS_FILE,
    Lines,
    OperatorRecord,
    append_row,
    cut_torn_row,
    in_sample_order,
    lines_text,
    read_asked,
    read_lines,
    read_operator_rows,
    write_asked,
)

Runner: TypeAlias = Callable[
    [Callable[[Any], OperatorRecord], Sequence[Any]], Iterator[OperatorRecord]
]
"""Does a work on each task, and yields the rows as they are done, in any order."""

LINED_SLICES = 40  # two rounds of a hunt


class CannotGoOn(BadRequest):
    """A directory's run cannot be continued by this campaign; the message says why."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A mutant of the sample as the directory stores it."""

    id: str
    module: str
    function: str
    operator: str
    line: int
    before: str
    after: str

    @classmethod
    def of(cls, made: Made) -> Drawn:
        """What to store of a mutant."""
        (edit,) = made.mutant().edits
        place = made.place
        return cls(
            id=made.id,
            module=place.module,
            function=place.function,
            operator=made.operator,
            line=made.line,
            before=edit.before,
            after=edit.after,
        )

    def mutant(self) -> Mutant:
        """The mutant to plant."""
        edit = Edit(self.module, self.function, self.before, self.after)
        where = f"{self.module.rpartition('.')[2]}:{self.line}"
        return Mutant(self.id, f"{self.operator} at {where}", (), (edit,))


@dataclass(frozen=True, slots=True)
class OperatorCampaign:
    """The configuration of a campaign: how many mutants, which part, which seed.

    Attributes:
        out: the directory of the run.
        size: the size of the sample.
        seed: decides the sample's order and each search.
        budget_s: processor time for each mutant, in seconds.
        only: names that a mutant's id, operator or place must have; () for all.
        survivors: with how many survivors of the next smaller budget to go on, the
            first in the sample's order; None: with all of them.
    """

    out: Path
    size: int
    seed: int
    budget_s: float
    only: tuple[str, ...] = ()
    survivors: int | None = None

    @property
    def decides(self) -> dict[str, Any]:
        """What must be equal for a run to be continued."""
        return {
            "seed": self.seed,
            "only": list(self.only),
            "code_version": code_version(),
        }

    @property
    def equivalent(self) -> dict[str, str]:
        """Why each mutant that is judged equivalent is that, by id.

        Raises:
            NotReasons: a file that says so cannot be read.
        """
        return equivalent_mutants(self.out)

    def draw(self) -> list[Drawn]:
        """The sample: as stored, or drawn and stored now; drawn anew if larger.

        Raises:
            CannotGoOn: the directory has another run, or something else.
        """
        kept: list[Drawn] = []
        if self.out.exists() and not self.out.is_dir():
            raise CannotGoOn(f"{self.out} is a file; give --out a new directory.")
        if (self.out / ASKED_FILE).exists():
            asked = read_asked(self.out)
            self._check(asked)
            kept = [Drawn(**each) for each in asked["sample"]]
            if len(kept) >= self.size or asked["size"] >= self.size:
                return kept[: self.size]
        elif self.out.exists() and any(self.out.iterdir()):
            raise CannotGoOn(
                f"{self.out} holds no run of these mutants; give --out a new directory."
            )
        told = Drawing()
        found = sample(self.seed, self.size, told, only=self.only)
        drawn = [Drawn.of(made) for made in found]
        self.out.mkdir(parents=True, exist_ok=True)
        asked = {**self.decides, "size": self.size, "passed_over": asdict(told)}
        write_asked(self.out, {**asked, "sample": [asdict(each) for each in drawn]})
        return drawn

    def _check(self, asked: dict[str, Any]) -> None:
        for key, value in self.decides.items():
            if asked.get(key) != value:
                raise CannotGoOn(
                    f"{self.out} holds a run with {key} {asked.get(key)!r}, and this "
                    f"one has {value!r}; rows of both mean nothing together. Give "
                    f"--out a new directory, or ask for the same again."
                )

    def rows(self) -> list[OperatorRecord]:
        """All rows in the directory."""
        cut_torn_row(self.out)
        if not (self.out / ROWS_FILE).exists():
            return []
        return read_operator_rows(self.out)

    def missing(self, drawn: Sequence[Drawn]) -> list[OperatorHunt]:
        """The hunts that are still to be done, in the order of the sample.

        Raises:
            NotReasons: the file that says which mutants are equivalent is none.
        """
        done = {row.id: row for row in self.rows()}
        to_go_on = self._to_go_on(in_sample_order(done.values(), [d.id for d in drawn]))
        hunts: list[OperatorHunt] = []
        for each in drawn:
            row = done.get(each.id)
            task = OperatorHunt(
                each.mutant(), each.operator, each.line, self.seed, self.budget_s
            )
            if row is None or row.outcome == "defect":
                hunts.append(task)
            elif row.id in to_go_on:
                used = row.cpu_us / 1e6
                hunts.append(replace(task, slices=row.slices, used_s=used))
        return hunts

    def _to_go_on(self, rows: Sequence[OperatorRecord]) -> set[str]:
        """The survivors whose search goes on."""
        left = left_after(self.budget_s, rows, self.equivalent)
        return {
            row.id
            for row in left[: self.survivors]
            if row.outcome == "survived" and row.cpu_us < self.budget_s * 1e6
        }


def run_hunts(
    campaign: OperatorCampaign, hunts: Sequence[OperatorHunt], runner: Runner
) -> Iterator[OperatorRecord]:
    """Search; store each row as its hunt ends, and yield it."""
    for row in runner(search, hunts):
        append_row(campaign.out, row)
        yield row


def compare_survivors(
    campaign: OperatorCampaign, drawn: Sequence[Drawn], runner: Runner
) -> Iterator[OperatorRecord]:
    """Compare survivors with the clean engine: on how many programs each differs.

    Only those that were not compared yet; yields their rows.
    """
    by_id = {each.id: each for each in drawn}
    asked = [
        (row, by_id[row.id].mutant(), campaign.seed)
        for row in campaign.rows()
        if row.outcome == "survived" and not row.compared and row.id in by_id
    ]
    for row in runner(_compared, asked):
        append_row(campaign.out, row)
        yield row


def lines_of(campaign: OperatorCampaign, told: Callable[[int], None]) -> Lines:
    """The lines that the beginning of a hunt runs; counted once per directory."""
    counted = read_lines(campaign.out)
    if counted is not None:
        return counted
    lines: Lines = {}
    for number, more in enumerate(counted_lines(campaign.seed, range(LINED_SLICES))):
        add_lines(lines, more)
        told(number + 1)
    write_text(campaign.out / LINES_FILE, lines_text(lines))
    return lines


def save_survivors(campaign: OperatorCampaign, survivors: Sequence[Drawn]) -> None:
    """Write ``survivors.toml``, a file of mutants."""
    write_text(campaign.out / "survivors.toml", toml_of(survivors))


def toml_of(drawn: Sequence[Drawn]) -> str:
    """The mutants as a file that ``crashmq mutants --file`` and ``replay`` read."""
    texts: list[str] = []
    for each in drawn:
        mutant = each.mutant()
        lines = [
            "[[mutant]]",
            f"id = {json.dumps(mutant.id)}",
            f"title = {json.dumps(mutant.title)}",
            "laws = []",
            "",
            "[[mutant.edit]]",
            f"module = {json.dumps(each.module)}",
            f"function = {json.dumps(each.function)}",
            f"before = {json.dumps(each.before)}",
            f"after = {json.dumps(each.after)}",
        ]
        texts.append("\n".join(lines) + "\n")
    return "\n".join(texts)


def _compared(asked: tuple[OperatorRecord, Mutant, int]) -> OperatorRecord:
    row, mutant, seed = asked
    return replace(row, differing=differing(mutant, seed), compared=COMPARED)


def by_processes(workers: int) -> Runner:
    """A runner of so many processes, which are new interpreters."""
    return partial(mapped, workers)
