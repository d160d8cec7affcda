"""Make the golden fixtures: store directories written by the real RocketMQ 5.3.0.

Builds ``writer/`` with Maven outside the source tree, lets it write one store a
fixture, checks each store against its manifest, has RocketMQ read a copy back, and
packs what passed as ``<name>.tar.xz``. The standard library, a JDK and Maven suffice.

Exit codes: 0 made; 1 a store and its manifest disagree, or a program did not end in
time; 2 usage; 4 Java, Maven or the released jars are missing.
"""

import argparse
import hashlib
import json
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

WRITER = Path(__file__).resolve().parent / "writer"
CONFIG_WRITER = WRITER.parent / "config_writer"
CONFIG = "rocketmq-5.3.0-config"
LOG_FILES_MIN = 3
RUN_SECONDS_MAX = 600
MAGIC_V1 = 0xDAA320A7

# total_size, magic, body_crc, queue_id, flag, queue_offset, phy_offset
_HEAD = struct.Struct(">iIIiiqq")
_SYS_FLAG_AT = 36
_BODY_SIZE_AT = 84  # with IPv4 hosts
_UNIT = struct.Struct(">qiq")  # phy_offset, size, tags_code
_SERVED = ("topic", "queue_id", "queue_offset", "phy_offset", "size", "body_sha1")

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Fixture:
    """One archive to make: how its store was set up and filled, and how it ended.

    Attributes:
        kind: what its records are, as the writer's ``--kind`` knows it.
        expired_files: how many of the oldest log files were deleted at the end.
        blanked: the queues were lost after that, and a start of RocketMQ has built them
            anew: each begins with pre-blank units.
    """

    name: str
    end: str
    flush: str = "async"
    kind: str = "plain"
    messages: int = 240
    log_file_size: int = 16_384
    queue_file_size: int = 400
    expired_files: int = 0
    blanked: bool = False

    @property
    def sizes(self) -> tuple[str, ...]:
        """The options without which RocketMQ does not open the store."""
        return (
            *("--flush", self.flush, "--kind", self.kind),
            *("--log-file-size", str(self.log_file_size)),
            *("--queue-file-size", str(self.queue_file_size)),
        )


def both_ends(base: Fixture) -> tuple[Fixture, Fixture]:
    """The fixture shut down in order, and with its process halted."""
    return (
        replace(base, name=f"{base.name}-clean"),
        replace(base, name=f"{base.name}-killed", end="halt"),
    )


LARGE = Fixture("rocketmq-5.3.0-clean", "clean", "async", "plain", 1_200, 65_536, 6_000)
EXPIRED = Fixture(
    "rocketmq-5.3.0-expired", "clean", queue_file_size=2_000, expired_files=3
)
FIXTURES = (
    LARGE,
    replace(LARGE, name="rocketmq-5.3.0-killed", end="halt"),
    replace(LARGE, name="rocketmq-5.3.0-killed-sync", end="halt", flush="sync"),
    *both_ends(Fixture("rocketmq-5.3.0-rolled", "clean")),
    *both_ends(Fixture("rocketmq-5.3.0-batch", "clean", kind="batch")),
    *both_ends(Fixture("rocketmq-5.3.0-lmq", "clean", kind="lmq")),
    *both_ends(Fixture("rocketmq-5.3.0-ipv6", "clean", kind="ipv6")),
    *both_ends(Fixture("rocketmq-5.3.0-crc", "clean", kind="crc")),
    *both_ends(EXPIRED),
    *both_ends(replace(EXPIRED, name="rocketmq-5.3.0-blanked", blanked=True)),
)


class MissingTool(Exception):
    """Java, Maven or the released jars cannot be had here."""


class FixtureError(Exception):
    """A store could not be written, or it and its manifest disagree."""


@dataclass(frozen=True, slots=True)
class Writer:
    """The built Java program, and the directory it may call home."""

    jar: Path
    home: Path

    def run(self, *arguments: str | Path) -> str:
        """Run one verb; return what it printed."""
        done = run(
            require("java"),
            "-Duser.timezone=UTC",
            f"-Duser.home={self.home}",
            "-jar",
            self.jar,
            *arguments,
        )
        if done.returncode != 0:
            raise FixtureError(
                f"the writer ended with {done.returncode} on `{arguments[0]}`: "
                f"{done.stderr.strip()}"
            )
        return done.stdout


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a program to its end; its exit code is the caller's to judge."""
    try:
        return subprocess.run(
            command,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=RUN_SECONDS_MAX,
        )
    except subprocess.TimeoutExpired as slow:
        raise FixtureError(
            f"`{Path(command[0]).name}` did not end within {RUN_SECONDS_MAX} s; on a "
            f"first run Maven may still be fetching jars, so try once more."
        ) from slow


def require(tool: str) -> str:
    """Return the path of a program, or say that it is missing."""
    path = shutil.which(tool)
    if path is None:
        raise MissingTool(
            f"`{tool}` is not on the PATH; the golden fixtures need JDK 17 or newer "
            f"and Maven 3."
        )
    return path


def build_writer(build: Path, source: Path = WRITER) -> Writer:
    """Compile a Java program into ``build``, with the released jars beside it."""
    require("java")
    settings = ("-q", "-B", "-Dstyle.color=never", f"-Dgolden.build={build}")
    done = run(require("mvn"), *settings, "-f", source / "pom.xml", "package")
    if done.returncode != 0:
        errors = [line for line in done.stdout.splitlines() if "[ERROR]" in line]
        raise MissingTool(
            "Maven could not build the golden writer; it needs JDK 17 or newer, and "
            "Maven Central or a filled local repository: "
            + " ".join(errors[:1] or ["it printed no error."])
        )
    (jar,) = build.glob("golden-*.jar")
    return Writer(jar, build)


def make_config(out: Path, scratch: Path) -> Path:
    """Let a broker's managers write their files; check what they load; pack them."""
    writer = build_writer(scratch / "build", CONFIG_WRITER)
    store, manifest = scratch / "store", scratch / "manifest.json"
    writer.run("write", store)
    told = writer.run("read", store)
    loaded = json.loads(told)
    for table in ("topics", "groups", "offsets"):
        expect(loaded[table] == "true", f"RocketMQ does not load its own {table}")
    manifest.write_text(told, "utf-8")
    version = json.loads((store / "config" / "topics.json").read_text("utf-8"))
    archive = out / f"{CONFIG}.tar.xz"
    pack(archive, [store, manifest], version["dataVersion"]["timestamp"] // 1000)
    return archive


def make_fixture(fixture: Fixture, writer: Writer, out: Path, scratch: Path) -> Path:
    """Write, check, read back and pack one fixture; return the archive."""
    store, manifest = scratch / "store", scratch / "manifest.jsonl"
    rows = write_store(fixture, writer, store, manifest)
    check_store(fixture, store, rows)
    copy = shutil.copytree(store, scratch / "copy")
    check_served(fixture, writer, copy, rows)
    settings = scratch / "settings.json"
    settings.write_text(json.dumps(asdict(fixture)) + "\n", "utf-8")
    archive = out / f"{fixture.name}.tar.xz"
    sources = [store, manifest, settings]
    pack(archive, sources, mtime=rows[-1]["store_timestamp"] // 1000)
    return archive


def write_store(
    fixture: Fixture, writer: Writer, store: Path, manifest: Path
) -> list[Row]:
    """Let RocketMQ write the store; the manifest's rows of what is still in it."""
    end = "halt" if fixture.blanked else fixture.end
    how: list[str | Path] = [
        "--manifest",
        manifest,
        "--messages",
        str(fixture.messages),
        "--end",
        end,
    ]
    if fixture.expired_files:
        how += ["--expire", str(fixture.expired_files)]
    writer.run("write", store, *how, *fixture.sizes)
    if fixture.blanked:
        shutil.rmtree(store / "consumequeue")
        writer.run("read", store, "--end", fixture.end, *fixture.sizes)
    begin = min(int(path.name) for path in (store / "commitlog").iterdir())
    rows = parse_lines(manifest.read_text("utf-8"))
    left = [row for row in rows if row["phy_offset"] >= begin]
    expect(len(left) < len(rows) or not fixture.expired_files, "nothing expired")
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in left)
    manifest.write_text(text, "utf-8")
    return left


def parse_lines(text: str) -> list[Row]:
    return [json.loads(line) for line in text.splitlines()]


def check_store(fixture: Fixture, store: Path, rows: Sequence[Row]) -> None:
    """Hold the bytes of a store against its manifest."""
    expect((store / "abort").exists() == (fixture.end == "halt"), "abort is wrong")
    files = sorted((store / "commitlog").iterdir())
    expect(len(files) >= LOG_FILES_MIN, f"{len(files)} log files are too few")
    log = b"".join(path.read_bytes() for path in files)
    expect(len(log) == len(files) * fixture.log_file_size, "a log file's size is wrong")
    gone = fixture.messages - len(rows)
    for i, row in enumerate(rows, gone):
        check_record(log, int(files[0].name), i, row)
    if fixture.end == "clean" and not fixture.expired_files:
        check_units(store, rows)


def check_record(log: bytes, begin: int, i: int, row: Row) -> None:
    """Hold one record, and the body formula, against one manifest row."""
    at = row["phy_offset"] - begin
    size, magic, crc, queue_id, _, queue_offset, phy_offset = _HEAD.unpack_from(log, at)
    named = (size, queue_id, queue_offset, phy_offset)
    wanted = (row["size"], row["queue_id"], row["queue_offset"], row["phy_offset"])
    expect(magic == MAGIC_V1 and named == wanted, f"message {i} is not at {at}")
    (sys_flag,) = struct.unpack_from(">i", log, at + _SYS_FLAG_AT)
    wide_hosts = (sys_flag >> 4 & 1) + (sys_flag >> 5 & 1)
    body_size_at = at + _BODY_SIZE_AT + 12 * wide_hosts
    (body_size,) = struct.unpack_from(">i", log, body_size_at)
    body = log[body_size_at + 4 : body_size_at + 4 + body_size]
    expect(body == body_of(i), f"message {i} has another body than the formula's")
    expect(crc == zlib.crc32(body) & 0x7FFFFFFF, f"message {i} has a wrong CRC")
    sha1 = hashlib.sha1(body, usedforsecurity=False).hexdigest()
    expect((body_size, sha1) == (row["body_size"], row["body_sha1"]), f"row {i} lies")


def body_of(i: int) -> bytes:
    """The body of message i, as README.md defines it."""
    size = 4096 + i if i % 101 == 100 else i * 97 % 401
    return bytes((i + 7 * j) % 251 for j in range(size))


def places(rows: Sequence[Row]) -> list[tuple[str, int, int, Row]]:
    """(topic, queue id, queue offset, row) wherever a message is served, in order.

    A queue that a message names for itself counts its offsets on its own.
    """
    served = [(row["topic"], row["queue_id"], row["queue_offset"], row) for row in rows]
    counts: dict[str, int] = {}
    for row in rows:
        for name in (row["lmq"] or "").split(",") if row["lmq"] else ():
            served.append((name, 0, counts.get(name, 0), row))
            counts[name] = counts.get(name, 0) + 1
    return sorted(served, key=lambda place: place[:3])


def check_units(store: Path, rows: Sequence[Row]) -> None:
    """Hold every ConsumeQueue unit of a drained store against the manifest."""
    wanted: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for topic, queue_id, _, row in places(rows):
        unit = row["phy_offset"], row["size"]
        wanted.setdefault((topic, queue_id), []).append(unit)
    units = {queue: read_units(store, *queue) for queue in wanted}
    expect(units == wanted, "the consume queues are not those of the manifest")


def read_units(store: Path, topic: str, queue_id: int) -> list[tuple[int, int]]:
    """(phy_offset, size) of every unit up to the zeros that end the queue."""
    files = sorted((store / "consumequeue" / topic / str(queue_id)).iterdir())
    units = _UNIT.iter_unpack(b"".join(path.read_bytes() for path in files))
    return [(phy_offset, size) for phy_offset, size, _ in units if size > 0]


def check_served(
    fixture: Fixture, writer: Writer, copy: Path, rows: Sequence[Row]
) -> None:
    """Let RocketMQ open a copy: it serves the manifest, whole and nothing else."""
    served = parse_lines(writer.run("read", copy, *fixture.sizes))
    wanted = [
        {name: row[name] for name in _SERVED}
        | {"topic": topic, "queue_id": queue_id, "queue_offset": queue_offset}
        for topic, queue_id, queue_offset, row in places(rows)
    ]
    expect(served == wanted, "RocketMQ serves other messages than it acknowledged")


def expect(holds: bool, otherwise: str) -> None:
    if not holds:
        raise FixtureError(otherwise)


def pack(archive: Path, sources: Sequence[Path], mtime: int) -> None:
    """Pack trees with sorted names and no trace of who packed them, or when."""
    with tarfile.open(archive, "w:xz", format=tarfile.USTAR_FORMAT, preset=9) as tar:
        for source in sources:
            for path in sorted([source, *source.rglob("*")]):
                add(tar, path, path.relative_to(source.parent), mtime)


def add(tar: tarfile.TarFile, path: Path, name: Path, mtime: int) -> None:
    entry = tarfile.TarInfo(name.as_posix())
    entry.mtime = mtime
    if path.is_dir():
        entry.type, entry.mode = tarfile.DIRTYPE, 0o755
        tar.addfile(entry)
    else:
        entry.size, entry.mode = path.stat().st_size, 0o644
        with path.open("rb") as content:
            tar.addfile(entry, content)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Make the golden fixtures.")
    parser.add_argument("--out", type=Path, required=True, help="where archives go")
    parser.add_argument("--only", nargs="*", help="names of archives; default all")
    said = parser.parse_args(arguments)
    out: Path = said.out
    out.mkdir(parents=True, exist_ok=True)
    known = [CONFIG, *[fixture.name for fixture in FIXTURES]]
    for name in said.only or ():
        if name not in known:
            parser.error(f"no fixture named {name}; there are {', '.join(known)}")
    with tempfile.TemporaryDirectory(prefix="golden-") as scratch:
        if not said.only or CONFIG in said.only:
            room = Path(scratch) / CONFIG
            room.mkdir()
            archive = make_config(out, room)
            print(f"{archive}: {archive.stat().st_size:,} bytes")
        wanted = [one for one in FIXTURES if not said.only or one.name in said.only]
        if not wanted:
            return 0
        writer = build_writer(Path(scratch) / "build")
        for fixture in wanted:
            room = Path(scratch) / fixture.name
            room.mkdir()
            archive = make_fixture(fixture, writer, out, room)
            print(f"{archive}: {archive.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except FixtureError as error:
        sys.exit(f"make.py: {error}")
    except MissingTool as error:
        print(f"make.py: {error}", file=sys.stderr)
        sys.exit(4)
