"""Does fsck bear any directory? Mutated stores, each judged under a memory limit.

    python benchmarks/mutated_directories.py [--count N] [--first N] [--memory MIB]

A case is a number: it chooses a golden store and up to six mutations of its directory
(bytes, truncations, exchanged, renamed or doubled files, deep or huge JSON, pipes,
links, sparse giants, odd names). fsck is asked of it, of a small log and as of a large
one, by each walk that is installed. It must answer, by a report or by a refusal; a
traceback, a change of any file, a minute of CPU time, or more memory than allowed is a
failure, whose number is printed.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import signal
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random
from types import FrameType

from crashmq.harness.fsck.fsck import NotAStore, fsck
from crashmq.harness.fsck.scanner import compiled_walk
from crashmq.harness.fsck.survey import Manner

TESTS = Path(__file__).resolve().parent.parent / "tests"
sys.path.insert(0, str(TESTS))

from unpacking import unpacked  # noqa: E402  # where it lies is said just before

GOLDEN = TESTS / "golden"
SECONDS_MAX = 60
JSON_FILES = (
    *("config/topics.json", "config/consumerOffset.json", "config/delayOffset.json"),
    *("config/subscriptionGroup.json", "config/consumerFilter.json", "deletedTopics"),
)
NAMES = ("x", "-1", "0" * 20, "9" * 20, "a b", "тема", "%LMQ%a", "0" * 255, "\n", "..x")
NUMBERS = (0, 1, -1, 90, 91, 1 << 20, (1 << 31) - 1, -(1 << 31), 1 << 40, (1 << 63) - 1)
Mutation = Callable[[Path, Random], None]


def files_of(root: Path) -> list[Path]:
    """The regular files below a directory, in order."""
    return sorted(p for p in root.rglob("*") if p.is_file() and not p.is_symlink())


def some_bytes(root: Path, chance: Random) -> None:
    """Change bytes of a file: random ones, zeros, or a copy from elsewhere in it."""
    data = bytearray((path := chance.choice(files_of(root))).read_bytes())
    for _ in range(chance.choice((1, 1, 4, 64)) if data else 0):
        at = chance.randrange(len(data))
        size = min(chance.choice((1, 2, 8, 64, 512, 4096)), len(data) - at)
        start = chance.randrange(len(data) - size + 1)
        ways = chance.randbytes(size), bytes(size), bytes(data[start : start + size])
        data[at : at + size] = chance.choice((*ways, b"\xff" * size))
    path.write_bytes(data)


def a_number(root: Path, chance: Random) -> None:
    """Put a number that is seldom right where a field may be."""
    data = bytearray((path := chance.choice(files_of(root))).read_bytes())
    if len(data) > 16:
        at, width = chance.randrange(len(data) - 8), chance.choice((2, 4, 8))
        number = chance.choice(NUMBERS) & ((1 << 8 * width) - 1)
        data[at : at + width] = number.to_bytes(width, "big")
    path.write_bytes(data)


def another_length(root: Path, chance: Random) -> None:
    """Cut a file, lengthen it, or make it a sparse giant."""
    path = chance.choice(files_of(root))
    size = path.stat().st_size
    longer = size + chance.randrange(1, 10_000)
    lengths = (0, chance.randrange(size + 1), longer, 1 << 30, 1 << 40)
    os.truncate(path, chance.choice(lengths))


def exchanged(root: Path, chance: Random) -> None:
    """Exchange two files, or put one in the place of another."""
    one, other = chance.choice(files_of(root)), chance.choice(files_of(root))
    data, there = one.read_bytes(), other.read_bytes()
    other.write_bytes(data)
    if chance.random() < 0.5:
        one.write_bytes(there)


def renamed(root: Path, chance: Random) -> None:
    """Give a file or a folder another name, or take it away."""
    path = chance.choice([p for p in sorted(root.rglob("*")) if p.exists()])
    target = path.with_name(chance.choice(NAMES))
    if chance.random() < 0.3:
        is_folder = path.is_dir() and not path.is_symlink()
        shutil.rmtree(path) if is_folder else path.unlink()
    elif not target.exists():
        path.rename(target)


def a_table(root: Path, chance: Random) -> None:
    """A side file that is deep, huge, no JSON, or JSON of the wrong kind."""
    path = root / chance.choice(JSON_FILES)
    path.parent.mkdir(exist_ok=True)
    if path.is_symlink() or (path.exists() and not path.is_file()):
        return
    deep = chance.choice((10, 1000, 200_000))
    path.write_bytes(
        chance.choice(
            (
                b"[" * deep,
                b'{"offsetTable":' * deep + b"1" + b"}" * deep,
                b'{"a":' + b"9" * deep + b"}",
                b'{"offsetTable":{"T@g":{' + b'0:1,"x":-1' + b"}}}",
                b'{"offsetTable":{"T@g":{"0":1e999,"-1":NaN,"9999999999999999999":1}}}',
                b'{"topicConfigTable":[],"dataVersion":{"counter":null}}',
                b'{"topicConfigTable":{"T":7}}',
                b'{"filterDataByTopic":{"T":{"filterDataMap":{"g":{"expression":3}}}}}',
                b"\xff\xfe" + chance.randbytes(100),
                b"null",
                b'"\\ud800"',
                b"[" + b"1," * deep + b"1]",
            )
        )
    )


def a_stranger(root: Path, chance: Random) -> None:
    """A pipe, a link or a folder where a file may be."""
    taken = [p.relative_to(root) for p in files_of(root)]
    place = root / chance.choice((*taken, Path("index/x"), Path("config/x")))
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.is_symlink() or place.is_file():
        place.unlink()
    elif place.exists():
        return
    way = chance.randrange(5)
    targets = ("/dev/zero", "/proc/self/mem", "/etc/passwd", ".", "../..", "nowhere")
    if way == 0:
        os.mkfifo(place)
    elif way == 1:
        place.mkdir()
    else:
        place.symlink_to(chance.choice((*targets, place.name)))


MUTATIONS: tuple[Mutation, ...] = (
    *(some_bytes, some_bytes, a_number, a_number, another_length),
    *(exchanged, renamed, a_table, a_stranger),
)


def mutated(number: int, stores: list[Path], root: Path) -> str:
    """Make the directory of a case; returns what was done to which store."""
    chance = Random(number)
    store = chance.choice(stores)
    shutil.copytree(store, root)
    done = [store.name]
    for _ in range(chance.randint(1, 6)):
        mutation = chance.choice(MUTATIONS)
        if files_of(root) and all(p.stat().st_size < 1 << 24 for p in files_of(root)):
            with suppress(FileExistsError, NotADirectoryError, IsADirectoryError):
                mutation(root, chance)  # or an earlier one stands in its way
                done.append(mutation.__name__)
    return ", ".join(done)


def state_of(root: Path) -> list[tuple[str, int, int]]:
    """Each entry's path, size and time of change."""
    stats = [(path, path.lstat()) for path in sorted(root.rglob("*"))]
    return [(str(p), s.st_size, s.st_mtime_ns) for p, s in stats]


def judged(root: Path, memory: int) -> str:
    """The answer in a word, from a process of its own with bounded memory and time."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
        signal.signal(signal.SIGPROF, _too_late)
        signal.setitimer(signal.ITIMER_PROF, SECONDS_MAX)
        try:
            said = _answers(root)
        except BaseException:  # whatever it is, it is what is looked for
            said = traceback.format_exc()
        os.write(writer, said.encode(errors="backslashreplace")[:60_000])
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as answer:
        said = answer.read().decode()
    _, status = os.waitpid(child, 0)
    return said or f"killed: status {status}"


def _answers(root: Path) -> str:
    words = set[str]()
    large = Manner(small_size=0, split_size=50_000, with_index=False)
    manners = [Manner(), large]
    if compiled_walk() is not None:
        manners.append(replace(large, compiled_size=0))
    for manner in manners:
        try:
            report = fsck(root, manner=manner)
            report.to_json()
            if any("failed" in one.seen for one in report.violations):
                failed = [one for one in report.violations if "failed" in one.seen]
                return f"Traceback: {failed[0]}"
            words.add(report.verdict.split(":")[0].split(",")[0])
        except NotAStore as error:
            words.add(error.word)
    return " / ".join(sorted(words))


def _too_late(_number: int, _frame: FrameType | None) -> None:
    raise TimeoutError(f"more than {SECONDS_MAX} CPU seconds")


def golden_stores(folder: Path) -> list[Path]:
    """The golden stores."""
    found = []
    for path in sorted(GOLDEN.glob("*.tar.xz")):
        target = folder / path.name.removesuffix(".tar.xz")
        unpacked(path, target)
        inner = [p.parent for p in target.rglob("commitlog") if p.is_dir()]
        found += inner[:1]
    return found


def main() -> None:
    """Judge so many cases; exit 1 if one failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument(
        "--memory", type=int, default=512, help="MiB that a case may use"
    )
    asked = parser.parse_args()
    scratch = Path(tempfile.mkdtemp(prefix="mutated-"))
    answers: Counter[str] = Counter()
    failures = 0
    try:
        stores = golden_stores(scratch / "golden")
        _answers(stores[0])  # what it imports and compiles, each child has then
        for number in range(asked.first, asked.first + asked.count):
            root = scratch / "case"
            what = mutated(number, stores, root)
            before = state_of(root)
            said = judged(root, asked.memory << 20)
            is_changed = state_of(root) != before
            shutil.rmtree(root)
            if is_changed or "Traceback" in said or said.startswith("killed"):
                failures += 1
                print(f"case {number} ({what}): {'CHANGED ' * is_changed}{said}")
            else:
                answers[said] += 1
            if (number + 1) % 500 == 0:
                print(f"{number + 1 - asked.first:,} done", flush=True)
    finally:
        shutil.rmtree(scratch)
    for said, times in answers.most_common():
        print(f"{times:7,} {said}")
    print(f"{asked.count:,} directories, {failures} failures")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
