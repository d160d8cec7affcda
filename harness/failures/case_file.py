"""CaseFile: one failure as a file, to be replayed, shrunk, mailed and kept.

The file is JSON, one op per line so that two of them can be compared line by line. It
has the whole program and no seed: neither Hypothesis nor numpy is needed to replay it,
and no other version of them changes it. Reading checks every name, type and bound,
and runs nothing. What an op means belongs to ``models.ops``; running a case to
``harness.episodes.episode``.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self

import msgspec

from crashmq.harness.failures.case_bounds import OutOfBounds, check_program
from crashmq.harness.guards.invariants import InvariantBroken
from crashmq.harness.guards.regular_file import NotReadable, read_regular
from crashmq.models.ops import Event, Together, parts
from crashmq.models.printable import printable, shown
from crashmq.models.program import BadProgram, Program
from crashmq.models.program_json import from_json, to_short_json

FORMAT = 1
SUFFIX = ".case.json"
FILE_SIZE_MAX = 10 * 1024 * 1024
NAME_MAX = 200

STORY_MAX = 1000

_LAW_ID = re.compile(r"[A-Z]{2,8}-[0-9]{1,4}")
_PYTHON = re.compile(r"[0-9]{1,2}\.[0-9]{1,3}")
THIS_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"


class BadCaseFile(ValueError):
    """A file is not a case this version can replay; the message says where and why.

    The message is one printable line, whatever the file holds.
    """

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))


@dataclass(frozen=True, slots=True)
class CaseFile:
    """A program, the law it violates, and what the violation looked like.

    Attributes:
        scenario: what produced the program; decides how it is judged at its end.
        program: setup and ops, whole.
        violated: id of the law that is broken, as ``CQ-3``; "" when none was, but
            the episode hung, died or could not be judged.
        step: number of the op at which the breach was seen; the number of ops when
            only the end of the episode showed it, -1 when unknown.
        digest: of the episode that broke it; another digest means other behaviour.
        message: what the law said, for people.
        mutant: id of the planted bug that it was found with; "" for the clean engine.
        subject: the kind of store it ran on; ``package.module:factory`` of one that is
            none of ours.
        mutant_file: where the planted bug is written; "" if it is one of ours.
        story: the bug in a sentence or two, for people.
        python: the version that ran it, as ``3.11``; "" when unknown.
    """

    scenario: str
    program: Program
    violated: str
    step: int
    digest: str
    message: str
    mutant: str = ""
    subject: str = "python"
    story: str = ""
    python: str = THIS_PYTHON
    mutant_file: str = ""

    @property
    def checks_invariants(self) -> bool:
        """Whether it was found because a class broke an invariant that it lists."""
        return InvariantBroken.__name__ in self.message

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a case file, checking all of it.

        Raises:
            BadCaseFile: it cannot be read or is not a case file of format 1.
        """
        given = _decode(_read(path), path)
        names = {"format", "setup", "ops", *(f.name for f in fields(cls))} - {"program"}
        _check_names(given, names, path)
        texts = {name: _text(given, name, path) for name in _TEXTS}
        violated = texts["violated"]
        if violated and not _LAW_ID.fullmatch(violated):
            raise _bad(path, "$.violated", f"{shown(violated)} is no law's id")
        program = _program(given, path)
        step = given.get("step", _DEFAULTS["step"])
        if type(step) is not int or not -1 <= step <= len(program.ops):
            bound = f"a whole number from -1 to {len(program.ops)}"
            raise _bad(path, "$.step", f"expected {bound}, got {shown(step)}")
        python = texts["python"]
        if python and not _PYTHON.fullmatch(python):
            found = f"{shown(python)} is no version of Python, as 3.11 is"
            raise _bad(path, "$.python", found)
        return cls(program=program, step=step, **texts)

    @property
    def caveat(self) -> str:
        """Why this version of Python may run it differently; "" if it cannot."""
        if self.python in ("", THIS_PYTHON) or not _is_by_lines(self.program.ops):
            return ""
        return (
            f"it was recorded under Python {self.python} and its schedule counts lines "
            f"of code, which differ in {THIS_PYTHON}: replay it under {self.python} to "
            f"see what was seen."
        )

    def to_text(self) -> str:
        """The file's text: sorted as people read it, one op per line, no defaults."""
        head = {name: getattr(self, name) for name in _HEAD}
        said = {
            n: v for n, v in head.items() if n in _ALWAYS_SAID or v != _DEFAULTS.get(n)
        }
        lines = [
            f'  "{n}": {_compact(v)},' for n, v in {"format": FORMAT, **said}.items()
        ]
        program = to_short_json(self.program)
        ops = ",\n".join(f"    {_compact(op)}" for op in program["ops"])
        listed = f"[\n{ops}\n  ]" if ops else "[]"
        lines += [f'  "setup": {_compact(program["setup"])},', f'  "ops": {listed}']
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
        """Save as ``stem``, or ``stem-2``, ... if that name has another case.

        Returns:
            Where the case is; a file with exactly this text is used as it is.
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


_HEAD = (
    *("python", "scenario", "subject", "mutant", "mutant_file", "violated", "step"),
    *("digest", "story", "message"),
)
_TEXTS = tuple(name for name in _HEAD if name != "step")
_DEFAULTS: dict[str, Any] = dict.fromkeys(
    ("python", "mutant", "mutant_file", "violated", "digest", "story", "message"), ""
)
_DEFAULTS["subject"] = "python"
_DEFAULTS["step"] = -1
_LEFT_OUT = {**_DEFAULTS, "setup": {}}
_ALWAYS_SAID = ("violated", "step")
_SIZES_MAX = {"message": FILE_SIZE_MAX, "story": STORY_MAX}


def _is_by_lines(events: Iterable[Event]) -> bool:
    return any(
        (isinstance(one, Together) and one.schedule.grain == "lines")
        or _is_by_lines(parts(one))
        for one in events
    )


def _read(path: Path) -> bytes:
    try:
        return read_regular(path, FILE_SIZE_MAX)
    except NotReadable as error:
        raise BadCaseFile(f"{error} Name a *{SUFFIX} file.") from None


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
    if "format" not in given:
        raise _bad(path, "$.format", f'is missing; say {{"format": {FORMAT}, ...}}')
    if given.get("format") != FORMAT or type(given.get("format")) is not int:
        raise BadCaseFile(
            f"{path}: $.format is {shown(given.get('format'))}, and this crashmq reads "
            f"{FORMAT}. Use the version that wrote it, or mend the file."
        )
    return given


def _check_names(given: dict[str, Any], names: set[str], path: Path) -> None:
    unknown = sorted(set(given) - names)
    if unknown:
        name = unknown[0][:NAME_MAX]
        raise _bad(path, f"$.{name}", "a case file has no such field")
    missing = sorted(names - set(given) - set(_LEFT_OUT))
    if missing:
        raise _bad(path, f"$.{missing[0]}", "this field is missing")


def _text(given: dict[str, Any], name: str, path: Path) -> str:
    value = given.get(name, _DEFAULTS.get(name))
    if not isinstance(value, str):
        raise _bad(path, f"$.{name}", f"expected text, got {type(value).__name__}")
    most = _SIZES_MAX.get(name, NAME_MAX)
    if len(value) > most:
        raise _bad(path, f"$.{name}", f"longer than {most} characters")
    if name != "message" and not value.isprintable():
        found = f"{shown(value)} holds what is no text of one line"
        raise _bad(path, f"$.{name}", found)
    return value


def _program(given: dict[str, Any], path: Path) -> Program:
    try:
        program = from_json({"setup": given.get("setup", {}), "ops": given["ops"]})
        check_program(program)
    except BadProgram as error:
        raise BadCaseFile(
            f"{path}: {error} Mend the file, or take it again from where it was "
            f"written."
        ) from None
    except OutOfBounds as error:
        raise _bad(path, error.where, error.found) from None
    return program


def _bad(path: Path, where: str, found: str) -> BadCaseFile:
    return BadCaseFile(
        f"{path}: {where}: {found}. Mend the file, or take it again from where it "
        f"was written."
    )


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
