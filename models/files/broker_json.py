"""Reads a broker's table as fastjson would, by turning it into strict JSON.

A broker writes integer keys without quotes. A file that somebody edited may have more
that fastjson accepts: a byte order mark, comments, single quotes, names without quotes,
superfluous commas. All this is rewritten here, and the standard library parses the
result. A text that is torn, has zeros, or goes on after its value is refused.

Source: com.alibaba.fastjson.parser.JSONLexerBase, fastjson 1.2.83, with its default
features. Differs: no control characters and no hexadecimal escapes in texts, no
fractions, no numbers with a leading plus or zero.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any

_TOKEN = re.compile(
    r'(?P<string>"(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*")'
    r"|(?P<single>'(?:[^'\\\x00-\x1f]|\\['\"\\/bfnrt]|\\u[0-9a-fA-F]{4})*')"
    r"|(?P<number>-?(?:0|[1-9][0-9]{0,18})(?![0-9.eE]))"
    r"|(?P<word>(?:true|false|null)(?![A-Za-z0-9_$]))"
    r"|(?P<name>[A-Za-z_$][A-Za-z0-9_$]*)"
    r"|(?P<mark>[][{}:,])"
    r"|(?P<space>[ \t\r\n]+|//[^\n]*|/\*(?s:.*?)\*/)"
)
_LONG = 1 << 63
_IN_SINGLE = re.compile(r'\\.|"')
_FOR_DOUBLE = {"\\'": "'", '"': '\\"'}


def read_table(data: bytes) -> Any:
    """Parse a whole text; all keys of objects become strings.

    Raises:
        ValueError: the text is not whole, or not UTF-8.
        RecursionError: it is nested too deeply.
    """
    return json.loads(strict_json(data.decode("utf-8-sig")), parse_int=_long)


@lru_cache(maxsize=256)
def strict_json(text: str) -> str:
    """Rewrite a text that fastjson accepts as strict JSON.

    Cached, since several laws ask about the same text.

    Raises:
        ValueError: it has something that fastjson does not accept.
    """
    parts: list[str] = []
    bare_at = -1  # of a number or name that may turn out to be a key
    has_comma = False
    at = 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise ValueError(f"no token at {at}")
        at, kind, part = token.end(), token.lastgroup, token[0]
        if kind == "space":
            continue
        if part == ",":
            # One that nothing comes before or behind says nothing.
            has_comma = bool(parts) and parts[-1] not in ("{", "[")
            continue
        if part == ":" and bare_at >= 0:
            parts[bare_at] = f'"{parts[bare_at]}"'
        if has_comma and part not in ("}", "]"):
            parts.append(",")
        has_comma = False
        bare_at = len(parts) if kind in ("number", "name") else -1
        parts.append(_in_double_quotes(part) if kind == "single" else part)
    # Two numbers with a space between are none.
    return " ".join([*parts, ","] if has_comma else parts)


def _long(digits: str) -> int:
    found = int(digits)
    if not -_LONG <= found < _LONG:
        raise ValueError(f"{digits} is beyond 64 bits")
    return found


def _in_double_quotes(text: str) -> str:
    """Rewrite a string in single quotes as one in double quotes."""
    inside = _IN_SINGLE.sub(lambda m: _FOR_DOUBLE.get(m[0], m[0]), text[1:-1])
    return f'"{inside}"'
