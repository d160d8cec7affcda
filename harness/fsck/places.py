"""Where the files of a store are, and what its broker's configuration says of them.

A broker's configuration is a Java properties file: ``storePathRootDir``,
``storePathCommitLog`` (one path or several, separated by commas),
``mappedFileSizeCommitLog``, ``mappedFileSizeConsumeQueue``, ``maxHashSlotNum``,
``messageDelayLevel`` and properties of layouts that this program does not read.

Source: MessageStoreConfig, ScheduleMessageService#parseDelayLevel, RocketMQ 5.3.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from crashmq.harness.guards.regular_file import NotReadable, read_regular

CONF_SIZE_MAX: Final = 1 << 20
_UNIT_SIZE: Final = 20
_UNITS_MS: Final = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_LEVEL: Final = re.compile(r"(\d{1,9})([smhd])")
_NUMBER: Final = re.compile(r"\d{1,18}")
_TRUE: Final = "true"
_LINE: Final = re.compile(
    r"[ \t\f\r\n]*(?:([#!])[^\r\n]*|((?:\\(?:\r\n|(?s:.))|[^\\\r\n])+))", re.ASCII
)
_CONTINUED: Final = re.compile(r"(?<!\\)((?:\\\\)*)\\(?:\r\n|\r|\n)[ \t\f]*")
_PAIR: Final = re.compile(
    r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*((?:\\.|[^\\])*)", re.ASCII
)
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)")
_SPACE: Final = " \t\f\r\n"
_CONTROL: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class BadConf(ValueError):
    """A broker's configuration cannot be used; the message says why."""


@dataclass(frozen=True, slots=True)
class Places:
    """Where a store's files lie, and the sizes that its broker was given.

    Attributes:
        root: the directory of ``consumequeue``, ``index``, ``checkpoint``, ``config``.
        logs: the directories of the log's files; empty: ``commitlog`` in the root.
        log_file_size, queue_file_size: in bytes; 0: as the files have it.
        index_slots: of each index file; 0: found out from the files.
        index_entries: of each index file; 0: as the files have it.
        delay_ms: of each delay level from 1 on, in ms; empty: RocketMQ's own.
        layout: why RocketMQ keeps this store in files that nothing here reads, or "".
        typed: the root and what says where the files are, as somebody typed it.
    """

    root: Path
    logs: tuple[Path, ...] = ()
    log_file_size: int = 0
    queue_file_size: int = 0
    index_slots: int = 0
    delay_ms: tuple[int, ...] = ()
    layout: str = ""
    index_entries: int = 0
    follow_links: bool = False
    typed: str = ""

    @property
    def words(self) -> str:
        """The arguments of a command that reads the same files."""
        return self.typed or shlex.quote(str(self.root))

    @property
    def log_folders(self) -> tuple[Path, ...]:
        """The directories of the log's files."""
        return self.logs or (self.root / "commitlog",)


@dataclass(frozen=True, slots=True)
class Conf:
    """The lines of a broker's configuration, by key."""

    path: Path
    values: Mapping[str, str] = field(default_factory=dict)

    def number(self, key: str) -> int:
        """A size or a count; 0: not given.

        Raises:
            BadConf: it is no number.
        """
        text = self.values.get(key, "")
        if text and not _NUMBER.fullmatch(text):
            raise BadConf(f"{self.path}: {key} is {text[:60]!r}, and no number.")
        return int(text or 0)


def read_conf(path: Path) -> Conf:
    """Read a broker's configuration.

    Raises:
        BadConf: it is no regular file, too large, or no text.
    """
    try:
        data = read_regular(path, CONF_SIZE_MAX)
    except NotReadable as error:
        raise BadConf(f"{error} Name the broker's own `broker.conf`.") from None
    if b"\0" in data:
        raise BadConf(f"{path}: is no text. Name the broker's own `broker.conf`.")
    return Conf(path, dict(_pairs_in(data.decode("latin-1"))))


def _pairs_in(text: str) -> Iterator[tuple[str, str]]:
    """The pairs of a Java properties file, whose characters are bytes.

    A key ends at ``=``, ``:`` or space; a backslash at its end continues a line.

    Source: java.util.Properties#load. Differs: space behind a value is dropped.
    """
    for _comment, line in _LINE.findall(text):
        whole = _CONTINUED.sub(r"\1", line).rstrip(_SPACE)
        found = _PAIR.fullmatch(whole) if whole else None
        if found is not None:
            yield _unescaped(found[1]), _unescaped(found[2])


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    told = found[1]
    if len(told) > 1:
        return chr(int(told[1:], 16))
    return _CONTROL.get(told, told)


def places_of(
    root: Path,
    conf: Conf | None,
    logs: tuple[Path, ...] = (),
    *,
    follow_links: bool = False,
) -> Places:
    """Where the store at ``root`` keeps its files.

    Args:
        root: as it was given; it overrides ``storePathRootDir``, which may name a
            path on another machine.
        conf: the broker's configuration.
        logs: the log's directories; they override those of ``conf``.
        follow_links: also read what links lead to outside of the root.

    Raises:
        BadConf: a value cannot be used.
    """
    if conf is None:
        return Places(root, logs, follow_links=follow_links)
    queue_file_size = conf.number("mappedFileSizeConsumeQueue")
    return Places(
        root,
        logs or _logs_in(root, conf),
        conf.number("mappedFileSizeCommitLog"),
        -(-queue_file_size // _UNIT_SIZE) * _UNIT_SIZE,
        conf.number("maxHashSlotNum"),
        delay_levels(conf.values.get("messageDelayLevel", ""), conf.path),
        _layout_of(conf),
        conf.number("maxIndexNum"),
        follow_links,
    )


def _logs_in(root: Path, conf: Conf) -> tuple[Path, ...]:
    """The log's directories by the configuration, but for the usual one."""
    told = conf.values.get("storePathCommitLog", "")
    read_only = conf.values.get("readOnlyCommitLogStorePaths", "")
    paths = [part.strip() for part in f"{told},{read_only}".split(",")]
    found = tuple([Path(part) for part in dict.fromkeys(paths) if part])
    home = Path(conf.values.get("storePathRootDir") or root)
    found = tuple([_copied(path, home, root) for path in found])
    return () if found == (root / "commitlog",) else found


def _copied(path: Path, home: Path, root: Path) -> Path:
    """The path, or where it lies in a copy of the broker's own root."""
    if path.is_relative_to(home):
        inside = root / path.relative_to(home)
        if inside.is_dir():
            return inside
    return path


def delay_levels(text: str, path: Path) -> tuple[int, ...]:
    """The waits of ``messageDelayLevel``, in ms, from level 1 on; () for "".

    Raises:
        BadConf: a level is no number with one of ``s m h d``.
    """
    found = []
    for word in text.split():
        level = _LEVEL.fullmatch(word)
        if level is None:
            raise BadConf(f"{path}: messageDelayLevel has {word[:60]!r}, as 10s or 5m.")
        found.append(int(level[1]) * _UNITS_MS[level[2]])
    return tuple(found)


def _layout_of(conf: Conf) -> str:
    if conf.values.get("enableDLegerCommitLog", "").lower() == _TRUE:
        return "DLedger keeps the log (enableDLegerCommitLog)"
    return ""
