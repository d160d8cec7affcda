"""What a case file may ask: each field within its range, the whole within a machine."""

from __future__ import annotations

import json
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_origin, get_type_hints

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from crashmq.harness.episodes.episode import run_program
from crashmq.harness.failures import case_bounds
from crashmq.harness.failures.case_bounds import EVENT_BOUNDS, SETUP_BOUNDS
from crashmq.harness.failures.case_file import BadCaseFile, CaseFile
from crashmq.models.ops import EVENT_CLASSES, Schedule, Survivors
from crashmq.models.program import Setup
from crashmq.models.verdict import Outcome

CASES = Path(__file__).parents[2] / "scenarios" / "cases"
PUT = {"op": "PutMessage", "topic": "T0", "queue_id": 0, "body_size": 1}
NESTED = ("op", "event", "ops", "schedule", "survivors")
OF_OPTION = "value"  # of a ChangeConfig: its range is that of the option
CHANGE: dict[str, Any] = {"op": "ChangeConfig"}
BATCH: dict[str, Any] = {
    "op": "PutBatch",
    "topic": "T0",
    "queue_id": 0,
    "body_sizes": [1],
}


def loaded(path: Path, setup: dict[str, Any], *ops: dict[str, Any]) -> CaseFile:
    head = {"format": 1, "scenario": "s", "violated": "", "step": -1}
    path.write_text(json.dumps({**head, "setup": setup, "ops": ops}))
    return CaseFile.load(path)


def has_few_values(kind: object) -> bool:
    return kind is bool or get_origin(kind) is Literal


@pytest.mark.parametrize("cls", [Setup, *EVENT_CLASSES, Schedule, Survivors])
def test_every_field_has_a_range(cls: type) -> None:
    bounds = SETUP_BOUNDS if cls is Setup else EVENT_BOUNDS.get(cls, {})
    kinds = get_type_hints(cls)

    for field in fields(cls):
        if field.name in (*NESTED, OF_OPTION) or has_few_values(kinds[field.name]):
            continue
        assert field.name in bounds, f"{cls.__name__}.{field.name} is not checked"
    assert set(bounds) <= set(kinds)


@pytest.mark.parametrize(
    ("field", "value", "bound"),
    [
        ("delete_hours", "", "hours of the day, 00 to 23"),
        ("delete_hours", "24", "hours of the day, 00 to 23"),
        ("delete_hours", "04;", "hours of the day, 00 to 23"),
        ("delete_hours", "4" * 5000, "hours of the day, 00 to 23"),
        ("delete_hours", "\u00b2", "hours of the day, 00 to 23"),
        ("message_delay_level", "", "at most 64 delays"),
        ("message_delay_level", "1s  5s", "at most 64 delays"),
        ("message_delay_level", "99999d", "at most 64 delays"),
        ("message_delay_level", " ".join(["1s"] * 65), "at most 64 delays"),
        ("reserved_hours", -1, "-1 is out of range, 0 to 1000000"),
        ("delete_batch", 0, "0 is out of range, 1 to"),
        ("transient_store_buffers", -1, "-1 is out of range, 0 to 1000"),
        ("transient_store_buffers", 10**9, "out of range, 0 to 1000"),
        ("flush_least_pages", -1, "-1 is out of range, 0 to"),
        ("disk_capacity", -1, "-1 is out of range, 0 to"),
        ("disk_capacity", 5000, "5000 is no room for this store, 0 .* at least"),
        ("read_window", 63, "63 is out of range, 64 to"),
        ("disk_profile", "tape", "'tape' is not a disk profile; known are .*posix_min"),
        ("flush_mode", "NO_FLUSH", "Invalid enum value"),
        ("cleans", 1, "Expected `bool`"),
        ("log_file_size", 4096.5, "Expected `int`"),
    ],
)
def test_a_setup_out_of_range_is_told(
    tmp_path: Path, field: str, value: object, bound: str
) -> None:
    with pytest.raises(BadCaseFile, match=rf"\$\.setup.*{bound}") as raised:
        loaded(tmp_path / "a.case.json", {field: value})

    assert field in str(raised.value)


@pytest.mark.parametrize(
    ("op", "where"),
    [
        (PUT | {"tags": "a\x02b"}, r"tags: 'a\\x02b' is not a property"),
        (PUT | {"keys": "a\x01"}, "keys: .* is not a property"),
        (PUT | {"multi_dispatch": "\x02"}, "multi_dispatch: "),
        ({"op": "DeleteTopic", "topic": ".."}, r"topic: '\.\.' is not a topic"),
        ({"op": "DeleteTopic", "topic": "T0", "queue_id": -5}, "queue_id: -5 is out"),
        ({"op": "FillDisk", "percent": 101}, "percent: 101 is out of range, 0 to 100"),
        (
            CHANGE | {"option": "flush_mode", "value": "NO"},
            "value: 'NO' is no flush_mode",
        ),
        (
            CHANGE | {"option": "delete_batch", "value": 0},
            "value: 0 is out of range, 1",
        ),
        (CHANGE | {"option": "preallocate", "value": 1}, "value: 1 is no bool"),
        (CHANGE | {"option": "read_window", "value": True}, "value: True is no int"),
        (CHANGE | {"option": "log_file_size", "value": 1}, "option: Invalid|Invalid"),
        (
            {**BATCH, "properties_end": "\x02a\x01b\x02"},
            "properties_end: .* is not an end of properties",
        ),
        ({"op": "Damage", "file": "../x", "kind": "zero"}, r"file: '\.\./x' is not"),
        (
            {"op": "Damage", "file": f"commitlog[{'9' * 5000}]", "kind": "zero"},
            "file: 'commitlog.9999",
        ),
        ({"op": "PlantFile", "path": "/abs"}, "path: '/abs' is not a path below"),
        ({"op": "PlantFile", "path": "a/../b"}, "path: .* is not a path below"),
        ({"op": "PlantFile", "path": "commitlog/"}, "path: .* is not a path below"),
        ({"op": "PlantFile", "path": "{next}"}, "path: .*need a folder"),
        (
            {"op": "PlantFile", "path": f"commitlog/{'9' * 20}"},
            "path: offset 9{20} is past any file",
        ),
        ({"op": "DiskFault", "call": "read", "errno": "EIO"}, "is an event, not an op"),
        ({"op": "RunService", "service": "reput", "times": 1 << 70}, "times: |op"),
        (
            {"op": "Together", "together": [PUT] * 65},
            "together: 65 ops at once, at most 64",
        ),
        (
            {
                "op": "Together",
                "together": [PUT],
                "schedule": {"preemptions": [[1, 0], [-1, 0]]},
            },
            r"schedule\.preemptions\[1\]: -1 is out of range",
        ),
    ],
)
def test_an_op_out_of_range_is_told(
    tmp_path: Path, op: dict[str, Any], where: str
) -> None:
    with pytest.raises(BadCaseFile, match=rf"\$\.ops\[1\].*{where}"):
        loaded(tmp_path / "a.case.json", {}, PUT, op)


def planting(path: str, content: str = "zeros") -> dict[str, Any]:
    return {"op": "PlantFile", "path": path, "content": content}


LATER = f"{8 * 4096:020d}"
PLACES = [
    (planting("commitlog"), "'commitlog' is where the store has a folder"),
    (planting("index", "copy"), "'index' is where the store has a folder"),
    (planting("consumequeue/T0"), "'consumequeue/T0' is where the store has a folder"),
    (planting("consumequeue/%LMQ%a"), "'consumequeue/%LMQ%a' is where the store has"),
    (planting("consumequeue/T0/0", "empty"), "'consumequeue/T0/0' is where the store"),
    (planting("consumequeue_ext/T0"), "'consumequeue_ext/T0' is where the store has"),
    (planting("checkpoint/x"), "'checkpoint' is where the store puts a file"),
    (planting("checkpoint", "directory"), "'checkpoint' is where the store puts a fi"),
    (planting("abort/a/b"), "'abort' is where the store puts a file"),
    (planting("deletedTopics"), "'deletedTopics' is a file that only the store"),
    (planting("deletedTopics.tmp/x"), "'deletedTopics.tmp' is where the store puts"),
    (planting(f"commitlog/{LATER}", "directory"), f"'commitlog/{LATER}' is where"),
    (planting(f"commitlog/{LATER}/x"), f"'commitlog/{LATER}' is where the store puts"),
    (planting("commitlog/{next}", "directory"), r"'commitlog/\{next\}' is where"),
    (planting("consumequeue/T0/0/{far}", "directory"), "is where the store puts a fi"),
    (planting(f"consumequeue/T0/0/{200:020d}/x"), "is where the store puts a file"),
    (planting("index/20260101120000000", "directory"), "is where the store puts a f"),
    (planting(f"consumequeue/T0/{2**31}/x"), "queue 2147483648 is past any queue"),
    (planting(f"consumequeue_ext/T0/0/{0:020d}"), r"\$\.setup\.queue_ext_size is 0"),
]
LIGHT = PUT | {"multi_dispatch": "%LMQ%a"}


@pytest.mark.parametrize(("plant", "found"), PLACES)
def test_a_file_in_the_stores_way_is_told(
    tmp_path: Path, plant: dict[str, Any], found: str
) -> None:
    """No store works again with such a file, so a broken law would say nothing."""
    with pytest.raises(BadCaseFile, match=rf"\$\.ops\[1\]\.path: .*{found}"):
        loaded(tmp_path / "a.case.json", {"multi_dispatch": True}, LIGHT, plant)


@pytest.mark.parametrize(
    "plant",
    [
        planting("abort", "empty"),
        planting("consumequeue/T9"),
        planting("consumequeue/T0/9"),
        planting("consumequeue/T0/00/x"),
        planting(f"commitlog/{4095:020d}", "directory"),
        planting("index/99999999999999999", "directory"),
        planting("commitlog/{next}", "copy") | {"source": "commitlog[0]"},
        planting("config/a\x1b[2J\n", "garbage") | {"size": 9},
    ],
)
def test_a_file_beside_the_stores_own_is_judged(
    tmp_path: Path, plant: dict[str, Any]
) -> None:
    around = {"op": "Shutdown"}, plant, {"op": "Restart"}
    case = loaded(tmp_path / "a.case.json", {}, PUT, *around, PUT)

    assert run_program(case.program).outcome is Outcome.PASSED


FOLDERS = ("commitlog", "consumequeue", "consumequeue_ext", "index")
OWN_NAMES = (*FOLDERS, "abort", "checkpoint", "deletedTopics", "lock", "x")
ODD_NAMES = (
    *("T0", "T9", "0", "1", "00", "x", "{next}", "{far}", "20260101000000000"),
    *(f"{offset:020d}" for offset in (0, 200, 400, 512, 4096, 8192)),
)


@st.composite
def plants(draw: st.DrawFn) -> dict[str, Any]:
    below = draw(st.lists(st.sampled_from(ODD_NAMES), max_size=3))
    path = "/".join([draw(st.sampled_from(OWN_NAMES)), *below])
    kinds = ["empty", "zeros", "garbage", "directory", "copy"]
    plant = planting(path, draw(st.sampled_from(kinds)))
    size = draw(st.sampled_from([0, 1, 20, 200, 4096]))
    return plant | {"size": size, "source": "commitlog[0]"}


IN_NO_QUEUE = planting("consumequeue/T0/T0/0", "empty") | {"size": 0, "source": ""}

SETUPS: tuple[dict[str, Any], ...] = (
    {},
    {"queue_ext_size": 512, "index_slots": 5, "index_entries": 5},
    {"on_damage": "serve", "transient_store_pool": True, "cleans": True},
    {"adopt": True, "flush_mode": "SYNC_FLUSH"},
)


@pytest.mark.slow
@settings(
    max_examples=300,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    plant=plants(),
    setup=st.sampled_from(SETUPS),
    puts=st.integers(0, 3),
    lost=st.sampled_from(["", "checkpoint", "abort", "commitlog[0]", "index[0]"]),
)
@example(
    plant=IN_NO_QUEUE, setup={}, puts=1, lost="checkpoint"
)  # RocketMQ passes a folder of no queue_id
def test_what_may_be_planted_breaks_no_law(
    tmp_path: Path, plant: dict[str, Any], setup: dict[str, Any], puts: int, lost: str
) -> None:
    put = PUT | {"body_size": 1500, "tags": "a", "keys": "k"}
    reput = {"op": "RunService", "service": "reput"}
    damage = {"op": "Damage", "file": lost, "kind": "delete"}
    down: list[dict[str, Any]] = [{"op": "Shutdown"}, plant]
    if lost:
        down.insert(1, damage)
    again: list[dict[str, Any]] = [{"op": "Restart"}, put, reput]
    ops: list[dict[str, Any]] = [*[put] * puts, reput, *down, *again]
    try:
        case = loaded(tmp_path / "a.case.json", setup, *ops)
    except BadCaseFile as error:
        refusal = str(error)
    else:
        refusal = ""
    if refusal:
        assert ".path: " in refusal
        return
    result = run_program(case.program)

    assert result.outcome is Outcome.PASSED, result.message


MIB = 1024**2
JUMP = {"op": "AdvanceClock", "ms": 10**12}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("setup", "ops", "what"),
    [
        ({}, [PUT] * 10_001, "10001 ops and events"),
        ({}, [{"op": "RunService", "service": "reput", "times": 60_000}] * 2, "rounds"),
        ({}, [JUMP] * 1001, "ms by which the clock is moved"),
        ({"log_file_size": 64 * MIB, "preallocate": True}, [PUT], "bytes of files"),
        (
            {
                "log_file_size": 16 * MIB,
                "transient_store_pool": True,
                "transient_store_buffers": 1000,
            },
            [PUT | {"body_size": 16 * MIB}] * 8,
            "bytes of files",
        ),
        (
            {"index_slots": 100_000, "index_entries": 2},
            [PUT | {"keys": "a b c"}] * 99,
            "bytes of files",
        ),
        (
            {"queue_file_units": 1_000_000},
            [PUT | {"queue_id": n} for n in range(10)],
            "bytes of files",
        ),
        (
            {"queue_ext_size": 64 * MIB},
            [PUT, PUT | {"queue_id": 1}],
            "bytes of files",
        ),
        (
            {},
            [{"op": "PlantFile", "path": "x", "content": "zeros", "size": 64 * MIB}]
            * 3,
            "bytes of files",
        ),
        ({"log_file_size": 32 * MIB}, [PUT] * 4000, "units of work"),
    ],
)
def test_a_case_that_asks_for_too_much_is_refused(
    tmp_path: Path, setup: dict[str, Any], ops: list[dict[str, Any]], what: str
) -> None:
    with pytest.raises(BadCaseFile, match=rf"the case asks for .*{what}.* at most"):
        loaded(tmp_path / "a.case.json", setup, *ops)


def test_the_smallest_disk_that_is_allowed_is_judged(tmp_path: Path) -> None:
    """A store on a smaller one never works again, and nobody is to blame."""
    with pytest.raises(BadCaseFile, match="at least ") as raised:
        loaded(tmp_path / "a.case.json", {"disk_capacity": 1}, PUT)
    least = int(str(raised.value).partition("at least ")[2].split()[0])

    for cleans in (False, True):
        setup = {"disk_capacity": least, "cleans": cleans, "reserved_hours": 2}
        puts = [PUT | {"body_size": 3000}] * 9
        case = loaded(tmp_path / "a.case.json", setup, *puts, {"op": "Restart"})
        assert run_program(case.program).outcome is Outcome.PASSED


BIG = "%BIG%"  # becomes an integer of 5000 digits
ODD_TEXTS = st.one_of(
    st.sampled_from(
        [
            "",
            "\x1b[2J",
            "a\nGREEN",
            "\u202e",
            "\0",
            "..",
            "/",
            "NaN",
            "commitlog[0]",
            BIG,
        ]
    ),
    st.text(max_size=12),
    st.integers(1, 5000).map("9".__mul__),
)
ODD_NUMBERS = st.one_of(
    st.integers(-3, 3),
    st.sampled_from([2**31, 2**63 - 1, 2**63, -(2**63), 2**64, 10**40]),
    st.floats(),
)
ODD_VALUES = st.recursive(
    st.none() | st.booleans() | ODD_NUMBERS | ODD_TEXTS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(ODD_TEXTS, inner, max_size=3)
    ),
    max_leaves=6,
)


@cache
def recorded() -> tuple[str, ...]:
    return tuple(path.read_text() for path in sorted(CASES.iterdir()))


def places_in(value: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The ways to everything in a JSON value."""
    inner: Any = ()
    if isinstance(value, dict):
        inner = value.items()
    elif isinstance(value, list):
        inner = enumerate(value)
    places = [above] if above else []
    for key, one in inner:
        places += places_in(one, (*above, key))
    return places


@st.composite
def spoilt_cases(draw: st.DrawFn) -> bytes:
    """A recorded case, spoilt in one to three places."""
    case = json.loads(draw(st.sampled_from(recorded())))
    for _ in range(draw(st.integers(1, 3))):
        *way, key = draw(st.sampled_from(places_in(case)))
        inside = case
        for step in way:
            inside = inside[step]
        match draw(st.sampled_from(["set", "drop", "add", "wrap", "double"])):
            case "set":
                inside[key] = draw(ODD_VALUES)
            case "drop":
                del inside[key]
            case "add" if isinstance(inside, dict):
                name = draw(st.sampled_from([f.name for f in fields(Setup)]))
                inside[draw(ODD_TEXTS | st.just(name))] = draw(ODD_VALUES)
            case "wrap":
                for _ in range(draw(st.sampled_from([1, 20, 500]))):
                    inside[key] = [inside[key]]
            case "double" if isinstance(inside, list):
                inside += inside
        if not case:
            break
    text = json.dumps(case, ensure_ascii=draw(st.booleans()))
    data = text.replace(f'"{BIG}"', "9" * 5000).encode("utf-8", "surrogatepass")
    if draw(st.integers(0, 9)) == 0:
        at = draw(st.integers(0, len(data)))
        data = data[:at] + draw(st.binary(max_size=4)) + data[at + 1 :]
    return data


@pytest.mark.slow
@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
    ],
)
@given(data=spoilt_cases())
def test_a_spoilt_case_is_refused_in_a_sentence_or_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: bytes
) -> None:
    """Never a traceback, and on the clean engine no law is broken."""
    monkeypatch.setattr(case_bounds, "WORK_MAX", 2048 * MIB)  # a second of a run
    path = tmp_path / "a.case.json"
    path.write_bytes(data)
    case, refusal = None, ""
    try:
        case = CaseFile.load(path)
    except BadCaseFile as error:
        refusal = str(error)

    assert refusal.isprintable()
    assert len(refusal) < 2000
    if case is None:
        assert refusal
        return
    result = run_program(case.program, case.scenario)

    assert result.outcome is Outcome.PASSED, result.message
