"""Machine-made mutants: what operators change, how samples are drawn, what rows say."""

from __future__ import annotations

import importlib
import inspect
import json
from dataclasses import asdict
from pathlib import Path

import pytest
from click.testing import CliRunner

from crashmq.harness.cli import main
from crashmq.harness.mutants.confirming import confirmed
from crashmq.harness.mutants.edits import edited
from crashmq.harness.mutants.hunt import Hunt, hunt
from crashmq.harness.mutants.mutation import Edit, Mutant
from crashmq.harness.mutants.operators.defaults import is_always_given
from crashmq.harness.mutants.operators.domain import OPERATORS, domain
from crashmq.harness.mutants.operators.equivalent import (
    EQUIVALENT_FILE,
    NotReasons,
    equivalent_mutants,
)
from crashmq.harness.mutants.operators.generate import (
    Drawing,
    made_of,
    plantable,
    population,
    sample,
    smallest_edit,
)
from crashmq.harness.mutants.operators.lines import add_lines, counted_lines
from crashmq.harness.mutants.operators.operator_campaign import (
    CannotGoOn,
    Drawn,
    OperatorCampaign,
    by_processes,
    compare_survivors,
    run_hunts,
    toml_of,
)
from crashmq.harness.mutants.operators.operator_hunt import (
    COMPARED,
    OperatorHunt,
    differing,
    search,
)
from crashmq.harness.mutants.operators.ordinary import NAMES, ordinary
from crashmq.harness.mutants.operators.places import NOT_MUTATED, Place, places
from crashmq.harness.mutants.operators.spans import Text
from crashmq.harness.mutants.operators.subjects_of_laws import ANY, FAMILIES, about
from crashmq.models.laws.registry import declared_laws
from crashmq.models.program import Program, Setup
from crashmq.reports.errors import NotARun
from crashmq.reports.operator_figures import (
    ALIKE,
    NOT_REACHED,
    UNASKED,
    class_of,
    left_after,
    rate_of,
    rates_by_budget,
    report_of,
    sentence_of,
    summary_of_operators,
)
from crashmq.reports.operator_records import (
    ROWS_FILE,
    Lines,
    OperatorRecord,
    append_row,
    cut_torn_row,
    read_operator_rows,
    write_asked,
)

# Each process that asks for all machine-made mutants makes them anew.
pytestmark = pytest.mark.xdist_group("operators")

FORGETS_TO_SCAN = Edit(
    "crashmq.engine.store.log_scan",
    "records_in",
    "if request.success and request.msg_size > 0:",
    "if request.success and request.msg_size > 1_000_000:",
)


ONLY = ("store.index.index_file.IndexFile.chain",)  # some of them survive


def after(operator: str, text: str) -> list[str]:
    """What the operator makes of a function's body, line by line."""
    made = Text(text)
    return [
        change.make()
        for change in (*domain(made), *ordinary(made))
        if change.operator == operator
    ]


def row(name: str = "OP-1", outcome: str = "killed", **given: object) -> OperatorRecord:
    said = {"module": "crashmq.engine.store.flush", "function": "F.run", "line": 7}
    told = {"operator": "min-max", "before": "a", "after": "b", **said, **given}
    return OperatorRecord(id=name, outcome=outcome, **told)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("operator", "before", "changed"),
    [
        ("statement-removed", "    self.a = 1\n", ["    pass\n"]),
        ("sync-omitted", "    self.f.sync()\n", ["    0\n"]),
        ("raise-removed", "    raise E()\n", ["    pass\n"]),
        (
            "condition-dropped",
            "    if a:\n        b()\n",
            ["    if True:\n        b()\n", "    if False:\n        b()\n"],
        ),
        (
            "operand-dropped",
            "    x(a and b)\n",
            ["    x(True and b)\n", "    x(a and True)\n"],
        ),
        (
            "condition-negated",
            "    while a or b:\n        c()\n",
            ["    while not (a or b):\n        c()\n"],
        ),
        (
            "lock-dropped",
            "    with self._lock:\n        b()\n",
            ["    with __import__('contextlib').nullcontext():\n        b()\n"],
        ),
        ("effects-swapped", "    a()\n    b()\n", ["    b()\n    a()\n"]),
        ("effects-swapped", "    a = f()\n    b(a)\n", []),
        ("min-max", "    x(min(a, b))\n", ["    x(max(a, b))\n"]),
        ("bound-dropped", "    x(min(a, b))\n", ["    x(a)\n", "    x(b)\n"]),
        ("constant-2x-0", "    x(7)\n", ["    x(0)\n", "    x(14)\n"]),
        (
            "handler-without-reset",
            "    try:\n        a()\n    except E:\n        b()\n        raise\n",
            ["    try:\n        a()\n    except E:\n        pass\n        raise\n"],
        ),
        (
            "error-passed-on",
            "    try:\n        a()\n    except E:\n        b()\n",
            ["    try:\n        a()\n    except E:\n        raise\n"],
        ),
        ("early-return", "    a()\n    b()\n", ["    a()\n    return None\n    b()\n"]),
        ("argument-swapped", "    x(a, b)\n", ["    x(b, a)\n"]),
        ("argument-swapped", "    x(max(a, b))\n", []),
        ("stale-value", "    self.a = b()\n", ["    self.a = self.a or (b())\n"]),
        ("stale-value", "    self.a[k] = b\n", ["    self.a.setdefault(k, b)\n"]),
        (
            "one-iteration",
            "    for a in b:\n        c(a)\n",
            ["    for a in b:\n        c(a)\n        break\n"],
        ),
        (
            "no-iteration",
            "    for a in b:\n        c(a)\n",
            ["    for a in []:\n        c(a)\n"],
        ),
        (
            "case-dropped",
            "    match a:\n        case 1:\n            b()\n        case _:\n"
            "            c()\n",
            [
                "    match a:\n        case 1 if False:\n            b()\n"
                "        case _:\n            c()\n"
            ],
        ),
        ("and-or", "    x(a or b)\n", ["    x(a and b)\n"]),
        ("not-removed", "    x(not a)\n", ["    x( a)\n"]),
        ("boolean", "    x(True)\n", ["    x(False)\n"]),
        ("arithmetic", "    x(a + b)\n", ["    x(a - b)\n"]),
        ("constant-by-one", "    x(7)\n", ["    x( 8)\n", "    x( 6)\n"]),
        ("comparison", "    x(a is b)\n", ["    x(a is not b)\n"]),
        ("break-continue", "    for a in b:\n        continue\n", None),
        ("sign-removed", "    x(-a)\n", ["    x(a)\n"]),
    ],
)
def test_an_operator_changes_what_it_says(
    operator: str, before: str, changed: list[str] | None
) -> None:
    head = "def f(self) -> None:\n"
    wanted = [head + text for text in changed or ()]
    if changed is None:
        wanted = [f"{head}    for a in b:\n        break\n"]

    assert after(operator, head + before) == wanted


def test_a_comparison_moves_by_one_and_turns_round() -> None:
    made = after("comparison", "def f() -> bool:\n    return a < b\n")

    assert [text.split("return ")[1].strip() for text in made] == ["a <= b", "a >= b"]


def test_an_answer_is_moved_by_the_type_that_a_function_says() -> None:
    moves = {"bool": "not (a)", "int": "(a) + 1", "list[A]": "(a)[:-1]"}
    for said, moved in moves.items():
        made = after("answer-moved", f"def f() -> {said}:\n    return a\n")

        assert made == [f"def f() -> {said}:\n    return {moved}\n"]


def test_what_only_people_read_is_not_mutated() -> None:
    text = (
        "@d(1)\n"
        "def f(a: X | Y = 3) -> P | Q:\n"
        '    """A text of 5."""\n'
        "    assert a < 4, a\n"
        "    PROBE.hit()\n"
        "    self._check()\n"
        '    raise E(f"{a + 1} is over {2 + 2}")\n'
    )

    made = [*made_of(Place("crashmq.engine.store.flush", "f", text, 1))]

    told = sorted((each.operator, each.line) for each in made)
    assert told == [
        *[("constant-2x-0", 2)] * 2,
        *[("constant-by-one", 2)] * 2,
        ("raise-removed", 7),
    ]


@pytest.mark.slow
def test_every_operator_finds_something_in_the_engine() -> None:
    names = {made.operator for made in population()}

    assert names >= {*OPERATORS, *NAMES.values()}
    assert len(population()) > 10_000
    assert len({made.id for made in population()}) == len(population())


@pytest.mark.slow
def test_places_are_functions_and_constants_of_all_but_the_real_host() -> None:
    modules = {place.module for place in places()}

    assert "crashmq.engine.client.impl.consumer.process_queue" in modules
    assert not [m for m in modules if m.split(".")[2] in NOT_MUTATED]
    assert ("crashmq.engine.store.message.message", "TOPIC_SIZE_MAX") in {
        (place.module, place.function) for place in places()
    }


@pytest.mark.slow
def test_an_edit_makes_the_text_that_its_operator_made() -> None:
    for made in sample(5, 40, Drawing()):
        (edit,) = made.mutant().edits
        module = importlib.import_module(edit.module)
        name = edit.function.rpartition(".")[2]
        source = inspect.getsource(module)

        text = edited(source, edit, made.id)

        assert text != source
        (again,) = {
            place.text
            for place in _places_in(edit.module, text)
            if place.function == edit.function
        }
        assert again == made.after, name


def _places_in(module: str, text: str) -> list[Place]:
    from crashmq.harness.mutants.operators.places import places_of

    return [*places_of(module, text)]


@pytest.mark.parametrize(
    ("before", "changed", "edit"),
    [
        ("a\nb\nc\n", "a\nx\nc\n", ("b", "x")),
        ("a\nb\nc\n", "a\nb\nx\nc\n", ("c", "x\nc")),
        ("b\nb\nc\n", "b\nx\nc\n", ("b\nb\nc", "b\nx\nc")),
    ],
)
def test_an_edit_is_as_small_as_is_there_once(
    before: str, changed: str, edit: tuple[str, str]
) -> None:
    assert smallest_edit(before, changed) == edit


@pytest.mark.slow
def test_a_larger_sample_begins_with_the_smaller_one() -> None:
    small = [made.id for made in sample(9, 5, Drawing())]
    large = [made.id for made in sample(9, 12, Drawing())]

    assert large[:5] == small
    assert [made.id for made in sample(10, 5, Drawing())] != small


@pytest.mark.slow
def test_what_changes_no_code_is_passed_over() -> None:
    told = Drawing()

    found = sample(0, 10_000, told, only=("store.abort_file",))

    assert found
    assert all(made.place.module.endswith("abort_file") for made in found)
    passed = told.same_code + told.same_as_another + told.not_plantable
    assert len(found) + passed + told.unused_default == (
        sum(made.is_named_by("store.abort_file") for made in population())
    )
    assert all(plantable(found[:3]))


@pytest.mark.slow
def test_a_name_means_an_id_an_operator_a_module_or_what_is_in_it() -> None:
    made = next(m for m in population() if m.place.function == "CommitLogFlusher.flush")

    for name in (
        *(made.id, made.operator, "store", "store.flush", "engine.store.flush"),
        *("store.flush.CommitLogFlusher", "crashmq.engine.store.flush"),
    ):
        assert made.is_named_by(name), name
    for name in ("store.flus", "OP-", "broker", "store.flush.CommitLog"):
        assert not made.is_named_by(name), name


def test_each_law_is_about_some_part_of_the_engine_or_about_any() -> None:
    known = {law.partition("-")[0] for law in declared_laws()} - ANY

    assert known == {family for families in FAMILIES.values() for family in families}
    assert {about("RUN-1", place.module) for place in places()} == {"any"}
    assert about("CL-1", "crashmq.engine.store.commit_log") == "own"
    assert about("CL-1", "crashmq.engine.filter.bloom_filter") == "another"
    assert {about("CL-1", place.module) for place in places()} == {"own", "another"}


def test_a_rate_has_wilsons_interval() -> None:
    rate = rate_of("", 8, 10)

    assert (round(rate.low, 4), round(rate.high, 4)) == (0.4902, 0.9433)
    assert (rate_of("", 0, 10).low, rate_of("", 10, 10).high) == (0.0, 1.0)
    assert round(rate_of("", 10, 10).low, 4) == 0.7225
    assert (rate_of("", 0, 0).low, rate_of("", 0, 0).high) == (0.0, 1.0)


def test_a_rate_is_told_of_the_budgets_that_all_survivors_had() -> None:
    killed = [row("OP-1", cpu_us=4_000_000), row("OP-2", cpu_us=40_000_000)]
    left = row("OP-3", "survived", cpu_us=61_000_000)

    rates = rates_by_budget([*killed, left, row("OP-4", "defect")])

    assert [(r.name, r.killed, r.of) for r in rates] == [("10 s", 1, 3), ("60 s", 2, 3)]
    assert rates_by_budget([row("OP-5", "survived", cpu_us=5), left]) == []


def test_a_rate_is_estimated_from_the_first_of_the_survivors() -> None:
    killed = [row(f"OP-{n}", cpu_us=1_000_000) for n in range(6)]
    late = row("OP-6", cpu_us=300_000_000)
    long = row("OP-7", "survived", cpu_us=601_000_000)
    short = [row(f"OP-{n}", "survived", cpu_us=61_000_000) for n in (8, 9)]

    rates = rates_by_budget([*killed, late, long, *short])

    assert [(r.name, r.killed, r.of) for r in rates] == [
        ("10 s", 6, 10),
        ("60 s", 6, 10),
        ("600 s, estimated from 2 of 4", 8, 10),
    ]
    assert rates[2].low < 0.8 < rates[2].high
    # A later one says nothing of those before it: who is killed soon is done first.
    assert len(rates_by_budget([*killed, short[0], late, long, short[1]])) == 2


def test_a_mutant_that_is_judged_equivalent_is_no_hole_and_is_searched_no_further() -> (
    None
):
    kill = row("OP-1", cpu_us=1_000_000)
    judged = row("OP-2", "survived", cpu_us=10_000_000)
    left = row("OP-3", "survived", cpu_us=61_000_000)
    wrong = row("OP-4", law="CL-1", cpu_us=1_000_000)
    rows, why = [kill, judged, left, wrong], {"OP-2": "a text", "OP-4": "no effect"}

    text = report_of(rows, {"size": 4, "seed": 1}, why)
    summary = summary_of_operators(rows, {"size": 4, "seed": 1}, why)

    assert sentence_of(rows, why).endswith(
        "Without the 1 survivors that are judged equivalent: 2 of 3, 66.7 % (95 %: "
        "20.8 % to 93.9 %)."
    )
    assert (summary["survivors"], summary["equivalent"]) == (
        ["OP-3"],
        {"OP-2": "a text"},
    )
    assert summary["equivalent_yet_killed"] == ["OP-4"]
    assert [r.name for r in rates_by_budget(rows)] == ["10 s"]
    assert [r.name for r in rates_by_budget(rows, why)] == ["10 s", "60 s"]
    assert [each.id for each in left_after(60, rows, why)] == ["OP-3"]
    assert "`OP-4` store.flush.F.run:7: **killed by CL-1**" in text
    assert "a text" in text


def test_reasons_are_read_from_the_package_and_from_a_directory(tmp_path: Path) -> None:
    file = tmp_path / EQUIVALENT_FILE
    ours = equivalent_mutants(tmp_path)
    file.write_text('OP-1 = "a cost"\n')

    assert equivalent_mutants(tmp_path) == {**ours, "OP-1": "a cost"}
    for broken in ("OP-1 = 3\n", 'OP-1 = ""\n', "OP-1\n"):
        file.write_text(broken)
        with pytest.raises(NotReasons, match=EQUIVALENT_FILE):
            equivalent_mutants(tmp_path)


@pytest.mark.slow
def test_each_of_our_reasons_is_about_a_mutant_that_is_still_made(
    tmp_path: Path,
) -> None:
    made = {each.id for each in population()}

    assert set(equivalent_mutants(tmp_path)) <= made


def test_a_survivor_says_whether_it_was_reached_and_whether_anything_differs() -> None:
    survivor = row(outcome="survived", compared=10)
    known = [
        ({"reached": 0, "differing": 0}, NOT_REACHED),
        ({"reached": 3, "differing": 2}, UNASKED),
        ({"reached": 3, "differing": 0}, ALIKE),
    ]

    for given, wanted in known:
        for name, value in given.items():
            setattr(survivor, name, value)
        assert class_of(survivor) == wanted


def test_a_report_lists_survivors_by_function_with_what_was_changed() -> None:
    left = row("OP-7", "survived", before="x = min(a, b)", after="x = max(a, b)")

    text = report_of([left, row(law="CL-1", about="own")], {"size": 2, "seed": 1})

    assert "Killed: 1 of 2 machine-made mutants, 50.0 %" in text
    assert "### store.flush.F.run" in text
    assert "`OP-7` min-max, line 7" in text
    assert "`x = min(a, b)` -> `x = max(a, b)`" in text
    summary = summary_of_operators([left, row(about="own")], {"size": 2, "seed": 1})
    assert (summary["mutants"], summary["survivors"]) == (2, ["OP-7"])
    assert summary["kills_by_what_the_law_is_about"] == {"own": 1}


def test_of_several_rows_the_last_counts_and_a_torn_one_is_passed_over(
    tmp_path: Path,
) -> None:
    append_row(tmp_path, row("OP-1", "survived"))
    append_row(tmp_path, row("OP-2"))
    append_row(tmp_path, row("OP-1", "killed"))
    with (tmp_path / ROWS_FILE).open("a") as file:
        file.write('{"id": "OP-3"')

    told = [(each.id, each.outcome) for each in read_operator_rows(tmp_path)]
    cut_torn_row(tmp_path)
    append_row(tmp_path, row("OP-4"))

    assert told == [("OP-1", "killed"), ("OP-2", "killed")]
    ids = [each.id for each in read_operator_rows(tmp_path)]
    assert ids == ["OP-1", "OP-2", "OP-4"]
    (tmp_path / ROWS_FILE).write_text("nothing\n")
    with pytest.raises(NotARun, match=r"operators\.jsonl:1 is no hunt"):
        read_operator_rows(tmp_path)


@pytest.mark.slow
def test_a_kill_is_confirmed_on_both_engines_and_survivors_are_compared() -> None:
    bug = Mutant("OP-T", "toy", (), (FORGETS_TO_SCAN,))

    found = search(OperatorHunt(bug, "constant", 1, 0, 60.0))

    assert (found.outcome, found.about) == ("killed", "own")
    assert found.program
    assert 0 < found.cpu_us < 60_000_000
    assert confirmed(bug, Program(Setup(), ()), "") == ("passed", "passed")
    assert 0 < differing(bug, 0) <= COMPARED


@pytest.mark.slow
def test_a_hunt_in_processor_time_goes_on_where_an_earlier_one_ended() -> None:
    first = hunt(Hunt(None, 3, 0.1, in_cpu_time=True))
    second = hunt(Hunt(None, 3, 0.1, in_cpu_time=True, first_slice=first.slices))

    assert first.slices >= 1
    assert first.cpu_seconds >= 0.1
    assert first.probes != second.probes


@pytest.mark.slow
def test_lines_are_counted_of_the_engine_in_slices() -> None:
    (told,) = counted_lines(1, [0])
    lines: Lines = {}
    for _ in range(2):
        add_lines(lines, told)

    found = lines["crashmq.engine.store.commit_log"]
    assert set(found.values()) == {2}
    (function,) = [
        place
        for place in places()
        if (place.module, place.function)
        == ("crashmq.engine.store.commit_log", "CommitLog.put_message")
    ]
    assert set(found) & set(range(function.line, function.line + 60))


@pytest.mark.slow
def test_a_campaign_goes_on_with_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for each in (compare_survivors, differing):
        monkeypatch.setattr(f"{each.__module__}.COMPARED", 12)
    campaign = OperatorCampaign(tmp_path, 5, 3, 0.2, ONLY)
    drawn = campaign.draw()
    before = [task.mutant.id for task in campaign.missing(drawn)]
    rows = list(run_hunts(campaign, campaign.missing(drawn), by_processes(1)))
    assert campaign.missing(drawn) == []
    longer = OperatorCampaign(tmp_path, 5, 3, 60.0, ONLY)
    assert longer.draw() == drawn

    left = longer.missing(drawn)

    assert before == [each.id for each in drawn]
    survivors = {one.id: one for one in rows if one.outcome == "survived"}
    assert {task.mutant.id for task in left} == set(survivors)
    for task in left:
        assert task.slices == survivors[task.mutant.id].slices > 0
    for one in compare_survivors(campaign, drawn, by_processes(1)):
        assert one.compared == 12
    some = OperatorCampaign(tmp_path, 5, 3, 60.0, ONLY, survivors=1)
    assert [task.mutant.id for task in some.missing(drawn)] == [left[0].mutant.id]
    (tmp_path / EQUIVALENT_FILE).write_text(f'{left[0].mutant.id} = "a cost"\n')
    assert [t.mutant.id for t in longer.missing(drawn)] == [
        task.mutant.id for task in left[1:]
    ]
    other = OperatorCampaign(tmp_path, 5, 4, 0.2, ONLY)
    with pytest.raises(CannotGoOn, match="holds a run with seed 3"):
        other.draw()


@pytest.mark.slow
def test_survivors_are_kept_as_a_file_that_mutants_and_replay_read(
    tmp_path: Path,
) -> None:
    drawn = [Drawn.of(made) for made in sample(2, 3, Drawing())]
    file = tmp_path / "survivors.toml"
    file.write_text(toml_of(drawn))

    told = CliRunner().invoke(
        main, ["mutants", "--file", str(file), "--show", drawn[0].id]
    )

    assert told.exit_code == 0, told.output
    assert drawn[0].id in told.output


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--operators"], "--operators needs --out DIR"),
        (["--operators", "--clean", "--out", "x"], "--clean does not go with"),
        (["--sample", "5"], "--sample is for --operators"),
        (["--operators", "--show", "OP-0"], "there is no machine-made mutant 'OP-0'"),
        (["--operators", "--only", "nowhere", "--out", "x"], "no operator makes a"),
    ],
)
def test_what_makes_no_sense_is_refused(
    given: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    told = CliRunner().invoke(main, ["mutants", *given])

    assert told.exit_code == 2
    assert said in told.stderr


@pytest.mark.slow
def test_the_command_searches_reports_and_says_how_to_go_on(tmp_path: Path) -> None:
    out = tmp_path / "run"
    asked = ["mutants", "--operators", "--sample", "2", "--budget", "0.2"]
    asked += ["--workers", "1", "--only", "store.abort_file", "--out", str(out)]

    told = CliRunner().invoke(main, asked)

    assert told.exit_code in (0, 1), told.output
    assert "of 2 machine-made mutants" in told.stdout
    assert "next    crashmq mutants --operators --sample 2" in told.stdout
    assert (out / "report.md").read_text().startswith("# Machine-made mutants")
    again = CliRunner().invoke(main, ["report", str(out)])
    assert again.exit_code == told.exit_code
    assert "of 2 machine-made mutants" in again.stdout


@pytest.mark.slow
def test_a_default_that_is_always_given_is_no_mutant() -> None:
    told = Drawing()

    assert not sample(0, 10, told, only=("store.config.StoreConfig.start_window",))
    assert told.unused_default > 0
    assert is_always_given("StoreConfig.start_window")
    assert not is_always_given("StoreConfig.broker_role")
    assert not is_always_given("SUMS_MAX")
    assert not is_always_given("NobodyMakesIt.field")


def test_a_place_of_something_else_is_refused_before_a_sample_is_drawn(
    tmp_path: Path,
) -> None:
    file = tmp_path / "rows"
    file.touch()

    for place in (file, tmp_path):
        with pytest.raises(CannotGoOn, match="give --out a new directory"):
            OperatorCampaign(place, 3, 3, 0.2).draw()


ROW = json.dumps(asdict(row()))
DAMAGED = [
    ("operators.jsonl", f"{ROW}\n{{\n", "operators.jsonl:2 is no hunt"),
    ("operators.jsonl", f"{ROW}\n[]\n", "operators.jsonl:2 is no hunt"),
    ("operators.jsonl", '{"id": "OP-1"}\n', "operators.jsonl:1 is no hunt"),
    ("operators.jsonl", f"{'[' * 99_999}\n", "operators.jsonl:1 is no hunt"),
    ("operators.jsonl", ROW.replace("7,", '"7",') + "\n", "(line is '7')"),
    ("operators.jsonl", ROW.replace('"OP-1"', "[]") + "\n", "(id is [])"),
    ("operators.json", "{", "operators.json cannot be read"),
    ("operators.json", '{"format": 1}', "operators.json is damaged: seed"),
    ("operators.json", None, "operators.json is damaged: sample"),
    ("lines.json", "[", "lines.json cannot be read"),
    ("lines.json", '{"m": [1]}', "lines.json cannot be read"),
    ("lines.json", '{"m": {"x": 1}}', "lines.json cannot be read"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "text", "sentence"), DAMAGED, ids=range(len(DAMAGED)))
@pytest.mark.parametrize("command", ["report", "mutants"])
def test_a_damaged_file_of_a_campaign_is_one_sentence(
    command: str, name: str, text: str | None, sentence: str, tmp_path: Path
) -> None:
    campaign = OperatorCampaign(tmp_path, 1, 0, 10.0)
    given = row(outcome="survived", compared=1, cpu_us=20_000_000)
    drawn = {key: getattr(given, key) for key in Drawn.__annotations__}
    asked = {**campaign.decides, "size": 1, "passed_over": {}}
    write_asked(tmp_path, {**asked, "sample": [drawn]})
    append_row(tmp_path, given)
    if text is None:
        write_asked(tmp_path, {**asked, "sample": [{**drawn, "line": "7"}]})
    else:
        (tmp_path / name).write_text(text)

    words = ["report", str(tmp_path)]
    if command == "mutants":
        words = ["mutants", "--operators", "--sample", "1", "--out", str(tmp_path)]
    result = CliRunner().invoke(main, words)

    assert result.exit_code == 2, result.output
    assert sentence in result.stderr.splitlines()[-1]
