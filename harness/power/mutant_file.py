"""Mutants that someone else wrote, read from TOML that runs nothing by being read.

::

    [[mutant]]
    id = "X1"                     # letters, digits, ``-``, ``_`` and ``.``
    title = "a few words"         # and source, component, difficulty, if wanted
    laws = ["REC-1"]              # of which one should flag it; [] if not known

    [[mutant.edit]]
    module = "engine.store.log_scan"
    function = "records_in"
    before = "the text there"
    after = "the text in its place"

Everything is checked before anything is planted: names, types, laws, and in a child
process whether each edit can be made in this version. How edits find their text is told
in ``scenarios.edits``.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.regular_file import NotReadable, read_regular
from harness.supervised import Lost, supervised
from models.printable import printable, shown
from scenarios.mutation import Edit, Mutant, MutantError, applied

FILE_SIZE_MAX = 1024 * 1024
KEY_DOTS_MAX = 64
ENGINE = "engine"
CHECK_TIMEOUT_S = 30.0

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}")
_EDIT_KEYS = ("module", "function", "before", "after")
_MUTANT_KEYS = ("id", "title", "laws", "edit", "source", "component", "difficulty")
_TYPES = {
    "laws": (list, "a list of laws' ids, `[]` if you do not know them"),
    "edit": (list, "tables, each written as [[mutant.edit]]"),
    "difficulty": (int, "a whole number from 1 to 5"),
}
_TEXT = (str, "a text")


class BadMutantFile(ValueError):
    """A file says no mutants this version can plant; the message says where and why.

    The message is one printable line, whatever the file holds.
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
        BadMutantFile: it cannot be read, or does not say what it must.
    """
    text = _text(path)
    _check_keys_are_short(path, text)
    try:
        given = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadMutantFile(f"{path}: not TOML: {error}.") from None
    except RecursionError:
        raise BadMutantFile(
            f"{path}: nested deeper than any mutant is. Write each as [[mutant]]."
        ) from None
    except ValueError as error:  # a number of thousands of digits
        raise BadMutantFile(f"{path}: not read: {error}.") from None
    return _File(path, text, laws, anywhere).mutants(given)


def check_edits(mutants: Mapping[str, Mutant]) -> Iterator[str]:
    """One sentence for each mutant whose edits cannot be made here.

    A child tries them: working out an edited constant runs a stranger's text.
    """
    chosen = list(mutants.values())

    def trial(number: int) -> str:
        try:
            with applied(chosen[number]):
                return ""
        except MutantError as error:
            return str(error)

    rows = supervised(trial, range(len(chosen)), CHECK_TIMEOUT_S)
    for mutant, row in zip(chosen, rows, strict=True):
        if isinstance(row, Lost):
            last = row.detail.strip().splitlines()[-1:] or [row.how]
            yield f"mutant {mutant.id}: planting it ended its process: {last[0]}"
        elif row:
            yield row


def _text(path: Path) -> str:
    try:
        return read_regular(path, FILE_SIZE_MAX).decode("utf-8")
    except NotReadable as error:
        raise BadMutantFile(f"{error} Name a file of mutants.") from None
    except UnicodeDecodeError:
        raise BadMutantFile(f"{path}: not UTF-8 text, as TOML must be.") from None


def _check_keys_are_short(path: Path, text: str) -> None:
    """Refuse what the parser takes gigabytes for: it keeps each prefix of a key."""
    for number, line in enumerate(text.splitlines(), start=1):
        key = line.partition("=")[0]
        if "'" in key or '"' in key:
            key = line
        if key.count(".") > KEY_DOTS_MAX:
            raise BadMutantFile(
                f"{path}:{number}: a key of {key.count('.')} dots, at most "
                f"{KEY_DOTS_MAX} are read. Write each mutant as [[mutant]]."
            )


class _File:
    """One file while it is read: where complaints are made."""

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
        for key in ("title", "source", "component"):
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
        )

    def _law(self, law: object, line: int) -> str:
        if isinstance(law, str) and law in self.laws:
            return law
        near = difflib.get_close_matches(shown(law), list(self.laws), n=1)
        meant = f" Did you mean {near[0]!r}?" if near else ""
        raise self._bad(
            line, f"there is no law {shown(law)}.{meant} `crashmq list laws` names them"
        )

    def _edit(self, table: Mapping[str, Any], mutant: str) -> Edit:
        line = self._line("mutant.edit", self.edits_read)
        self.edits_read += 1
        needed = ("module", "before", "after")
        self._check_keys(table, _EDIT_KEYS, needed, f"edit of {mutant}", line)
        module = table["module"]
        if not self.anywhere and module.partition(".")[0] != ENGINE:
            raise self._bad(
                line,
                f"mutant {mutant} edits {shown(module)}, which is not the store under "
                f"test. Name a module of {ENGINE}, or pass --any-module to examine the "
                f"harness itself",
            )
        return Edit(module, table.get("function", ""), table["before"], table["after"])

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
