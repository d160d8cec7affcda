"""Generates the tables of the docs that follow from the declarations of laws.

``python -m crashmq.harness.judging.tables`` writes them: each stands in its page
between two comments, and the rest of the page is kept. A test compares them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import cleandoc
from pathlib import Path
from typing import Final, TypeAlias

import crashmq.harness.judging.judge  # noqa: F401  it gathers all that is asked
from crashmq.harness.judging.asked_of_starts import is_after_orderly_end
from crashmq.harness.judging.asking import Question, askable, questions
from crashmq.harness.subjects.subject import CORE_METHODS, METHODS, PROTOCOLS
from crashmq.models.knowledge import (
    moments,
    moments_of_consumers,
    moments_of_pulls,
    moments_of_rounds,
)
from crashmq.models.knowledge.facts import Fact, decided_by
from crashmq.models.knowledge.failures import STOPS
from crashmq.models.knowledge.moments import FilesFound, Moment
from crashmq.models.laws.registry import declared_laws
from crashmq.models.ops import EVERYTHING, Capability
from crashmq.reports.page import by_number

Kind: TypeAlias = type[Moment]
DOCS: Final = Path(__file__).resolve().parents[2] / "docs"
END: Final = "<!-- end -->"

ASKED_ELSEWHERE: Final[Mapping[str, tuple[str, str]]] = {
    "CFG-2": ("models/laws/config_files.py", "by `crashmq fsck` alone"),
    "CP-10": ("models/laws/checkpoint.py", "by `crashmq fsck` alone"),
    "DET-1": (
        "harness/searches/episode_rows.py",
        "by a soak, of two runs of one program",
    ),
    "REC-5": ("harness/episodes/episode.py", "by an episode, once, at its end"),
    "RES-1": ("tests/engine/test_resources.py", "by a test, on real disks"),
    "RUN-4": ("harness/episodes/episode.py", "by an episode, once, at its end"),
}
"""The laws that the judge does not ask: the file that does or says so, and when."""


def when_the_judge_looks() -> str:
    """Each kind of moment, in the order of definition, with the laws asked there."""
    rows = [
        (f"`{kind.__name__}`", _first_sentence(kind), _ids(_laws(questions()[kind])))
        for kind in _moments()
    ]
    return _table(("moment", "what has happened", "laws"), rows) + _asked_elsewhere()


def after_a_crash() -> str:
    """The laws asked of the files that a start finds, however the run ended."""
    found = questions()[FilesFound]
    always = [each for each in found if each.where is not is_after_orderly_end]
    sentences = {name: law.sentence for name, law in declared_laws().items()}
    rows = [
        (law, sentences[law], _facts(each.needs))
        for each in always
        for law in _laws([each])
    ]
    rows.sort(key=lambda row: by_number(row[0]))
    rest = _laws(found) - _laws(always)
    return (
        _table(("law", "sentence", "asked only if all of this is so"), rows)
        + f"\nOf files that a start finds after an orderly end alone: {_ids(rest)}.\n"
    )


def asked_and_excused() -> str:
    """Each fact with the laws that it excuses; then the laws that none excuses."""
    certain = decided_by(EVERYTHING)
    rows = [
        (fact.label.replace("_", " "), fact.value, *_excused_by(fact))
        for fact in Fact
        if fact not in certain
    ]
    head = ("fact", "what it says", "excused without it", "excused, but still asked at")
    every = [each for kind in _moments() for each in questions()[kind]]
    excused = [each for each in every if not certain.keys() >= {*each.needs}]
    never = _laws(every) - _laws(excused)
    return _table(head, rows) + f"\nNo fact ever excuses {_ids(never)}.\n"


def what_failures_stop() -> str:
    """The table of docs/disk.md: what a failed disk call may stop, and until when."""
    rows = [
        (f"`{one.part}`", one.calls, one.stops, one.until, "yes" if one.puts else "no")
        for one in STOPS
    ]
    head = ("file", "failing calls", "what they may stop", "until", "puts refused")
    return _table(head, rows)


def laws_of_subjects() -> str:
    """The core and each capability, with the laws that are not asked without it."""
    whole = _asked_of(EVERYTHING)
    rows = [("the core", "", _names(CORE_METHODS), _ids(_asked_of(frozenset())))]
    rows += [
        (
            f"`{protocol.__name__}`",
            capability.value,
            _names(METHODS[capability]),
            _ids(whole - _asked_of(EVERYTHING - {capability})),
        )
        for capability, protocol in PROTOCOLS.items()
    ]
    return _table(("protocol", "what it says", "methods", "laws"), rows)


def _asked_of(capabilities: frozenset[Capability]) -> set[str]:
    kept = askable(capabilities).questions.values()
    return _laws(each.question for of_kind in kept for each in of_kind)


def _names(methods: Iterable[str]) -> str:
    return ", ".join([f"`{name}`" for name in methods])


TABLES: Final[Sequence[tuple[str, str, Callable[[], str]]]] = (
    ("architecture.md", "when the judge looks", when_the_judge_looks),
    ("laws.md", "after a crash", after_a_crash),
    ("disk.md", "asked and excused", asked_and_excused),
    ("disk.md", "what failures stop", what_failures_stop),
    ("bring-your-own.md", "laws of subjects", laws_of_subjects),
)
"""Page, name and text of each table."""


def with_table(page: str, name: str, table: str) -> str:
    """The page with its table of that name replaced.

    Raises:
        ValueError: the page does not have the two comments exactly once.
    """
    begin = f"<!-- generated: {name} -->"
    place = re.compile(f"{re.escape(begin)}\n.*?{re.escape(END)}", re.DOTALL)
    if page.count(begin) != 1 or not place.search(page):
        raise ValueError(
            f"the page must say {begin!r} once, on a line of its own, and {END!r} "
            f"behind it; the table is written between the two."
        )
    return place.sub(lambda _: f"{begin}\n{table}{END}", page)


def write() -> list[str]:
    """Write each table into its page; returns the names of the changed pages.

    Raises:
        ValueError: a page has no place for its table.
    """
    changed = []
    for name, table, text in TABLES:
        path = DOCS / name
        before = path.read_text("utf-8")
        try:
            after = with_table(before, table, text())
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
        if after != before:
            path.write_text(after, "utf-8")
            changed.append(name)
    return changed


def _moments() -> list[Kind]:
    """The kinds of moments at which a law is asked, in the order of definition."""
    modules = (moments, moments_of_pulls, moments_of_rounds, moments_of_consumers)
    named = {name: each for one in modules for name, each in vars(one).items()}
    defined = [each for each in named.values() if isinstance(each, type)]
    return [each for each in defined if each in questions()]


def _laws(asked: Iterable[Question]) -> set[str]:
    return {law.id for each in asked for law in each.laws}


def _excused_by(fact: Fact) -> tuple[str, str]:
    """The laws that a fact excuses everywhere; the others, with their moments."""
    wholly: list[str] = []
    partly: dict[tuple[str, ...], list[str]] = {}
    every = [(kind, each) for kind in _moments() for each in questions()[kind]]
    for law in _laws(each for _, each in every if fact in each.needs):
        of_law = [(kind, each) for kind, each in every if law in _laws([each])]
        left = [kind.__name__ for kind, each in of_law if fact not in each.needs]
        if left:
            partly.setdefault(tuple(dict.fromkeys(left)), []).append(law)
        else:
            wholly.append(law)
    still = [
        f"{_ids(laws)} at {', '.join(f'`{kind}`' for kind in kinds)}"
        for kinds, laws in sorted(partly.items())
    ]
    return _ids(wholly), "; ".join(still)


def _asked_elsewhere() -> str:
    rest = declared_laws().keys() - _laws(
        each for kind in _moments() for each in questions()[kind]
    )
    assert rest == ASKED_ELSEWHERE.keys(), (rest, sorted(ASKED_ELSEWHERE))
    said = [
        f"- {law}: {when} (`{path}`)." for law, (path, when) in ASKED_ELSEWHERE.items()
    ]
    return "\nNot asked by the judge:\n\n" + "\n".join(said) + "\n"


def _first_sentence(kind: Kind) -> str:
    text = " ".join(cleandoc(kind.__doc__ or "").split())
    return re.split(r"(?<=\.) ", text)[0].removesuffix(".").replace("``", "`")


def _facts(facts: Iterable[Fact]) -> str:
    certain = decided_by(EVERYTHING)
    return ", ".join(f.label.replace("_", " ") for f in facts if f not in certain)


def _ids(laws: Iterable[str]) -> str:
    """Law ids sorted by number; three or more in a row as a range."""
    rows: list[list[tuple[str, int]]] = []
    for prefix, number in sorted(map(by_number, laws)):
        if rows and rows[-1][-1] == (prefix, number - 1):
            rows[-1].append((prefix, number))
        else:
            rows.append([(prefix, number)])
    said = []
    for row in rows:
        names = [f"{prefix}-{number}" for prefix, number in row]
        said += [f"{names[0]} to {names[-1]}"] if len(names) > 2 else names
    return ", ".join(said)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    shown = ["| " + " | ".join(cells) + " |" for cells in lines]
    return "\n".join(shown).replace("| ---", "|---").replace("--- |", "---|") + "\n"


def main() -> None:
    """Write the tables and print which pages have changed."""
    try:
        changed = write()
    except (OSError, ValueError) as error:
        raise SystemExit(f"no table was written from here on: {error}") from None
    for page in changed:
        print(f"docs/{page}: its table is written anew")


if __name__ == "__main__":
    main()
