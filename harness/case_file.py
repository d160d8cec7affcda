"""CaseFile: one failure as a file, to be replayed, shrunk, mailed and kept.

The file is JSON, one op a line so that two of them can be compared line by line. It
holds the program whole and no seed: neither Hypothesis nor numpy is needed to replay
it, and no version of either can spoil it. Reading checks every name, type and bound,
and runs nothing. What an op means belongs to ``models.ops``; running a case to
``harness.episode``.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self

import msgspec

from harness.disk.profiles import PROFILES
from models.ops import (
    AdvanceClock,
    Crash,
    Damage,
    DiskFault,
    During,
    Event,
    LookMessage,
    PlantFile,
    PullMessage,
    PutBatch,
    PutMessage,
    QueryMessage,
    RunService,
    SearchOffset,
    Together,
)
from models.program import BadProgram, Program, Setup, from_json, op_to_dict

FORMAT = 1
SUFFIX = ".case.json"
FILE_SIZE_MAX = 10 * 1024 * 1024
OPS_MAX = 100_000
NAME_MAX = 200

_LAW_ID = re.compile(r"[A-Z]{2,8}-[0-9]{1,4}")
_TOPIC = re.compile(r"(?!\.{1,2}$)[^/\0]{1,1000}")  # a directory's name
_INT64 = 2**63 - 1
_MIB = 1024**2
_BATCH_MAX = 1000
_SETUP_BOUNDS = {
    "log_file_size": (256, 64 * _MIB),
    "queue_file_units": (1, 1_000_000),
    "queue_ext_size": (0, 64 * _MIB),
    "index_slots": (0, 1_000_000),
    "index_entries": (0, 1_000_000),
    "start_window": (0, _INT64),
    "read_window": (64, _INT64),
    "in_memory_size": (0, _INT64),
    "max_message_size": (256, 64 * _MIB),  # at its end an episode puts 131 bytes
}
_ANY = (-_INT64, _INT64)  # what no record can hold is asked too, to be refused
_OP_BOUNDS: dict[type[Event], dict[str, tuple[int, int]]] = {
    PutMessage: {
        "queue_id": _ANY,
        "body_size": (0, 64 * _MIB),
        "flag": _ANY,
        "delay_level": _ANY,
        "reconsume_times": _ANY,
        "sys_flag": (0, 0x7FF),
    },
    PutBatch: {"queue_id": _ANY},
    PullMessage: {
        "queue_id": _ANY,
        "queue_offset": _ANY,
        "max_msg_nums": (-(2**31), 2**31 - 1),
    },
    LookMessage: {"phy_offset": (-_INT64, _INT64)},
    SearchOffset: {"queue_id": _ANY, "at_ms": (-(10**12), 10**12)},
    QueryMessage: {
        "max_num": (-(2**31), 2**31 - 1),
        "begin_ms": (-_INT64, _INT64),
        "end_ms": (-_INT64, _INT64),
    },
    RunService: {"times": (0, 1_000_000)},
    AdvanceClock: {"ms": (-(10**12), 10**12)},
    During: {"at_action": (-_INT64, _INT64)},
    Crash: {"cut": (0, _INT64)},
    DiskFault: {
        "times": (0, 1_000_000),
        "after": (0, 1_000_000),
        "written": (0, _INT64),
    },
    Damage: {"at": _ANY, "size": (0, _INT64)},
    PlantFile: {"size": (0, 64 * _MIB)},
}


_TOGETHER_MAX = 64
_SCHEDULE_BOUNDS = {
    "seed": (0, _INT64),
    "depth": (1, 1000),
    "steps": (1, 1_000_000),
}


class BadCaseFile(ValueError):
    """A file is no case this version can replay; the message says where and why."""


@dataclass(frozen=True, slots=True)
class CaseFile:
    """A program, the law it breaks, and what the breach looked like.

    Attributes:
        scenario: what produced the program; decides how it is judged at its end.
        program: setup and ops, whole.
        violated: id of the law that is broken, as ``CQ-3``; "" when none was, but
            the episode hung, died or could not be judged.
        step: number of the op at which the breach was seen; the number of ops when
            only the end of the episode showed it, -1 when unknown.
        digest: of the episode that broke it; another digest means other behaviour.
        message: what the law said, for people.
        mutant: the planted bug it was found with; "" for the clean engine.
        subject: the kind of store it ran on.
    """

    scenario: str
    program: Program
    violated: str
    step: int
    digest: str
    message: str
    mutant: str = ""
    subject: str = "python"

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a case file, checking all of it.

        Raises:
            BadCaseFile: it cannot be read or is no case file of format 1.
        """
        given = _decode(_read(path), path)
        names = {"format", "setup", "ops", *(f.name for f in fields(cls))} - {"program"}
        _check_names(given, names, path)
        texts = {name: _text(given, name, path) for name in _TEXTS}
        violated = texts["violated"]
        if violated and not _LAW_ID.fullmatch(violated):
            raise _bad(path, "$.violated", f"{violated!r} is no law's id")
        program = _program(given, path)
        step = given["step"]
        if type(step) is not int or not -1 <= step <= len(program.ops):
            bound = f"a whole number from -1 to {len(program.ops)}"
            raise _bad(path, "$.step", f"expected {bound}, got {step!r}")
        return cls(program=program, step=step, **texts)

    def to_text(self) -> str:
        """The file's text: sorted as people read it, one op a line."""
        head = {"format": FORMAT, **{name: getattr(self, name) for name in _HEAD}}
        lines = [f'  "{name}": {_compact(value)},' for name, value in head.items()]
        setup = {f.name: getattr(self.program.setup, f.name) for f in fields(Setup)}
        ops = ",\n".join(f"    {_compact(op_to_dict(op))}" for op in self.program.ops)
        listed = f"[\n{ops}\n  ]" if ops else "[]"
        lines += [f'  "setup": {_compact(setup)},', f'  "ops": {listed}']
        return "{\n" + "\n".join(lines) + "\n}\n"

    def save(self, path: Path) -> None:
        """Write the file whole or not at all.

        Raises:
            FileExistsError: the path is taken; nothing was changed.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
        try:
            with partial.open("x", encoding="utf-8") as file:
                file.write(self.to_text())
                file.flush()
                os.fsync(file.fileno())
            os.link(partial, path)
        except FileExistsError:
            raise FileExistsError(
                f"{path} exists already and is not overwritten. Remove it, or give "
                f"another name."
            ) from None
        finally:
            partial.unlink(missing_ok=True)

    def save_beside(self, directory: Path, stem: str) -> Path:
        """Save as ``stem``, or ``stem-2``, ... if that name holds another case.

        Returns:
            Where the case lies; a file with this very text is taken as it is.
        """
        text = self.to_text()
        number = 1
        while True:
            suffix = SUFFIX if number == 1 else f"-{number}{SUFFIX}"
            path = directory / f"{stem}{suffix}"
            if not path.exists():
                self.save(path)
                return path
            if path.is_file() and path.read_text(encoding="utf-8") == text:
                return path
            number += 1


_HEAD = ("scenario", "subject", "mutant", "violated", "step", "digest", "message")
_TEXTS = tuple(name for name in _HEAD if name != "step")
_OPTIONAL = ("subject", "mutant", "digest", "message")


def _read(path: Path) -> bytes:
    try:
        size = path.stat().st_size
        if path.is_file() and size <= FILE_SIZE_MAX:
            return path.read_bytes()
    except OSError as error:
        raise BadCaseFile(
            f"{path}: cannot be read: {error.strerror}. Name a *{SUFFIX} file."
        ) from None
    if not path.is_file():
        raise BadCaseFile(f"{path}: is no regular file. Name a *{SUFFIX} file.")
    raise BadCaseFile(
        f"{path}: {size} bytes, and a case file has at most {FILE_SIZE_MAX}. Name a "
        f"*{SUFFIX} file."
    )


def _decode(data: bytes, path: Path) -> dict[str, Any]:
    try:
        given = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadCaseFile(
            f"{path}: is not JSON: {error}. It is no case file, or it was cut short; "
            f"take it again from where it was written."
        ) from None
    if not isinstance(given, dict):
        raise _bad(path, "$", f"expected an object, got {type(given).__name__}")
    if given.get("format") != FORMAT or type(given.get("format")) is not int:
        raise BadCaseFile(
            f"{path}: $.format is {given.get('format')!r}, and this crashmq reads "
            f"{FORMAT}. Use the version that wrote it, or mend the file."
        )
    return given


def _check_names(given: dict[str, Any], names: set[str], path: Path) -> None:
    unknown = sorted(set(given) - names)
    if unknown:
        raise _bad(path, f"$.{unknown[0]}", "a case file has no such field")
    missing = sorted(names - set(given) - set(_OPTIONAL))
    if missing:
        raise _bad(path, f"$.{missing[0]}", "this field is missing")


def _text(given: dict[str, Any], name: str, path: Path) -> str:
    default = "python" if name == "subject" else ""
    value = given.get(name, default)
    if not isinstance(value, str):
        raise _bad(path, f"$.{name}", f"expected text, got {type(value).__name__}")
    if name != "message" and len(value) > NAME_MAX:
        raise _bad(path, f"$.{name}", f"longer than {NAME_MAX} characters")
    return value


def _program(given: dict[str, Any], path: Path) -> Program:
    try:
        program = from_json({"setup": given["setup"], "ops": given["ops"]})
    except BadProgram as error:
        raise BadCaseFile(
            f"{path}: {error} Mend the file, or take it again from where it was "
            f"written."
        ) from None
    if len(program.ops) > OPS_MAX:
        raise _bad(path, "$.ops", f"{len(program.ops)} ops, at most {OPS_MAX} are run")
    _check_bounds(program.setup, _SETUP_BOUNDS, path, "$.setup")
    profile = program.setup.disk_profile
    if profile not in PROFILES:
        known = ", ".join(PROFILES)
        found = f"{profile!r} is no disk profile, known are {known}"
        raise _bad(path, "$.setup.disk_profile", found)
    for number, op in enumerate(program.ops):
        _check_op(op, path, f"$.ops[{number}]")
    return program


def _check_op(op: Event, path: Path, where: str) -> None:
    _check_bounds(op, _OP_BOUNDS.get(type(op), {}), path, where)
    match op:
        case (
            PutMessage(topic)
            | PutBatch(topic)
            | PullMessage(topic)
            | SearchOffset(topic)
            | QueryMessage(topic)
        ):
            if not _TOPIC.fullmatch(topic):  # it names a directory
                raise _bad(path, f"{where}.topic", f"{topic[:40]!r} is no topic")
            if isinstance(op, PutBatch):
                _check_sizes(op.body_sizes, path, f"{where}.body_sizes")
        case During(inner, _, event):
            _check_op(inner, path, f"{where}.during")
            _check_op(event, path, f"{where}.event")
        case Together(ops, schedule):
            if len(ops) > _TOGETHER_MAX:
                found = f"{len(ops)} ops at once, at most {_TOGETHER_MAX} are run"
                raise _bad(path, f"{where}.together", found)
            for number, part in enumerate(ops):
                _check_op(part, path, f"{where}.together[{number}]")
            _check_bounds(schedule, _SCHEDULE_BOUNDS, path, f"{where}.schedule")
        case Crash(survivors=survivors) | DiskFault(survivors=survivors):
            bounds = {"number": (0, _INT64)}
            _check_bounds(survivors, bounds, path, f"{where}.survivors")


def _check_sizes(sizes: tuple[int, ...], path: Path, where: str) -> None:
    if len(sizes) > _BATCH_MAX:
        found = f"{len(sizes)} messages in a batch, at most {_BATCH_MAX} are put"
        raise _bad(path, where, found)
    for number, size in enumerate(sizes):
        if not 0 <= size <= 64 * _MIB:
            found = f"{size} is out of range, 0 to {64 * _MIB} are allowed"
            raise _bad(path, f"{where}[{number}]", found)


def _check_bounds(
    value: object, bounds: dict[str, tuple[int, int]], path: Path, where: str
) -> None:
    for name, (least, most) in bounds.items():
        number = getattr(value, name)
        if not least <= number <= most:
            found = f"{number} is out of range, {least} to {most} are allowed"
            raise _bad(path, f"{where}.{name}", found)


def _bad(path: Path, where: str, found: str) -> BadCaseFile:
    return BadCaseFile(
        f"{path}: {where}: {found}. Mend the file, or take it again from where it "
        f"was written."
    )


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
