"""Machine-made mutants: every change of every place, numbered, filtered and drawn.

``population`` lists all changes, unexamined. A sample is the beginning of an order that
the seed decides, so a larger sample begins with the smaller one. Changes that are no
mutants are skipped while drawing: the code stays the same, or is that of another
mutant, or the change cannot be planted in memory.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice

from crashmq.harness.mutants.dead_code import runs_alike
from crashmq.harness.mutants.mutation import Edit, Mutant, MutantError, applied
from crashmq.harness.mutants.operators.defaults import is_always_given
from crashmq.harness.mutants.operators.domain import domain
from crashmq.harness.mutants.operators.ordinary import ordinary
from crashmq.harness.mutants.operators.places import Place, places
from crashmq.harness.mutants.operators.spans import Change, Text, is_inside
from crashmq.harness.searches.supervised import Lost, supervised

PLANTING_TIMEOUT_S = 30.0
_ID_BYTES = 5


@dataclass(frozen=True, slots=True)
class Made:
    """A mutant made by machine; its text is computed only when it is asked for.

    Attributes:
        id: ``OP-`` and a hash of place, operator, line and number of the change; it
            stays the same while the function does.
        operator: its name in the report.
        occurrence: which of the operator's changes of the place it is, from 0.
        line: of the change, in its module.
    """

    id: str
    place: Place
    operator: str
    occurrence: int
    line: int
    change: Change

    def is_named_by(self, name: str) -> bool:
        """Whether a name is its id, operator or place, or a part around that."""
        return name in (self.id, self.operator) or self.place.is_part_of(name)

    @property
    def after(self) -> str:
        """The whole text of the place with the change made."""
        return self.change.make()

    def mutant(self) -> Mutant:
        """The mutant; its edit is as small as possible and found once in the place."""
        before, after = smallest_edit(self.place.text, self.after)
        edit = Edit(self.place.module, self.place.function, before, after)
        where = f"{self.place.module.rpartition('.')[2]}:{self.line}"
        return Mutant(
            id=self.id,
            title=f"{self.operator} at {where}",
            killed_by=(),
            edits=(edit,),
            source="made by machine",
        )


@cache
def population() -> tuple[Made, ...]:
    """Every change of the engine's text, place by place."""
    return tuple(made for place in places() for made in made_of(place))


def made_of(place: Place) -> Iterator[Made]:
    """The changes of one place."""
    text = Text(place.text)
    idle = text.idle()
    counts: dict[str, int] = {}
    same: dict[str, int] = {}
    for change in (*domain(text), *ordinary(text)):
        if is_inside(change.span, idle):
            continue
        occurrence = counts.get(change.operator, 0)
        counts[change.operator] = occurrence + 1
        row = text.line_of(change.span[0])
        said = text.text.splitlines()[row - 1].strip()
        told = "|".join((place.module, place.function, change.operator, said))
        nth = same.get(told, 0)
        same[told] = nth + 1
        yield Made(
            id=f"OP-{_hash(f'{told}|{nth}')}",
            place=place,
            operator=change.operator,
            occurrence=occurrence,
            line=place.line + row - 1,
            change=change,
        )


@dataclass(slots=True)
class Drawing:
    """How many changes were skipped while drawing a sample, by reason."""

    same_code: int = 0
    same_as_another: int = 0
    unused_default: int = 0
    not_plantable: int = 0


def named(only: Sequence[str]) -> list[Made]:
    """The mutants that one of the names means: an id, an operator, a place or a part.

    ``store.flush`` means the module, ``store.flush.CommitLogFlusher`` what is in it.
    """
    if not only:
        return list(population())
    parts = [{place for place in places() if place.is_part_of(name)} for name in only]
    if all(parts):
        meant = set().union(*parts)
        return [made for place in places() if place in meant for made in made_of(place)]
    # An operator, or the id of one mutant, may be anywhere.
    return [made for made in population() if any(map(made.is_named_by, only))]


def drawn(seed: int, told: Drawing, only: Sequence[str] = ()) -> Iterator[Made]:
    """Yield the mutants in the order of ``seed``, without changes that are none.

    Args:
        seed: decides the order; a longer sample begins with every shorter one.
        told: counts what is skipped.
        only: names of which one must mean the mutant; () for all mutants.
    """
    order = sorted(named(only), key=lambda made: _hash(f"{seed}|{made.id}"))
    met: set[tuple[str, str, str]] = set()
    for made in order:
        after = _tree(made.after)
        key = (made.place.module, made.place.function, after)
        if not after or runs_alike(made.place.text, made.after):
            told.same_code += 1
        elif key in met:
            told.same_as_another += 1
        elif made.place.is_field and is_always_given(made.place.function):
            told.unused_default += 1
        else:
            met.add(key)
            yield made


def plantable(candidates: list[Made]) -> list[bool]:
    """For each, whether it can be planted in memory; a child process tries them."""

    def trial(number: int) -> bool:
        try:
            with applied(candidates[number].mutant()):
                return True
        except MutantError:
            return False

    rows = supervised(trial, range(len(candidates)), PLANTING_TIMEOUT_S)
    return [row is True for row in rows if isinstance(row, bool | Lost)]


def sample(seed: int, size: int, told: Drawing, only: Sequence[str] = ()) -> list[Made]:
    """The first ``size`` mutants of the seed's order that can be planted."""
    found: list[Made] = []
    stream = drawn(seed, told, only)
    while len(found) < size:
        more = list(islice(stream, size - len(found)))
        if not more:
            break
        kept = [m for m, can in zip(more, plantable(more), strict=True) if can]
        told.not_plantable += len(more) - len(kept)
        found += kept
    return found


def smallest_edit(before: str, after: str) -> tuple[str, str]:
    """The lines that differ, and as many around them as make them unique."""
    old, new = before.splitlines(), after.splitlines()
    first = 0
    while first < min(len(old), len(new)) and old[first] == new[first]:
        first += 1
    last = 0
    room = min(len(old), len(new)) - first
    while last < room and old[-1 - last] == new[-1 - last]:
        last += 1
    if first + last == len(old):  # only an insertion: one line of what is there
        last -= last > 0
        first -= first + last == len(old)
    while True:
        piece = "\n".join(old[first : len(old) - last])
        if before.count(piece) == 1 or not (first or last):
            return piece, "\n".join(new[first : len(new) - last])
        first -= first > 0
        last -= last > 0


def _tree(text: str) -> str:
    try:
        return ast.dump(ast.parse(text))
    except SyntaxError:
        return ""


def _hash(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=_ID_BYTES).hexdigest()
