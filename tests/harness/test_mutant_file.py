"""Mutants of strangers: what a file may say, and what it is told."""

from __future__ import annotations

import itertools
from importlib.util import find_spec
from pathlib import Path

import pytest

from crashmq.harness.mutants.check_edits import check_edits
from crashmq.harness.mutants.mutant_file import BadMutantFile, read_mutants
from crashmq.harness.mutants.mutation import NO_TRIGGER, Edit
from crashmq.models.ops import PutMessage, Restart
from crashmq.models.program import Program, Setup

LAWS = ("CL-1", "REC-1")
GOOD = """
[[mutant]]
id = "X-1"
laws = ["CL-1"]

[[mutant.edit]]
module = "crashmq.engine.store.log_scan"
function = "records_in"
before = "request.success and"
after = ""
"""

TRIGGER = """
[mutant.trigger]
setup = {log_file_size = 8192}
ops = [
    {op = "PutMessage", topic = "T0", queue_id = 0, body_size = 16},
    {op = "Restart"},
]
"""


def read(path: Path, text: str, *, anywhere: bool = False) -> dict[str, object]:
    file = path / "mine.toml"
    file.write_text(text)
    return dict(read_mutants(file, LAWS, anywhere=anywhere))


def test_a_file_becomes_mutants_with_all_their_edits(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    second = '[[mutant.edit]]\nmodule = "engine.a"\nbefore = "1"\nafter = "2"\n'
    file.write_text(GOOD + second)

    mutant = read_mutants(file, LAWS)["X-1"]

    assert (mutant.title, mutant.killed_by) == ("X-1", ("CL-1",))
    assert mutant.source == str(file)
    assert mutant.edits[1] == Edit("crashmq.engine.a", "", "1", "2")
    assert (mutant.trigger, mutant.needs, mutant.as_shipped) == (NO_TRIGGER, "", False)


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("engine.store.log_scan", "store.log_scan"),
        ("engine.store.mapped_file", "store.logfile.mapped_file"),
        ("crashmq.engine.store.reput", "store.reput_message_service"),
        ("crashmq.engine.store.logfile.mapped_file", "store.logfile.mapped_file"),
        ("engine.host.probe", "host.probe"),
    ],
)
def test_a_module_may_go_by_the_name_it_had_before(
    tmp_path: Path, said: str, meant: str
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(GOOD.replace("crashmq.engine.store.log_scan", said))

    (edit,) = read_mutants(file, LAWS)["X-1"].edits

    assert edit.module == f"crashmq.engine.{meant}"
    assert find_spec(edit.module)


@pytest.mark.slow
def test_an_edit_by_an_older_name_is_planted(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(GOOD.replace("crashmq.engine.", "engine."))

    assert [*check_edits(read_mutants(file, LAWS))] == []


def test_a_file_may_say_what_it_takes_and_a_program_that_shows_it(
    tmp_path: Path,
) -> None:
    file = tmp_path / "mine.toml"
    marks = 'laws = ["CL-1"]\nneeds = "power loss"\nas_shipped = true'
    file.write_text(GOOD.replace('laws = ["CL-1"]', marks) + TRIGGER)

    mutant = read_mutants(file, LAWS)["X-1"]

    assert (mutant.needs, mutant.as_shipped) == ("power loss", True)
    ops = (PutMessage("T0", 0, 16), Restart())
    assert mutant.trigger == Program(Setup(log_file_size=8192), ops)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("[[mutant]]", "[mutant", "not TOML: .*line 2"),
        (GOOD, "", ":1: no mutants"),
        (GOOD, "x = 1", ":1: unknown key 'x'"),
        (GOOD, GOOD + GOOD, ":12: the id 'X-1' is taken"),
        ('"X-1"', '"a b"', ":2: the id 'a b' must be"),
        ('"X-1"', "7", ":2: mutant: 'id' must be a text, not 7"),
        ('["CL-1"]', '["CL1"]', ":2: there is no law 'CL1'. Did you mean 'CL-1'"),
        ('["CL-1"]', '"CL-1"', "'laws' must be a list"),
        ('laws = ["CL-1"]', "", "'laws' is missing"),
        ('laws = ["CL-1"]', "laws = []\ndifficulty = 9", "difficulty is 1 to 5"),
        ("before", "befor", ":6: edit of X-1: unknown key 'befor'"),
        ('after = ""', "", ":6: edit of X-1: 'after' is missing"),
        ("crashmq.engine.store", "harness", ":6: .*--any-module"),
        (
            'laws = ["CL-1"]',
            "laws = []\nas_shipped = 1",
            "'as_shipped' must be true or",
        ),
        (GOOD, GOOD + TRIGGER.replace("ops", "op"), "trigger of X-1: unknown key 'op'"),
        (GOOD, GOOD + TRIGGER.replace("Restart", "Rest"), ":2: .*unknown op 'Rest'"),
        (
            GOOD,
            GOOD + TRIGGER.replace("16", '"16"'),
            r"X-1: \$.ops\[0\]: Expected `int`",
        ),
        (
            GOOD,
            GOOD + TRIGGER.replace("log_file", "file"),
            "Setup has no field 'file_s",
        ),
        (GOOD, '[[mutant]]\nid = "a"\nlaws = []\nedit = []', r"needs \[\[mutant.edit"),
    ],
)
def test_a_bad_file_is_told_line_and_cure(
    tmp_path: Path, old: str, new: str, says: str
) -> None:
    with pytest.raises(BadMutantFile, match=says):
        read(tmp_path, GOOD.replace(old, new))


def test_a_file_that_cannot_be_read_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(BadMutantFile, match="cannot be read"):
        read_mutants(tmp_path, LAWS)
    (tmp_path / "x").write_bytes(b"\xff")
    with pytest.raises(BadMutantFile, match="not UTF-8"):
        read_mutants(tmp_path / "x", LAWS)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x = " + "[" * 50_000, "nested too deep|not TOML"),
        ("x = " + "{a=" * 50_000, "nested too deep|not TOML"),
        (f"x = {'9' * 10_000}", "a value that cannot be read"),
        (GOOD.replace("laws", f"difficulty = 0x{'f' * 9000}\nlaws"), "is 1 to 5, not"),
        (
            GOOD.replace('"X-1"', f"0x{'f' * 9000}"),
            "a text, not a number of 36000 bits",
        ),
        (GOOD.replace('"X-1"', f'"{"x" * 9000}"'), "the id 'x{60}…' must be"),
        (GOOD.replace('"CL-1"', "[" * 90 + "]" * 90), "there is no law"),
        (GOOD.replace('after = ""', f'after = "{"x" * 70_000}"'), "more than 64 KiB"),
        ("[[mutant]]\n" * 1001, "1001 mutants; take 1000 at most"),
        ("x = {" + "a." * 500_000 + "a = 1}", ":1: a key of more than 16 parts"),
        ("[" + '"a" . ' * 100 + "a]", ":1: a key of more than 16 parts"),
        (GOOD.replace("laws", 'needs = "a\\nb"\nlaws'), "'needs' holds what is no"),
        (GOOD + TRIGGER.replace("16", f"{1 << 40}"), "body_size: 1099511627776 is out"),
        (GOOD + TRIGGER.replace("T0", "../T0"), "topic: '../T0' is not a topic"),
        (
            GOOD + TRIGGER.replace("8192}", "67108864, preallocate = true}"),
            "trigger of X-1: .*bytes of files, at most",
        ),
        ("#" * 5_000_000, "has 5000000 bytes, at most 1048576"),
    ],
    ids=itertools.count(),
)
def test_a_file_of_any_depth_and_size_gets_a_sentence(
    tmp_path: Path, text: str, says: str
) -> None:
    with pytest.raises(BadMutantFile, match=says) as told:
        read(tmp_path, text)

    assert len(str(told.value)) < 1000


def test_code_with_many_dots_is_no_long_key(tmp_path: Path) -> None:
    dots = "a.b " * 64 + "." * 100 + "\\" + '\\"' * 1000
    text = GOOD.replace('after = ""', f'after = "{dots[:292]}" # {"." * 500}')

    assert read(tmp_path, text)


def test_a_file_that_never_ends_is_not_read() -> None:
    with pytest.raises(BadMutantFile, match="no regular file"):
        read_mutants(Path("/dev/zero"), LAWS)


def test_the_harness_may_be_edited_when_that_is_asked_for(tmp_path: Path) -> None:
    read(tmp_path, GOOD.replace("crashmq.engine.store", "harness"), anywhere=True)


@pytest.mark.slow
def test_edits_that_cannot_be_made_are_named_and_a_dying_one_harms_nobody(
    tmp_path: Path,
) -> None:
    stale = GOOD.replace("X-1", "X-2").replace("request.success", "request.failed")
    deadly = (
        '[[mutant]]\nid = "X-3"\nlaws = []\n[[mutant.edit]]\n'
        'module = "crashmq.engine.store.queue.cq_unit"\n'
        'function = "CQ_STORE_UNIT_SIZE"\n'
        'before = "20"\nafter = "__import__(\'os\')._exit(3)"\n'
    )
    file = tmp_path / "mine.toml"
    file.write_text(GOOD + stale + deadly)

    told = list(check_edits(read_mutants(file, LAWS)))

    assert len(told) == 2
    assert "mutant X-2" in told[0]
    assert "there 0 times" in told[0]
    assert "mutant X-3: planting it ended its process: exit:3" in told[1]
