"""Directories that no store looks like: golden stores, changed at random.

``python tests/harness/hostile.py FIRST COUNT`` tries COUNT of them from number FIRST
on, in a process that may not have much memory, and says what was not as it must be: no
traceback, no byte written, an end.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import resource
import shutil
import struct
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from zlib import crc32

from golden_store import golden

from crashmq.harness.fsck.fsck import fsck
from crashmq.harness.fsck.places import Places
from crashmq.harness.fsck.recognise import NotAStore

STORES = ("rolled-clean", "rolled-killed", "lmq-clean", "crc-killed", "expired-clean")
CONFIGS = (
    *("topics.json", "consumerOffset.json", "subscriptionGroup.json"),
    *("consumerFilter.json", "delayOffset.json", "recoveredEnds.json"),
)
MEMORY_MAX = 512 << 20
Change = Callable[[Path, Random], None]
TEXTS = (
    b"[" * 200_000,
    b'{"offsetTable":' * 5_000,
    b'{"topicConfigTable":{"\\ud800":{}}}',
    b'{"offsetTable":{"' + b"9" * 5_000 + b'":1}}',
    b'{"offsetTable":{"a@b":{0:' + b"9" * 5_000 + b"}}}",
    b'{"offsetTable":{"a@b":{"-1":3, "x":[]}}}',
    b'{"offsetTable":[1,2],"filterDataByTopic":7,"topicConfigTable":"x"}',
    b'{"filterDataByTopic":{"T":{"groupFilterData":{"g":{"expressionType":"SQL92",'
    b'"expression":"' + b"(" * 50_000 + b'"}}}}}',
    b"\xff\xfe\x00" * 99,
    b"null",
    b"",
)


def files_of(root: Path) -> list[Path]:
    return sorted(p for p in root.rglob("*") if p.is_file() and not p.is_symlink())


def any_file(root: Path, chance: Random) -> Path:
    return chance.choice(files_of(root) or [root / "checkpoint"])


def beginning(path: Path) -> bytes:
    """What a file holds, but of one that was made huge."""
    if not path.is_file():
        return b"x"
    with path.open("rb") as file:
        return file.read(1 << 20)


def some_bits(root: Path, chance: Random) -> None:
    path = any_file(root, chance)
    data = bytearray(beginning(path))
    for _ in range(chance.choice((1, 3, 40))):
        if data:
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    path.write_bytes(data)


def some_numbers(root: Path, chance: Random) -> None:
    path = any_file(root, chance)
    data = bytearray(beginning(path))
    for _ in range(chance.randrange(1, 9)):
        number = chance.choice((-1, 0, 1, 1 << 31, (1 << 63) - 1, -(1 << 63), 1 << 40))
        raw = struct.pack(">q", number)[-chance.choice((4, 8)) :]
        at = chance.randrange(max(1, len(data) - 8))
        data[at : at + len(raw)] = raw
    path.write_bytes(data)


def zeros(root: Path, chance: Random) -> None:
    path = any_file(root, chance)
    size = path.stat().st_size
    at = chance.randrange(size + 1)
    with path.open("r+b") as file:
        file.seek(at)
        file.write(bytes(min(chance.choice((512, 4096, 1 << 20)), size - at)))


def other_length(root: Path, chance: Random) -> None:
    path = any_file(root, chance)
    size = path.stat().st_size
    os.truncate(path, chance.choice((0, 1, size // 2, size + 1, size * 3, 1 << 36)))


def gone(root: Path, chance: Random) -> None:
    path = chance.choice(sorted(root.rglob("*")) or [root / "x"])
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif path.exists():
        path.unlink()


def exchanged(root: Path, chance: Random) -> None:
    one, other = any_file(root, chance), any_file(root, chance)
    data, data_other = beginning(one), beginning(other)
    one.write_bytes(data_other)
    other.write_bytes(data)


def other_name(root: Path, chance: Random) -> None:
    path = any_file(root, chance)
    name = chance.choice(
        (
            *("9" * 20, "9" * 19, "-1", "x" * 200, "٣" * 20),
            f"{chance.randrange(1 << 40)}",
        )
    )
    path.rename(path.with_name(name))


def odd_kind(root: Path, chance: Random) -> None:
    path = any_file(root, chance)
    path.unlink()
    kind = chance.randrange(5)
    if kind == 0:
        os.mkfifo(path)
    elif kind == 1:
        path.mkdir()
    else:
        targets = ("/proc/self/mem", "/dev/zero", "/etc/passwd", "..", path.name)
        path.symlink_to(chance.choice(targets))


def odd_folder(root: Path, chance: Random) -> None:
    name = chance.choice(
        (
            "consumequeue/a/b/c/d/e",
            "commitlog/x",
            "index/y",
            "consumequeue/T/99999999999",
        )
    )
    (root / name).mkdir(parents=True, exist_ok=True)
    target = chance.choice(("/proc", "/", str(root), "/dev"))
    link = root / name / "link"
    if not os.path.lexists(link):
        link.symlink_to(target)


def side_file(root: Path, chance: Random) -> None:
    (root / "config").mkdir(exist_ok=True)
    name = chance.choice(CONFIGS) + chance.choice(("", ".bak"))
    path = root / "config" / name
    if chance.random() < 0.1:
        path.write_bytes(b"{")
        os.truncate(path, 1 << 30)
    else:
        path.write_bytes(chance.choice(TEXTS))


def deleted_topics(root: Path, chance: Random) -> None:
    lines = [
        f"{'9' * chance.choice((3, 5000))} {chance.randrange(-2, 9)} T{number}"
        for number in range(chance.randrange(1, 4))
    ]
    text = ("crashmq deleted topics 1\n" + "\n".join(lines) + "\n").encode()
    (root / "deletedTopics").write_bytes(text + b"%08x\n" % crc32(text))
    if chance.random() < 0.2:
        os.truncate(root / "deletedTopics", 1 << 30)


def mark(root: Path, chance: Random) -> None:
    number = chance.choice((0, -1, 1, 512, 1 << 31, 1 << 62))
    some = (chance.choice((0, 1, 65536, -5)), chance.choice((0, 400, -20)))
    raw = struct.pack(">IIqqqiiqI", 0x43524D51, 2, 7, 0, number, *some, number, 0)
    raw += crc32(raw).to_bytes(4, "big")
    with (root / "checkpoint").open("r+b") as file:
        file.seek(512)
        file.write(raw)


CHANGES: tuple[Change, ...] = (
    *(some_bits, some_numbers, zeros, other_length, gone, exchanged, other_name),
    *(odd_kind, odd_folder, side_file, deleted_topics, mark),
)


def made(number: int, folder: Path) -> Path:
    """Directory ``number``, the same each time."""
    chance = random.Random(number)
    root = golden(chance.choice(STORES)).unpack(folder / "store")
    for _ in range(chance.choice((1, 1, 2, 5))):
        try:
            chance.choice(CHANGES)(root, chance)
        except (OSError, IndexError, ValueError):
            continue  # an earlier change took the file away
    return root


def fingerprint(root: Path) -> str:
    """Names, kinds, lengths, times and contents of all that lies there."""
    found = hashlib.sha256()
    for path in sorted(root.rglob("*"), key=str):
        status = path.lstat()
        found.update(
            f"{path} {status.st_mode} {status.st_size} {status.st_mtime_ns}".encode(
                errors="surrogateescape"
            )
        )
        if path.is_file() and not path.is_symlink() and status.st_size < 1 << 22:
            found.update(path.read_bytes())
    return found.hexdigest()


def answer(root: Path) -> str:
    """What fsck says first, of a report that can be printed in every form."""
    try:
        report = fsck(root, places=Places(root))
    except NotAStore as error:
        return error.word
    json.dumps(report.to_json())
    return report.verdict


def main(first: int, count: int) -> int:
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_MAX, MEMORY_MAX))
    wrong = 0
    words: dict[str, int] = {}
    for number in range(first, first + count):
        folder = Path(tempfile.mkdtemp(prefix="hostile-"))
        try:
            root = made(number, folder)
            before = fingerprint(root)
            try:
                word = answer(root).partition(":")[0]
                word = "".join(sign for sign in word if not sign.isdigit())
            except Exception as error:
                word = "TRACEBACK"
                print(f"{number}: {type(error).__name__}: {error}"[:300])
            if fingerprint(root) != before:
                print(f"{number}: the directory was changed")
                wrong += 1
            wrong += word == "TRACEBACK"
            words[word] = words.get(word, 0) + 1
        finally:
            shutil.rmtree(folder)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(f"{count} directories, {wrong} wrong, {peak} MiB at most; {words}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
