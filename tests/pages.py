"""The pages of the documentation, and the code that they show."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.glob("*.md"))]

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# One with [brackets] is no command, but what there is to choose from.
_INDENTED = re.compile(
    r"^ {4,}(?:crashmq|pip|spark-submit) (?:[^\[\n]*\\\n)*[^\[\n]*$", re.MULTILINE
)
_COMMENT = re.compile(r"\s#\s.*$", re.MULTILINE)
_BETWEEN = {*"&|;()<>"}


def blocks_of(page: Path) -> Iterator[tuple[str, str]]:
    """The language and the text of each block; the language may be empty."""
    yield from _BLOCK.findall(page.read_text(encoding="utf-8"))


def shell_in(page: Path) -> Iterator[str]:
    """The shell that a page shows and no test runs: blocks of sh, indented commands."""
    yield from (text for language, text in blocks_of(page) if language == "sh")
    yield from _INDENTED.findall(_BLOCK.sub("", page.read_text(encoding="utf-8")))


def commands_in(shell: str) -> Iterator[list[str]]:
    """The words of each command: pipes, lists and substitutions are taken apart."""
    for line in _COMMENT.sub("", shell.replace("\\\n", " ")).splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split, lexer.commenters = True, ""
        words: list[str] = []
        for word in [*lexer, ";"]:
            if not {*word} <= _BETWEEN:
                words.append(word)
            elif words:
                yield words
                words = []
