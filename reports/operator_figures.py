"""The numbers of a run of generated mutants: kill rates with intervals, and survivors.

It needs only the standard library, so that a run can be read without Spark.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import takewhile
from typing import Any

from crashmq.reports.operator_records import OperatorRecord

Z = 1.959963984540054  # of the normal distribution: 95 % lie within
BUDGETS_S = (10, 60, 600)
ENGINE = "crashmq.engine."

NOT_REACHED = "not reached"
UNASKED = "seen, not asked"
ALIKE = "alike so far"
UNKNOWN = "not looked at"

_NONE: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Rate:
    """``killed`` of ``of`` mutants; ``low`` and ``high``: 95 % confidence interval."""

    name: str
    killed: int
    of: int
    low: float
    high: float

    @property
    def rate(self) -> float:
        """The share killed; 0 without mutants."""
        return self.killed / self.of if self.of else 0.0


def rate_of(name: str, killed: int, of: int) -> Rate:
    """A rate with Wilson's interval, valid for few mutants and for rates near 1.

    Source: Wilson 1927, "Probable inference, the law of succession, and statistical
    inference".
    """
    if not of:
        return Rate(name, 0, 0, 0.0, 1.0)
    share, square = killed / of, Z * Z
    middle = (share + square / (2 * of)) / (1 + square / of)
    half = Z / (1 + square / of)
    half *= math.sqrt(share * (1 - share) / of + square / (4 * of * of))
    low = 0.0 if killed == 0 else max(0.0, middle - half)
    high = 1.0 if killed == of else min(1.0, middle + half)
    return Rate(name, killed, of, low, high)


def counted(rows: Sequence[OperatorRecord]) -> list[OperatorRecord]:
    """The rows whose outcome counts for the rate."""
    return [row for row in rows if row.outcome in ("killed", "survived")]


def without(
    rows: Iterable[OperatorRecord], equivalent: Mapping[str, str]
) -> list[OperatorRecord]:
    """The rows without survivors that are judged equivalent."""
    return [row for row in rows if row.is_killed or row.id not in equivalent]


def left_after(
    budget_s: float, rows: Sequence[OperatorRecord], equivalent: Mapping[str, str]
) -> list[OperatorRecord]:
    """The mutants for which a search of ``budget_s`` goes on.

    They were not killed within the next smaller budget of the report, and are not
    judged equivalent.
    """
    smaller = max((each for each in BUDGETS_S if each < budget_s), default=0)
    return [
        row
        for row in without(counted(rows), equivalent)
        if not _is_killed_within(smaller, row)
    ]


def rates_by_budget(
    rows: Sequence[OperatorRecord], equivalent: Mapping[str, str] = _NONE
) -> list[Rate]:
    """The rate at each budget, from the shortest on while survivors have used it up.

    Survivors that are judged equivalent need no further search. Where only some of the
    others were searched for that long, the first ones in the order of ``rows``, which
    is random, the rate is estimated from them.
    """
    found = counted(rows)
    left, killed = found, 0
    rates: list[Rate] = []
    for seconds in BUDGETS_S:
        left = without(left, equivalent)
        searched = list(takewhile(partial(_had, seconds), left))
        if not found or (left and not searched):
            break
        kills = sum(_is_killed_within(seconds, row) for row in searched)
        if len(searched) < len(left):
            name = f"{seconds} s, estimated from {len(searched)} of {len(left)}"
            of_left = rate_of(name, kills, len(searched))
            rates.append(_estimated(killed, len(left), len(found), of_left))
            break
        killed += kills
        rates.append(rate_of(f"{seconds} s", killed, len(found)))
        left = [row for row in left if not _is_killed_within(seconds, row)]
    return rates


def _estimated(killed: int, left: int, of: int, of_left: Rate) -> Rate:
    """A rate: ``killed`` of ``of``, and of those ``left`` as many as ``of_left`` tells.

    The interval adds up that of the sample and that of the part of the survivors, as
    squares. Source: Zou and Donner 2008, "Construction of confidence limits about
    effect measures: a general approach" (MOVER).
    """
    before, share = rate_of("", killed, of), left / of
    total, missed = before.rate + share * of_left.rate, 1 - of_left.rate

    def half(of_sample: float, of_part: float) -> float:
        return math.hypot(missed * of_sample, share * of_part)

    low = total - half(before.rate - before.low, of_left.rate - of_left.low)
    high = total + half(before.high - before.rate, of_left.high - of_left.rate)
    return Rate(of_left.name, round(total * of), of, max(0.0, low), min(1.0, high))


def _is_killed_within(seconds: int, row: OperatorRecord) -> bool:
    return row.is_killed and row.cpu_us <= seconds * 1e6


def _had(seconds: int, row: OperatorRecord) -> bool:
    return row.cpu_us >= seconds * 1e6 or row.is_killed


def rates_by(
    rows: Sequence[OperatorRecord], key: Callable[[OperatorRecord], str]
) -> list[Rate]:
    """One rate for each key, those with the most survivors first."""
    killed: Counter[str] = Counter()
    of: Counter[str] = Counter()
    for row in counted(rows):
        of[key(row)] += 1
        killed[key(row)] += row.is_killed
    names = sorted(of, key=lambda name: (killed[name] - of[name], name))
    return [rate_of(name, killed[name], of[name]) for name in names]


def module_of(row: OperatorRecord) -> str:
    """The mutated module's name, without the engine's prefix."""
    return row.module.removeprefix(ENGINE)


def package_of(row: OperatorRecord) -> str:
    """The mutated module's package, two levels deep."""
    parts = module_of(row).split(".")
    return ".".join(parts[:2] if len(parts) > 2 else parts[:1])


def function_of(row: OperatorRecord) -> str:
    """Module and function."""
    return f"{module_of(row)}.{row.function}"


def class_of(row: OperatorRecord) -> str:
    """A survivor's class: whether its line ran, whether any observation differed."""
    if row.reached == 0 and row.differing <= 0:
        return NOT_REACHED
    if row.differing > 0:
        return UNASKED
    return ALIKE if row.compared else UNKNOWN


def summary_of_operators(
    rows: Sequence[OperatorRecord],
    asked: Mapping[str, Any],
    equivalent: Mapping[str, str] = _NONE,
) -> dict[str, Any]:
    """``summary.json`` of such a run."""
    found = counted(rows)
    kills = [row for row in found if row.is_killed]
    survivors = [row for row in found if not row.is_killed]
    left = without(survivors, equivalent)

    def told(rates: Sequence[Rate]) -> list[dict[str, Any]]:
        return [{**asdict(rate), "rate": round(rate.rate, 4)} for rate in rates]

    return {
        "mutants": len(found),
        "mutants_killed": len(kills),
        "sample": asked.get("size", 0),
        "seed": asked.get("seed", 0),
        "passed_over": asked.get("passed_over", {}),
        "code_version": asked.get("code_version", ""),
        "unconfirmed": [row.id for row in rows if row.outcome == "unconfirmed"],
        "not_carried_out": [row.id for row in rows if row.outcome == "defect"],
        "by_budget": told(rates_by_budget(rows, equivalent)),
        "by_budget_without_equivalent": told(
            rates_by_budget(without(rows, equivalent))
        ),
        "kills_by_what_the_law_is_about": dict(
            sorted(Counter(row.about for row in kills).items())
        ),
        "kills_by_law": dict(Counter(row.law for row in kills).most_common()),
        "survivors_by_class": dict(sorted(Counter(map(class_of, left)).items())),
        "by_operator": told(rates_by(rows, lambda row: row.operator)),
        "by_package": told(rates_by(rows, package_of)),
        "by_module": told(rates_by(rows, module_of)),
        "by_function": told(rates_by(rows, function_of)),
        "survivors": [row.id for row in left],
        "equivalent": {
            row.id: equivalent[row.id] for row in survivors if row.id in equivalent
        },
        "equivalent_yet_killed": [row.id for row in kills if row.id in equivalent],
    }


def sentence_of(
    rows: Sequence[OperatorRecord], equivalent: Mapping[str, str] = _NONE
) -> str:
    """The result in one sentence, or in two if some survivors are judged equivalent."""
    found = counted(rows)
    visible = without(found, equivalent)
    told = f"Killed: {_killed_of(found)} machine-made mutants, {_rate_in_words(found)}."
    if len(visible) == len(found):
        return told
    return (
        f"{told} Without the {len(found) - len(visible)} survivors that are judged "
        f"equivalent: {_killed_of(visible)}, {_rate_in_words(visible)}."
    )


def _killed_of(rows: Sequence[OperatorRecord]) -> str:
    return f"{sum(row.is_killed for row in rows)} of {len(rows)}"


def _rate_in_words(rows: Sequence[OperatorRecord]) -> str:
    rate = rate_of("", sum(row.is_killed for row in rows), len(rows))
    return f"{percent(rate.rate)} (95 %: {percent(rate.low)} to {percent(rate.high)})"


def percent(share: float) -> str:
    """A share as a percentage."""
    return f"{100 * share:.1f} %"


def report_of(
    rows: Sequence[OperatorRecord],
    asked: Mapping[str, Any],
    equivalent: Mapping[str, str] = _NONE,
) -> str:
    """The report as Markdown: rates, then the survivors as a work list."""
    found = counted(rows)
    kills = [row for row in found if row.is_killed]
    abouts = Counter(row.about for row in kills)
    lines = [
        "# Machine-made mutants",
        "",
        sentence_of(rows, equivalent),
        "",
        f"Sample of {asked.get('size', 0)} from seed {asked.get('seed', 0)}. Of the "
        f"kills {abouts['own']} are by a law about the mutated part, "
        f"{abouts['another']} by a law about something else, {abouts['any']} by an "
        f"exception, a hang or an end of the process.",
        "",
    ]
    visible = without(rows, equivalent)
    by_budget = "By processor time of the search"
    tables = [(by_budget, rates_by_budget(rows, equivalent))]
    if len(visible) < len(rows):
        title = f"{by_budget}, without those judged equivalent"
        tables.append((title, rates_by_budget(visible)))
    tables += [
        ("By operator", rates_by(visible, lambda row: row.operator)),
        ("By package", rates_by(visible, package_of)),
        ("By module", rates_by(visible, module_of)),
        ("By function, those with survivors", _with_survivors(visible)),
    ]
    for title, rates in tables:
        lines += [f"## {title}", "", *_table(rates), ""]
    lines += [survivors_of(visible), *_judged(rows, equivalent)]
    return "\n".join(lines)


def survivors_of(rows: Sequence[OperatorRecord]) -> str:
    """The survivors, function by function, each with its change."""
    left = [row for row in counted(rows) if not row.is_killed]
    lines = ["## Survivors", ""]
    classes = Counter(map(class_of, left))
    lines += [f"- {name}: {classes[name]}" for name in sorted(classes)]
    for name in sorted({function_of(row) for row in left}):
        lines += ["", f"### {name}", ""]
        mine = [row for row in left if function_of(row) == name]
        lines += [_item_of(row) for row in sorted(mine, key=lambda r: (r.line, r.id))]
    return "\n".join([*lines, ""])


def _judged(rows: Sequence[OperatorRecord], equivalent: Mapping[str, str]) -> list[str]:
    """The survivors judged equivalent with the reasons, and those judged wrongly."""
    judged = [row for row in counted(rows) if row.id in equivalent]
    if not judged:
        return []
    lines = ["## Survivors judged equivalent", ""]
    for row in sorted(judged, key=lambda row: (function_of(row), row.line, row.id)):
        where = f"- `{row.id}` {function_of(row)}:{row.line}"
        if row.is_killed:
            lines.append(f"{where}: **killed by {row.law}**, so the reason is wrong")
        else:
            lines.append(f"{where} {_changed(row)}: {equivalent[row.id]}")
    return [*lines, ""]


def _with_survivors(rows: Sequence[OperatorRecord]) -> list[Rate]:
    return [rate for rate in rates_by(rows, function_of) if rate.killed < rate.of]


def _table(rates: Sequence[Rate]) -> list[str]:
    head = ["| | killed | of | rate | 95 % interval |", "|---|---:|---:|---:|---|"]
    return head + [
        f"| {rate.name} | {rate.killed} | {rate.of} | {percent(rate.rate)} | "
        f"{percent(rate.low)} to {percent(rate.high)} |"
        for rate in rates
    ]


def _item_of(row: OperatorRecord) -> str:
    reached = "" if row.reached < 0 else f"; line run in {row.reached} slices"
    differs = f"; {row.differing} of {row.compared} differ" if row.compared else ""
    return (
        f"- `{row.id}` {row.operator}, line {row.line}, {class_of(row)}{reached}"
        f"{differs}, {row.cpu_us / 1e6:.0f} s: {_changed(row)}"
    )


def _changed(row: OperatorRecord) -> str:
    """The first changed lines."""
    old, new = row.before.splitlines(), row.after.splitlines()
    gone = [line.strip() for line in old if line not in new]
    come = [line.strip() for line in new if line not in old]
    if not gone and not come:
        return f"`{'; '.join(map(str.strip, new))}` in this order"
    return f"`{'; '.join(gone) or '(nothing)'}` -> `{'; '.join(come) or '(nothing)'}`"
