"""Mutants in TOML, ours and those of others; reading them runs nothing.

::

    [[mutant]]
    id = "X1"                     # letters, digits, ``-``, ``_`` and ``.``
    title = "a few words"         # and source, component, difficulty, needs, as_shipped
    laws = ["REC-1"]              # one of them should flag it; [] if not known

    [[mutant.edit]]
    module = "crashmq.engine.store.log_scan"
    function = "records_in"
    before = "the text there"
    after = "the text in its place"

    [mutant.trigger]              # if one is known: red with the bug, green without
    setup = {log_file_size = 8192}
    ops = [
        {op = "PutMessage", topic = "T0", queue_id = 0, body_size = 16},
        {op = "Restart"},
    ]

Names, types and laws are checked before anything is planted. A trigger has the bounds
of a case file (``case_bounds``). ``harness.mutants.edits`` says how an edit's text is
found.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from crashmq.harness.failures.case_bounds import OutOfBounds, check_program
from crashmq.harness.guards.regular_file import NotReadable, read_regular
from crashmq.harness.mutants.module_names import full_name, room_of
from crashmq.harness.mutants.mutation import NO_TRIGGER, Edit, Mutant
from crashmq.models.printable import printable, shown
from crashmq.models.program import BadProgram, Program
from crashmq.models.program_json import from_json

FILE_SIZE_MAX = 1024 * 1024
MUTANTS_MAX = 1000
EDIT_SIZE_MAX = 64 * 1024
KEY_PARTS_MAX = 16
ENGINE = "crashmq.engine"

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}")
_EDIT_KEYS = ("module", "function", "before", "after")
_MUTANT_KEYS = (
    *("id", "title", "laws", "edit", "source"),
    *("component", "difficulty", "needs", "as_shipped", "trigger"),
)
_TYPES = {
    "laws": (list, "a list of laws' ids, `[]` if you do not know them"),
    "edit": (list, "tables, each written as [[mutant.edit]]"),
    "difficulty": (int, "a whole number from 1 to 5"),
    "as_shipped": (bool, "true or false"),
    "trigger": (dict, "a table, written as [mutant.trigger]"),
    "setup": (dict, "a table of what differs from the default store"),
    "ops": (list, "a list of ops, each a table"),
}
_TEXT = (str, "a text")
_KEY_PART = r"""(?:[\w-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')"""
_LONG_KEY = re.compile(
    rf"(?<![\w\\-]){_KEY_PART}(?:[ \t]*+\.[ \t]*+{_KEY_PART}){{{KEY_PARTS_MAX}}}"
)


class BadMutantFile(ValueError):
    """This version cannot plant a file's mutants; the message says where and why.

    The message is one printable line, whatever the file contains.
    """

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))


def read_mutants(
    path: Path, laws: Collection[str], *, anywhere: bool = False
) -> dict[str, Mutant]:
    """The mutants of a file, by id, in its order.

    Args:
        path: of the TOML file.
        laws: ids that exist.
        anywhere: let edits name modules outside the engine too, for mutants of the
            harness itself.

    Raises:
        BadMutantFile: it cannot be read, or lacks something, or has something wrong.
    """
    text = _text(path)
    _check_keys_are_short(path, text)
    try:
        given = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadMutantFile(f"{path}: not TOML: {error}.") from None
    except RecursionError:
        raise BadMutantFile(
            f"{path}: nested too deep; a mutant needs only tables in a list."
        ) from None
    except ValueError as error:  # a number of thousands of digits
        raise BadMutantFile(f"{path}: a value that cannot be read: {error}.") from None
    return _File(path, text, laws, anywhere).mutants(given)


def _text(path: Path) -> str:
    try:
        return read_regular(path, FILE_SIZE_MAX).decode("utf-8")
    except NotReadable as error:
        raise BadMutantFile(f"{error} Name a file of mutants.") from None
    except UnicodeDecodeError:
        raise BadMutantFile(f"{path}: not UTF-8 text, as TOML must be.") from None


def _check_keys_are_short(path: Path, text: str) -> None:
    """Refuse long dotted keys: the parser copies each prefix, which takes hours."""
    if found := _LONG_KEY.search(text):
        line = text.count("\n", 0, found.start()) + 1
        raise BadMutantFile(
            f"{path}:{line}: a key of more than {KEY_PARTS_MAX} parts. Write each "
            f"mutant as [[mutant]]."
        )


class _File:
    """A file while it is read: its errors say where they are."""

    def __init__(
        self, path: Path, text: str, laws: Collection[str], anywhere: bool
    ) -> None:
        self.path = path
        self.laws = laws
        self.anywhere = anywhere
        self.lines = {
            header: [
                number
                for number, line in enumerate(text.splitlines(), start=1)
                if line.replace(" ", "").startswith(f"[[{header}]]")
            ]
            for header in ("mutant", "mutant.edit")
        }
        self.edits_read = 0

    def mutants(self, given: Mapping[str, Any]) -> dict[str, Mutant]:
        tables = given.get("mutant")
        unknown = sorted(set(given) - {"mutant"})
        if unknown:
            raise self._bad(1, f"unknown key {shown(unknown[0])}; known is [[mutant]]")
        if not _are_tables(tables):
            raise self._bad(1, "no mutants; write each as [[mutant]]")
        if len(tables or ()) > MUTANTS_MAX:
            said = f"{len(tables or ())} mutants; take {MUTANTS_MAX} at most"
            raise self._bad(1, said)
        found: dict[str, Mutant] = {}
        for number, table in enumerate(tables or ()):
            mutant = self._mutant(table, self._line("mutant", number))
            if mutant.id in found:
                line = self._line("mutant", number)
                raise self._bad(
                    line, f"the id {shown(mutant.id)} is taken; ids are unique"
                )
            found[mutant.id] = mutant
        return found

    def _mutant(self, table: Mapping[str, Any], line: int) -> Mutant:
        self._check_keys(table, _MUTANT_KEYS, ("id", "laws", "edit"), "mutant", line)
        name = table["id"]
        if not _ID.fullmatch(name):
            raise self._bad(
                line,
                f"the id {shown(name)} must be 1 to 40 letters, digits, '-', '_', '.'",
            )
        for key in ("title", "source", "component", "needs"):
            if not table.get(key, "").isprintable():
                said = f"mutant {name}: {key!r} holds what is no text of one line"
                raise self._bad(line, said)
        difficulty = table.get("difficulty", 0)
        if not 0 <= difficulty <= 5:
            raise self._bad(line, f"difficulty is 1 to 5, not {shown(difficulty)}")
        if not table["edit"] or not _are_tables(table["edit"]):
            raise self._bad(line, f"mutant {name} needs [[mutant.edit]] tables")
        return Mutant(
            id=name,
            title=table.get("title", name),
            killed_by=tuple(self._law(law, line) for law in table["laws"]),
            edits=tuple(self._edit(edit, name) for edit in table["edit"]),
            source=table.get("source", str(self.path)),
            component=table.get("component", ""),
            difficulty=difficulty,
            needs=table.get("needs", ""),
            as_shipped=table.get("as_shipped", False),
            trigger=self._trigger(table, name, line),
        )

    def _trigger(self, table: Mapping[str, Any], mutant: str, line: int) -> Program:
        if "trigger" not in table:
            return NO_TRIGGER
        given, what = table["trigger"], f"trigger of {mutant}"
        self._check_keys(given, ("setup", "ops"), ("ops",), what, line)
        try:
            trigger = from_json(given)
            check_program(trigger)
        except (BadProgram, OutOfBounds) as error:
            raise self._bad(line, f"{what}: {str(error).rstrip('.')}") from None
        return trigger

    def _law(self, law: object, line: int) -> str:
        if isinstance(law, str) and law in self.laws:
            return law
        near = difflib.get_close_matches(shown(law).strip("'"), self.laws, n=1)
        meant = f" Did you mean {near[0]!r}?" if near else ""
        raise self._bad(
            line,
            f"there is no law {shown(law)}.{meant} `crashmq list laws` names them",
        )

    def _edit(self, table: Mapping[str, Any], mutant: str) -> Edit:
        line = self._line("mutant.edit", self.edits_read)
        self.edits_read += 1
        needed = ("module", "before", "after")
        self._check_keys(table, _EDIT_KEYS, needed, f"edit of {mutant}", line)
        module = full_name(table["module"])
        if not self.anywhere and room_of(module) != ENGINE:
            raise self._bad(
                line,
                f"mutant {mutant} edits {shown(module)}, which is not the store under "
                f"test. Name a module of {ENGINE}, or pass --any-module to examine the "
                f"harness itself",
            )
        before, after = table["before"], table["after"]
        if max(len(before), len(after)) > EDIT_SIZE_MAX:
            said = f"an edit of {mutant} has more than {EDIT_SIZE_MAX // 1024} KiB"
            raise self._bad(line, f"{said}; edit less at a time")
        return Edit(module, table.get("function", ""), before, after)

    def _check_keys(
        self,
        table: Mapping[str, Any],
        known: Sequence[str],
        needed: Sequence[str],
        what: str,
        line: int,
    ) -> None:
        for key in sorted(set(table) - set(known)):
            said = f"{what}: unknown key {shown(key)}; known are {', '.join(known)}"
            raise self._bad(line, said)
        for key in needed:
            if key not in table:
                raise self._bad(line, f"{what}: {key!r} is missing")
        for key, value in table.items():
            kind, said = _TYPES.get(key, _TEXT)
            if type(value) is not kind:
                raise self._bad(
                    line, f"{what}: {key!r} must be {said}, not {shown(value)}"
                )

    def _line(self, header: str, number: int) -> int:
        lines = self.lines[header]
        return lines[number] if number < len(lines) else 1

    def _bad(self, line: int, what: str) -> BadMutantFile:
        return BadMutantFile(f"{self.path}:{line}: {what}.")


def _are_tables(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, dict) for each in value)
