"""Laws by id: a sentence, the laws of the catalogue it states, an exception class.

A law is a generator of ``Violation``. It is declared by decorating it::

    @law("CQ-3", "no unit points past the commit log's end", catalogue="I3")
    def no_unit_past_the_log(image: StoreImage) -> Iterator[Violation]: ...

Each id has an exception class of its own, since Hypothesis tells failures apart by
class and line: two broken laws are then reported as two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, ParamSpec

from crashmq.models.printable import printable
from crashmq.models.verdict import Violation

P = ParamSpec("P")


class LawViolated(AssertionError):
    """A law was broken; ``id`` says which, ``violations`` where.

    The classes of single laws derive from this one: ``CQ3Violated`` for ``CQ-3``.
    """

    id = ""

    def __init__(self, violations: list[Violation]) -> None:
        self.violations = violations
        declared = declared_laws()[self.id]
        shown = "\n".join(f"  {violation}" for violation in violations[:5])
        more = f"\n  and {len(violations) - 5} more" if len(violations) > 5 else ""
        super().__init__(
            f"{self.id} ({declared.catalogue}), {declared.sentence}:\n{shown}{more}"
        )


class LawUnknown(Exception):
    """A law itself failed, so the outcome is unknown: never read it as passed."""

    def __init__(self, law_id: str, error: BaseException) -> None:
        self.id = law_id
        super().__init__(
            f"{law_id} could not be judged: the law raised "
            f"{type(error).__name__}: {printable(str(error))}. This is a "
            f"defect of crashmq."
        )


@dataclass(frozen=True, slots=True)
class Law(Generic[P]):
    """One law: its sentence, and the function that judges it."""

    id: str
    sentence: str
    catalogue: str
    judge: Callable[P, Iterator[Violation]]
    error: type[LawViolated]

    def violations(self, *args: P.args, **kwargs: P.kwargs) -> list[Violation]:
        """Every breach, empty when the law holds.

        Raises:
            LawUnknown: the law itself failed.
        """
        try:
            return list(self.judge(*args, **kwargs))
        except Exception as error:
            raise LawUnknown(self.id, error) from error

    def hold(
        self, checks: dict[str, int], /, *args: P.args, **kwargs: P.kwargs
    ) -> None:
        """Count in ``checks`` that the law is asked, and raise if it does not hold.

        A hundred thousand laws are asked a second and hold, so that costs no list.

        Raises:
            LawViolated: it was broken, as its own class.
            LawUnknown: the law itself failed.
        """
        checks[self.id] = checks.get(self.id, 0) + 1
        try:
            for _ in self.judge(*args, **kwargs):
                break
            else:
                return
        except Exception as error:
            raise LawUnknown(self.id, error) from error
        raise self.error(self.violations(*args, **kwargs))


_declared: dict[str, Law[Any]] = {}


def law(
    law_id: str, sentence: str, *, catalogue: str
) -> Callable[[Callable[P, Iterator[Violation]]], Law[P]]:
    """Declare a law.

    Args:
        law_id: prefix and number, as ``CQ-3``; never reused.
        sentence: what holds, in one sentence.
        catalogue: the laws of the bug catalogue it states, as ``I3`` or ``I1 I7``.

    Raises:
        ValueError: the id is taken.
    """

    def declare(judge: Callable[P, Iterator[Violation]]) -> Law[P]:
        if law_id in _declared:
            raise ValueError(f"law {law_id} is declared twice.")
        name = law_id.replace("-", "") + "Violated"
        error = type(name, (LawViolated,), {"id": law_id})
        declared = Law(law_id, sentence, catalogue, judge, error)
        _declared[law_id] = declared
        return declared

    return declare


def declared_laws() -> dict[str, Law[Any]]:
    """Every declared law by id, sorted by id."""
    return {name: _declared[name] for name in sorted(_declared)}
