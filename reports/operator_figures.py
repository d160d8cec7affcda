"""The numbers of a run of generated mutants: kill rates with intervals, and survivors.

It needs only the standard library, so that a run can be read without Spark.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from crashmq.reports.operator_records import OperatorRecord

Z = 1.959963984540054  # of the normal distribution: 95 % lie within
BUDGETS_S = (10, 60, 600)
ENGINE = "crashmq.engine."

NOT_REACHED = "not reached"
UNASKED = "seen, not asked"
ALIKE = "alike so far"
UNKNOWN = "not looked at"


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


def rates_by_budget(rows: Sequence[OperatorRecord]) -> list[Rate]:
    """The rate at each budget that every survivor has used up."""
    found = counted(rows)
    left = [row.cpu_us for row in found if not row.is_killed]
    rates: list[Rate] = []
    for seconds in BUDGETS_S:
        if found and (not left or min(left) >= seconds * 1e6):
            killed = sum(row.is_killed and row.cpu_us <= seconds * 1e6 for row in found)
            rates.append(rate_of(f"{seconds} s", killed, len(found)))
    return rates


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
    rows: Sequence[OperatorRecord], asked: dict[str, Any]
) -> dict[str, Any]:
    """``summary.json`` of such a run."""
    found = counted(rows)
    kills = [row for row in found if row.is_killed]
    left = [row for row in found if not row.is_killed]

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
        "by_budget": told(rates_by_budget(rows)),
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
    }


def sentence_of(rows: Sequence[OperatorRecord]) -> str:
    """The result in one sentence."""
    found = counted(rows)
    killed = sum(row.is_killed for row in found)
    rate = rate_of("", killed, len(found))
    return (
        f"Killed: {killed} of {len(found)} machine-made mutants, {percent(rate.rate)} "
        f"(95 %: {percent(rate.low)} to {percent(rate.high)})."
    )


def percent(share: float) -> str:
    """A share as a percentage."""
    return f"{100 * share:.1f} %"


def report_of(rows: Sequence[OperatorRecord], asked: dict[str, Any]) -> str:
    """The report as Markdown: rates, then the survivors as a work list."""
    found = counted(rows)
    kills = [row for row in found if row.is_killed]
    abouts = Counter(row.about for row in kills)
    lines = [
        "# Machine-made mutants",
        "",
        sentence_of(rows),
        "",
        f"Sample of {asked.get('size', 0)} from seed {asked.get('seed', 0)}. Of the "
        f"kills {abouts['own']} are by a law about the mutated part, "
        f"{abouts['another']} by a law about something else, {abouts['any']} by an "
        f"exception, a hang or an end of the process.",
        "",
    ]
    for title, rates in (
        ("By processor time of the search", rates_by_budget(rows)),
        ("By operator", rates_by(rows, lambda row: row.operator)),
        ("By package", rates_by(rows, package_of)),
        ("By module", rates_by(rows, module_of)),
        ("By function, those with survivors", _with_survivors(rows)),
    ):
        lines += [f"## {title}", "", *_table(rates), ""]
    return "\n".join([*lines, survivors_of(rows)])


def survivors_of(rows: Sequence[OperatorRecord]) -> str:
    """The survivors, function by function, each with its change."""
    left = [row for row in counted(rows) if not row.is_killed]
    lines = ["## Survivors", ""]
    classes = Counter(map(class_of, left))
    lines += [f"- {name}: {classes[name]}" for name in sorted(classes)]
    for name in sorted({function_of(row) for row in left}):
        lines += ["", f"### {name}", ""]
        mine = [row for row in left if function_of(row) == name]
        lines += [_told(row) for row in sorted(mine, key=lambda r: (r.line, r.id))]
    return "\n".join([*lines, ""])


def _with_survivors(rows: Sequence[OperatorRecord]) -> list[Rate]:
    return [rate for rate in rates_by(rows, function_of) if rate.killed < rate.of]


def _table(rates: Sequence[Rate]) -> list[str]:
    head = ["| | killed | of | rate | 95 % interval |", "|---|---:|---:|---:|---|"]
    return head + [
        f"| {rate.name} | {rate.killed} | {rate.of} | {percent(rate.rate)} | "
        f"{percent(rate.low)} to {percent(rate.high)} |"
        for rate in rates
    ]


def _told(row: OperatorRecord) -> str:
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
