"""Validation of a run's JSON files before anything relies on them.

A run's directory may come from anyone, or be half overwritten. Each file is read up to
a maximal size, and each value that a report uses is checked for its kind and bounds. An
error is one sentence with the file's name and the value's place.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from crashmq.reports.errors import NotARun, ReportError
from crashmq.reports.places import Place

FILE_SIZE_MAX = 16 * 1024 * 1024
COUNT_MAX = 10**12
_TEXT_MAX = 10_000
_MANY = 100_000
_SHOWN_MAX = 80
_NAME = re.compile(r"[A-Za-z0-9_.-]{0,200}")

Kind = Callable[[object], bool]


def read_object(path: Place) -> dict[str, Any]:
    """The JSON object in a file.

    Raises:
        NotARun: it is no regular file, larger than any run needs, or has no JSON
            object.
        ReportError: an object store does not answer, or its address is none.
    """
    try:
        if path.exists() and not path.is_file():
            raise NotARun(_said(path, "is no regular file"))
        if path.stat().st_size > FILE_SIZE_MAX:
            raise NotARun(_said(path, f"is larger than {FILE_SIZE_MAX // 1024**2} MiB"))
        value = json.loads(path.read_text(encoding="utf-8"))
    except ReportError:
        raise
    except (OSError, ValueError, RecursionError) as error:
        why = f"cannot be read ({reason(error)})"
        raise NotARun(_said(path, why)) from None
    if not isinstance(value, dict):
        raise NotARun(_said(path, "is not a JSON object"))
    return value


def reason(error: Exception) -> str:
    """Why a file could not be read, without names of Python classes."""
    if isinstance(error, OSError):
        return error.strerror or "the disk refused"
    return "it is not JSON"


def check_fields(
    path: Place,
    value: Mapping[str, Any],
    kinds: Mapping[str, tuple[Kind, str]],
    needed: tuple[str, ...],
    place: str = "$",
) -> None:
    """Check that needed fields exist, and that all known ones have their kind.

    Raises:
        NotARun: a field is missing or wrong; the message names the first such place.
    """
    for key in needed:
        if key not in value:
            raise NotARun(_said(path, f"has no {place}.{key}"))
    for key, (is_right, said) in kinds.items():
        if key in value and not is_right(value[key]):
            shown = _shown(value[key])
            raise NotARun(_said(path, f"has {shown} at {place}.{key}, not {said}"))


def is_count(value: object) -> bool:
    """Whether a value is an integer from 0 to the largest count of any run."""
    return type(value) is int and 0 <= value <= COUNT_MAX


def is_seed(value: object) -> bool:
    """Whether a value is an integer of at most 64 bits."""
    return type(value) is int and 0 <= value < 2**64


def is_seconds(value: object) -> bool:
    """Whether a value is a finite number that is not negative."""
    if type(value) not in (int, float):
        return False
    assert isinstance(value, int | float)
    return 0 <= value <= COUNT_MAX and math.isfinite(value)


def is_text(value: object) -> bool:
    """Whether a value is a printable string of at most some pages."""
    return isinstance(value, str) and len(value) <= _TEXT_MAX and _is_plain(value)


def is_name(value: object) -> bool:
    """Whether a value is a name of a scenario, bug or version, and so no path."""
    return isinstance(value, str) and _NAME.fullmatch(value) is not None


def are(kind: Kind) -> Kind:
    """A check of lists of such values."""
    return lambda value: (
        isinstance(value, list) and len(value) <= _MANY and all(map(kind, value))
    )


def are_by_name(kind: Kind) -> Kind:
    """A check of objects with such values."""
    return lambda value: (
        isinstance(value, dict)
        and len(value) <= _MANY
        and all(is_text(name) and kind(each) for name, each in value.items())
    )


def wrong_field(row: Any) -> str:
    """The first field of a record whose value is not of its type; "" without one.

    Args:
        row: a dataclass; its fields annotated as ``int`` and ``str`` are looked at.
    """
    for field in fields(row):
        value = getattr(row, field.name)
        is_whole = type(value) is int and abs(value) <= COUNT_MAX
        is_right = is_seed(value) if field.name == "seed" else is_whole
        if field.type in ("int", int) and not is_right:
            return field.name
        if field.type in ("str", str) and not isinstance(value, str):
            return field.name
    return ""


def _is_plain(text: str) -> bool:
    return all(sign.isprintable() or sign in "\n\t" for sign in text)


def _shown(value: object) -> str:
    """A value for a message, shortened if it is large or deep."""
    try:
        text = ascii(value)
    except (ValueError, RecursionError):
        return f"a {type(value).__name__}"
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}..."


def _said(path: Place, what: str) -> str:
    return (
        f"{path.parent} holds no readable run of crashmq: {path.name} {what}; give "
        "the directory of a soak's --out."
    )
