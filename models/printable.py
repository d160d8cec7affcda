"""Texts of unknown origin as one line without control characters."""

from __future__ import annotations

_SHOWN_MAX = 60


def printable(text: str) -> str:
    r"""One printable line of a text; everything else in it is escaped.

    Control characters, line ends, characters that change the direction of writing and
    lone surrogates are written as Python escapes, ``\x1b``, ``\n``, ``\u202e``.
    """
    if text.isprintable():
        return text
    return "".join(
        sign if sign.isprintable() else sign.encode("unicode_escape").decode("ascii")
        for sign in text
    )


def printable_lines(text: str) -> str:
    """``printable`` for each line of a text, whose line ends are kept."""
    return "\n".join(map(printable, text.split("\n")))


def shown(value: object) -> str:
    """A value of a file for an error message: printable and short."""
    if isinstance(value, int) and value.bit_length() > 200:
        return f"a number of {value.bit_length()} bits"
    if isinstance(value, str):
        cut = f"{value[:_SHOWN_MAX]}…" if len(value) > _SHOWN_MAX else value
        return printable(repr(cut))
    if isinstance(value, dict | list | tuple):
        return f"a {type(value).__name__} of {len(value)}"
    return printable(repr(value)[:_SHOWN_MAX])
