"""The result of a run: one sentence, the warnings, the numbers, the exit code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from crashmq.reports.figures import Figures, Finding, unseen_share

CLEAN, VIOLATED, TOO_LITTLE = 0, 1, 5

_FEW_EPISODES = 100
_SKIPPED_SHARE = 0.9
_EXCUSED_SHARE = 0.99
_NAMED_MAX = 8
_RARELY = 200  # episodes for each check: 100 checks in 20,000 of all scenarios
_MANY_EPISODES = 20_000


@dataclass(frozen=True, slots=True)
class Missing:
    """A probe or law that a scenario declares required and did not reach."""

    scenario: str
    kind: str  # probe, law
    name: str


@dataclass(frozen=True, slots=True)
class Failure:
    """A distinct failure in the summary; ``case`` is "" if no case file was saved.

    ``scenario`` is that of its smallest episode; ``scenarios`` has the number of its
    episodes in each, by name.
    """

    signature: str
    outcome: str
    law: str
    sentence: str
    scenario: str
    scenarios: dict[str, int]
    episodes: int
    episode_id: int
    steps: int
    step: int
    message: str
    case: str
    history: str
    excused: str


@dataclass(frozen=True, slots=True)
class Summary:
    """``summary.json``, field by field; violations and unknown count episodes."""

    run_id: str
    exit_code: int
    verdict: str
    warnings: list[str]
    scenarios: list[str]
    episodes: int
    episodes_planned: int
    is_cut_short: bool
    steps: int
    crashes: int
    recoveries: int
    found_states: int  # kinds of state that starts have found
    unseen_states: float  # chance that the next start finds a kind that none has
    violations: int
    unknown: int
    distinct_failures: list[Failure]
    resolved_failures: list[str]
    unjudged_failures: list[Failure]
    vacuous_laws: list[str]
    rarely_checked: dict[str, int]
    mostly_excused: list[str]
    probes_never_hit: list[str]
    missing_required: list[Missing]
    missed_mutant: str  # "" if none was planted, or it broke a law
    digest: str
    elapsed_s: float | None
    episodes_per_second: float | None
    ops_per_second: float | None
    definition: dict[str, Any]


def summarise(figures: Figures, cases: Mapping[str, str]) -> Summary:
    """The result of the run; ``cases`` are paths of case files by signature."""
    episodes = sum(totals.episodes for totals in figures.scenarios)
    steps = sum(totals.steps for totals in figures.scenarios)
    states = figures.found_states
    missing = missing_required(figures)
    return Summary(
        run_id=figures.run["run_id"],
        exit_code=exit_code(figures),
        verdict=verdict(figures),
        warnings=warnings(figures, missing),
        scenarios=figures.scenario_names,
        episodes=episodes,
        episodes_planned=figures.run["episodes"],
        is_cut_short=_is_cut_short(figures),
        steps=steps,
        crashes=sum(totals.crashes for totals in figures.scenarios),
        recoveries=sum(totals.recoveries for totals in figures.scenarios),
        found_states=len(states),
        unseen_states=round(unseen_share(states.values()), 4),
        violations=sum(totals.violated for totals in figures.scenarios),
        unknown=sum(totals.unjudged for totals in figures.scenarios),
        distinct_failures=_failures(figures, figures.violated, cases),
        resolved_failures=list(figures.background.resolved),
        unjudged_failures=_failures(figures, figures.unjudged, cases),
        vacuous_laws=vacuous_laws(figures),
        rarely_checked=rarely_checked(figures),
        mostly_excused=mostly_excused(figures),
        probes_never_hit=probes_never_hit(figures),
        missing_required=missing,
        missed_mutant=missed_mutant(figures),
        digest=figures.digest,
        elapsed_s=figures.elapsed_s,
        episodes_per_second=_rate(episodes, figures.elapsed_s),
        ops_per_second=_rate(steps, figures.elapsed_s),
        definition=figures.definition,
    )


def exit_code(figures: Figures) -> int:
    """The exit code of a run; see ``code_of``."""
    return code_of(
        is_red=bool(figures.unexcused or figures.ended),
        falls_short=falls_short(figures),
        is_missed=bool(missed_mutant(figures)),
    )


def code_of(*, is_red: bool, falls_short: bool, is_missed: bool) -> int:
    """The exit code of a run, or of the last of several nights.

    Args:
        is_red: whether a law was violated that no entry of the baseline accepts, or
            the store ended an episode.
        falls_short: whether too little was judged for a verdict.
        is_missed: whether a planted bug broke no law.
    """
    if is_red:
        return VIOLATED
    if falls_short:
        return TOO_LITTLE
    return VIOLATED if is_missed else CLEAN


def falls_short(figures: Figures) -> bool:
    """Whether a run judged too little for a verdict, if it violated no law."""
    return bool(figures.unjudged or missing_required(figures) or _is_cut_short(figures))


def missed_mutant(figures: Figures) -> str:
    """The planted bug that broke no law, though enough ran; "" if there is none."""
    planted = str(figures.definition.get("mutant", ""))
    return "" if figures.violated or falls_short(figures) else planted


def verdict(figures: Figures) -> str:
    """The result of the run in one sentence, which says why it has its exit code."""
    episodes = sum(totals.episodes for totals in figures.scenarios)
    steps = sum(totals.steps for totals in figures.scenarios)
    crashes = sum(totals.crashes for totals in figures.scenarios)
    known = len(figures.violated) - len(figures.unexcused)
    done = f"{episodes:,} episodes, {steps:,} ops and {crashes:,} crashes"
    but = f" but {known} known" if known else ""
    if figures.unexcused:
        return _violated(figures, "Violated", known)
    if figures.unjudged:
        lost = sum(found.episodes for found in figures.unjudged)
        how = "Hung or died" if figures.ended else "Not judged"
        also = f"; no law was broken{but}" if known else ""
        return (
            f"{how}: {lost:,} of {episodes:,} episodes ended without a verdict{also}."
        )
    if _is_cut_short(figures):
        return (
            f"Not judged: the run was cut short after {done}; no law was broken{but}."
        )
    if missing := missing_required(figures):
        names = _named([f"{gap.name} in {gap.scenario}" for gap in missing])
        return f"Not judged: {done} broke no law{but}, and never reached {names}."
    if missed := missed_mutant(figures):
        title = figures.declared.mutants.get(missed, "")
        planted = f"planted bug {missed}" + (f" ({title})" if title else "")
        return f"MISSED: {planted} broke no law in {done}."
    if known:
        return _violated(figures, "Known", known)
    return f"Clean: {done}; no law was broken."


def _violated(figures: Figures, what: str, known: int) -> str:
    episodes = sum(totals.episodes for totals in figures.scenarios)
    broken = sum(found.episodes for found in figures.violated)
    laws = _named(sorted({found.law for found in figures.violated}))
    number = len(figures.violated)
    of_them = f", {known} known to the baseline" if known else ""
    return (
        f"{what}: {number} distinct failure{'s' if number > 1 else ''} of {laws} in "
        f"{broken:,} of {episodes:,} episodes{of_them}."
    )


def warnings(figures: Figures, missing: list[Missing]) -> list[str]:
    """What to know before trusting a run without violations, worst first."""
    found = [
        f"{gap.scenario} requires {gap.kind} {gap.name}, which was not reached."
        for gap in missing
    ]
    if _is_cut_short(figures):
        done = sum(totals.episodes for totals in figures.scenarios)
        planned = max(done, figures.run["episodes"])
        found.append(f"Cut short: {done:,} of {planned:,} episodes.")
    if vacuous := vacuous_laws(figures):
        found.append(f"Declared, but never checked: {_named(vacuous)}.")
    if rarely := rarely_checked(figures):
        share = f"once in {_RARELY} episodes"
        found.append(f"Checked less than {share}: {_named([*rarely])}.")
    if excused := mostly_excused(figures):
        share = f"{_EXCUSED_SHARE:.0%}"
        found.append(f"Excused in more than {share} of moments: {_named(excused)}.")
    if unhit := probes_never_hit(figures):
        found.append(f"Branches never reached (probes): {_named(unhit)}.")
    hit = {row.probe for row in figures.probes if row.hits}
    if wrong := sorted(hit & figures.declared.unreachable.keys()):
        found.append(f"Reached, though declared unreachable: {_named(wrong)}.")
    found += _thin_scenarios(figures) + _idle_ops(figures)
    found += [f"No longer excused: {told}." for told in figures.background.expired]
    if mutant := figures.definition.get("mutant"):
        found.append(f"The planted bug {mutant} was in place: not the shipped engine.")
    return found


def missing_required(figures: Figures) -> list[Missing]:
    """Probes and laws that this run's scenarios require and did not reach."""
    hit = {(row.scenario, row.probe) for row in figures.probes if row.hits}
    checked = {(row.scenario, row.law) for row in figures.laws if row.checks}
    declared = figures.declared
    probes = _unreached(figures, "probe", declared.required_probes, hit)
    laws = _unreached(figures, "law", declared.required_laws, checked)
    return probes + laws


def vacuous_laws(figures: Figures) -> list[str]:
    """Declared laws that no scenario ever checked."""
    checked = {row.law for row in figures.laws if row.checks}
    return [law for law in sorted(figures.declared.laws) if law not in checked]


def rarely_checked(figures: Figures) -> dict[str, int]:
    """Laws checked less than once in 200 episodes of a long run, with their number."""
    episodes = sum(totals.episodes for totals in figures.scenarios)
    checks: dict[str, int] = {}
    for row in figures.laws:
        checks[row.law] = checks.get(row.law, 0) + row.checks
    return {
        law: count
        for law, count in sorted(checks.items())
        if episodes >= _MANY_EPISODES and 0 < count * _RARELY < episodes
    }


def mostly_excused(figures: Figures) -> list[str]:
    """Declared laws excused in more than 99 % of the moments at which they apply."""
    mostly = {row.law for row in figures.excused_laws if row.share > _EXCUSED_SHARE}
    return sorted(mostly & figures.declared.laws.keys())


def probes_never_hit(figures: Figures) -> list[str]:
    """Declared probes that no scenario hit, without those declared unreachable."""
    hit = {row.probe for row in figures.probes if row.hits}
    hit |= figures.declared.unreachable.keys()
    return [name for name in sorted(figures.declared.probes) if name not in hit]


def _unreached(
    figures: Figures,
    kind: str,
    required: Mapping[str, list[str]],
    reached: Set[tuple[str, str]],
) -> list[Missing]:
    return [
        Missing(scenario, kind, name)
        for scenario in figures.scenario_names
        for name in required.get(scenario, [])
        if (scenario, name) not in reached
    ]


def _is_cut_short(figures: Figures) -> bool:
    done = sum(totals.episodes for totals in figures.scenarios)
    return figures.elapsed_s is None or done == 0 or done < figures.run["episodes"]


def _thin_scenarios(figures: Figures) -> list[str]:
    episodes = {totals.scenario: totals.episodes for totals in figures.scenarios}
    return [
        f"{name} ran only {episodes.get(name, 0)} episodes."
        for name in figures.scenario_names
        if episodes.get(name, 0) < _FEW_EPISODES
    ]


def _idle_ops(figures: Figures) -> list[str]:
    total: dict[str, int] = {}
    skipped: dict[str, int] = {}
    for row in figures.ops:
        total[row.op] = total.get(row.op, 0) + row.times
        if row.status == "Skipped":
            skipped[row.op] = row.times
    never = [op for op in sorted(total) if total[op] == 0]
    idle = [op for op in sorted(skipped) if skipped[op] > _SKIPPED_SHARE * total[op]]
    said = {"Ops that never ran": never, "Ops that were nearly always skipped": idle}
    return [f"{what}: {_named(ops)}." for what, ops in said.items() if ops]


def _failures(
    figures: Figures, found: Sequence[Finding], cases: Mapping[str, str]
) -> list[Failure]:
    return [_failure(each, cases, figures) for each in found]


def _failure(found: Finding, cases: Mapping[str, str], figures: Figures) -> Failure:
    background = figures.background
    return Failure(
        signature=found.signature,
        outcome=found.outcome,
        law=found.law,
        sentence=figures.declared.laws.get(found.law, ""),
        scenario=found.scenario,
        scenarios=found.scenarios,
        episodes=found.episodes,
        episode_id=found.episode_id,
        steps=found.steps,
        step=found.step,
        message=found.message,
        case=cases.get(found.signature, ""),
        history=background.history.get(found.signature, ""),
        excused=background.excused.get(found.signature, ""),
    )


def _rate(count: int, elapsed_s: float | None) -> float | None:
    return round(count / elapsed_s, 1) if elapsed_s else None


def _named(names: list[str]) -> str:
    more = len(names) - _NAMED_MAX
    return ", ".join(names[:_NAMED_MAX]) + (f" and {more} more" if more > 0 else "")
