"""Apache RocketMQ of any released version, started on a directory of a store.

``Release`` has the jars of one version and ``field/`` compiled against them, both kept
in a cache outside the repository. A ``Broker`` is a process that obeys orders, one a
line; ``field/src/crashmq/field/Orders.java`` says which. ``serve_all`` starts RocketMQ
on a *copy* of a directory and returns a manifest of what it serves, or how it refused;
``Server`` does so for many directories in one process.

The cache is ``$CRASHMQ_ROCKETMQ``, or ``~/.cache/crashmq/rocketmq``.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, TypeAlias
from urllib.parse import quote

from crashmq.models.files.index import read_index

FIELD = Path(__file__).resolve().parent / "field"
VERSIONS = ("4.9.8", "5.1.4", "5.3.0", "5.3.3", "5.5.1")
MAVEN_SECONDS_MAX = 600
SERVE_SECONDS_MAX = 400
SAID_LINES_MAX = 60

ENDS_SOON = "-XX:TieredStopAtLevel=1"
"""For a process that ends before a second compiler would pay."""
_JVM = (
    *("-Xmx256m", "-XX:+UseSerialGC"),
    *("-Duser.timezone=UTC", "-Dfile.encoding=UTF-8", "-Dsun.jnu.encoding=UTF-8"),
    *("--add-opens=java.base/java.nio=ALL-UNNAMED",),
    *("--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",),
    *("--add-opens=java.base/jdk.internal.ref=ALL-UNNAMED",),
    *("--add-opens=java.base/java.lang=ALL-UNNAMED",),
    *("--add-opens=java.base/java.util=ALL-UNNAMED",),
)
_INDEX_SIZE_MAX = 1 << 24
_NEVER_EXPIRE_HOURS = 24 * 365 * 100

Row: TypeAlias = dict[str, Any]


class MissingTool(Exception):
    """Java, Maven or the released jars cannot be had here."""


class BrokerEnded(Exception):
    """RocketMQ's process ended, refused or failed where an answer was due."""


@dataclass(frozen=True)
class Settings:
    """How a directory's RocketMQ is configured; all else is RocketMQ's default.

    Attributes:
        store: properties of MessageStoreConfig. ``{root}`` in a value stands for the
            store's root, ``{beside}`` for the directory that holds it.
        broker: properties of BrokerConfig.
        topics: what ``config/topics.json`` would tell: ``name``, ``queues`` and
            ``attributes`` (``name:value`` pairs, apart by commas).
        store_class: ``DefaultMessageStore``, or ``RocksDBMessageStore``.
        beside: names of directories next to the root that belong to the store.
    """

    store: Mapping[str, str] = field(default_factory=dict)
    broker: Mapping[str, str] = field(default_factory=dict)
    topics: Sequence[Mapping[str, str]] = ()
    store_class: str = "DefaultMessageStore"
    beside: Sequence[str] = ()

    @staticmethod
    def of(told: Mapping[str, Any]) -> Settings:
        """The settings in a ``settings.json``, whatever else stands there."""
        names = ("store", "broker", "topics", "store_class", "beside")
        return Settings(**{name: told[name] for name in names if name in told})

    def to_json(self) -> Row:
        return asdict(self)


def settings_beside(root: Path) -> Settings:
    """The settings kept next to a store, or those that its files' lengths tell."""
    told = root.parent / "settings.json"
    if told.is_file():
        return Settings.of(json.loads(told.read_text("utf-8")))
    return settings_of_files(root)


def settings_of_files(root: Path) -> Settings:
    """File sizes as most files have them; RocketMQ refuses others."""
    sizes = {
        "mappedFileSizeCommitLog": _common_size((root / "commitlog").glob("[0-9]*")),
        "mappedFileSizeConsumeQueue": _common_size(
            (root / "consumequeue").glob("*/*/[0-9]*")
        ),
        "mappedFileSizeConsumeQueueExt": _common_size(
            (root / "consumequeue_ext").glob("*/*/[0-9]*")
        ),
    }
    sizes |= _index_sizes(root)
    store = {name: str(size) for name, size in sizes.items() if size}
    if "mappedFileSizeConsumeQueueExt" in store:
        store["enableConsumeQueueExt"] = "true"
    return Settings(store)


def _index_sizes(root: Path) -> dict[str, int]:
    paths = [path for path in sorted((root / "index").glob("[0-9]*")) if path.is_file()]
    small = [path for path in paths if path.stat().st_size <= _INDEX_SIZE_MAX]
    files = {f"index/{path.name}": path.read_bytes() for path in small}
    for _, file in read_index(files, 0).files:
        if file.slot_num:
            return {"maxHashSlotNum": file.slot_num, "maxIndexNum": file.index_num}
    return {}


def _common_size(paths: Iterator[Path]) -> int:
    sizes = [path.stat().st_size for path in paths if path.is_file()]
    return max(sizes, key=lambda size: (sizes.count(size), size), default=0)


def cache_root() -> Path:
    told = os.environ.get("CRASHMQ_ROCKETMQ")
    return Path(told) if told else Path.home() / ".cache" / "crashmq" / "rocketmq"


@dataclass(frozen=True)
class Release:
    """One version's class path: its jars, and our program compiled against them."""

    version: str
    lib: Path
    classes: Path

    @property
    def class_path(self) -> str:
        jars = sorted(self.lib.glob("*.jar"))
        return os.pathsep.join(map(str, [self.classes, FIELD / "resources", *jars]))


def release(version: str) -> Release:
    """The jars and classes of a version, fetched and compiled where they are not.

    Raises:
        MissingTool: there is no Java or Maven, or Maven Central has no such version.
    """
    home = cache_root() / version
    lib = home / "lib"
    if not lib.is_dir():
        _fetch(version, lib)
    sources = _sources(version)
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources))
    classes = home / f"classes-{digest.hexdigest()[:16]}"
    if not classes.is_dir():
        _compile(sources, lib, classes)
    return Release(version, lib, classes)


def _sources(version: str) -> list[Path]:
    major = "v4" if version.startswith("4.") else "v5"
    return sorted([*(FIELD / "src").rglob("*.java"), *(FIELD / major).rglob("*.java")])


def _fetch(version: str, lib: Path) -> None:
    lib.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=lib.parent) as scratch:
        jars = Path(scratch) / "lib"
        done = _ran(
            *(require("mvn"), "-q", "-B", "-Dstyle.color=never"),
            *("-f", str(FIELD / "pom.xml"), f"-Drocketmq.version={version}"),
            *(f"-DoutputDirectory={jars}", "-DincludeScope=runtime"),
            "dependency:copy-dependencies",
        )
        if done.returncode != 0:
            errors = [line for line in done.stdout.splitlines() if "[ERROR]" in line]
            raise MissingTool(
                f"Maven could not get rocketmq-store {version}; it needs Maven Central "
                f"or a filled local repository: {' '.join(errors[:1])}"
            )
        _put_in_place(jars, lib)


def _compile(sources: Sequence[Path], lib: Path, classes: Path) -> None:
    with tempfile.TemporaryDirectory(dir=classes.parent) as scratch:
        made = Path(scratch) / "classes"
        jars = os.pathsep.join(map(str, sorted(lib.glob("*.jar"))))
        done = _ran(
            *(require("javac"), "-nowarn", "-encoding", "UTF-8", "-cp", jars),
            *("-d", str(made), *map(str, sources)),
        )
        if done.returncode != 0:
            raise MissingTool(f"javac could not compile {FIELD}: {done.stderr}")
        _put_in_place(made, classes)


def _put_in_place(made: Path, target: Path) -> None:
    try:
        made.rename(target)
    except OSError:
        # Somebody else has made it meanwhile.
        assert target.is_dir(), target


def _ran(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, capture_output=True, encoding="utf-8", timeout=MAVEN_SECONDS_MAX
    )


def require(tool: str) -> str:
    """The path of a program.

    Raises:
        MissingTool: it is not on the PATH.
    """
    path = shutil.which(tool)
    if path is None:
        raise MissingTool(
            f"`{tool}` is not on the PATH; RocketMQ needs JDK 17 or newer and Maven 3."
        )
    return path


class Broker:
    """A process with RocketMQ's store of one version, on one directory at a time.

    Orders may be given before their answers are read; each order that answers does so
    with one row. What the process says on standard error is kept in ``said``.
    """

    def __init__(self, version: str, *options: str) -> None:
        """Start the process; ``options`` of Java, or ``ENDS_SOON``."""
        made = release(version)
        self._store_class = ""
        self._home = tempfile.TemporaryDirectory(prefix="rocketmq-home-")
        self._process = subprocess.Popen(
            [
                *("nice", "-n", "5", require("java"), *_JVM),
                *(options or (ENDS_SOON,)),
                *(f"-Duser.home={self._home.name}", "-cp", made.class_path),
                "crashmq.field.Main",
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            env=os.environ | {"LC_ALL": "C.UTF-8"},
        )
        self.said: list[str] = []
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self.said.append(line.rstrip("\n"))

    def take(self, root: Path, settings: Settings) -> None:
        """Turn to a directory, whose store is not open yet."""
        root = root.absolute()
        self._store_class = settings.store_class
        self.tell("take", root=root)
        for name, value in settings.store.items():
            placed = value.replace("{root}", str(root))
            self.tell("set", **{name: placed.replace("{beside}", str(root.parent))})
        for name, value in settings.broker.items():
            self.tell("broker", **{name: value})
        for topic in settings.topics:
            self.tell("topic", **topic)
        # A directory of long ago is old by its files; nothing in it may expire.
        self.tell("set", fileReservedTime=_NEVER_EXPIRE_HOURS)
        self.tell("set", cleanFileForciblyEnable="false")

    def __enter__(self) -> Broker:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    def tell(self, verb: str, **values: object) -> None:
        """Give an order, and do not wait for what it answers."""
        assert self._process.stdin is not None
        pairs = [f"{quote(name)}={quote(str(value))}" for name, value in values.items()]
        try:
            self._process.stdin.write(" ".join([verb, *pairs]) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise BrokerEnded(self._ended(f"before `{verb}`")) from None

    def ask(self, verb: str, **values: object) -> Row:
        """Give an order and return its one row."""
        self.tell(verb, **values)
        return self.answer(verb)

    def answer(self, awaited: str = "an answer") -> Row:
        """The next row.

        Raises:
            BrokerEnded: the process ended, or an order failed.
        """
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise BrokerEnded(self._ended(f"at `{awaited}`"))
        row: Row = json.loads(line)
        if "failed" in row:
            raise BrokerEnded(f"`{row['failed']}` failed: {row['why']}")
        return row

    def _ended(self, when: str) -> str:
        code = self._process.wait()
        self._listener.join(5)
        return f"RocketMQ ended with {code} {when}: " + "\n".join(self.said[-5:])

    def open(self) -> None:
        """Load and start the store.

        Raises:
            BrokerEnded: ``load`` answered false, or raised.
        """
        if not self.ask("open", **{"class": self._store_class})["opened"]:
            raise BrokerEnded("DefaultMessageStore.load refused")

    def shoot(self) -> None:
        """End the process with SIGKILL; whoever awaits an answer learns of it."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)

    def kill(self) -> None:
        """End the process with SIGKILL, if it has not ended, and clear up."""
        self.shoot()
        self.finish()

    def rest(self) -> Iterator[Row]:
        """Rows that the process still had answered before its end."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.endswith("}\n"):
                yield json.loads(line)

    def finish(self) -> int:
        """Tell that there are no more orders, and wait for the end; its exit code."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended already
            self._process.stdin.close()
        code = self._process.wait()
        self._listener.join(5)
        self._process.stdout.close()
        assert self._process.stderr is not None
        self._process.stderr.close()
        self._home.cleanup()
        return code


def serve_all(version: str, root: Path, settings: Settings | None = None) -> Row:
    """Start a RocketMQ on a copy of a directory; the manifest of what it serves.

    Args:
        version: the release, as Maven Central names it.
        root: the store's directory. It is not changed.
        settings: how it is configured; None: what ``settings.json`` beside it says, or
            else what the lengths of its files tell.

    Returns:
        ``version``; ``outcome``: ``served``, ``refused`` (load answered false),
        ``failed`` (it raised), ``ended`` (the process is gone) or ``hung``; ``why``,
        null where served; ``log``; ``queues``, each with its messages and gaps;
        ``changes`` that the start and an orderly end made to files; ``said``, what
        RocketMQ warned of. A queue that never had a message is not told.

    Raises:
        MissingTool: there is no Java, Maven or such a release.
    """
    with Brokers() as brokers:
        return Server(version, brokers).serve_all(root, settings)


class Brokers:
    """Processes by version, each kept for the next directory until it is dropped."""

    def __init__(self) -> None:
        self._kept: dict[str, Broker] = {}

    def __enter__(self) -> Brokers:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for version in list(self._kept):
            self.drop(version)

    def of(self, version: str) -> Broker:
        """The process of a version, started if there is none."""
        if version not in self._kept:
            self._kept[version] = Broker(version)
        return self._kept[version]

    def drop(self, version: str) -> None:
        """End a version's process with SIGKILL."""
        self._kept.pop(version).kill()


class Server:
    """``serve_all`` of many directories."""

    def __init__(self, version: str, brokers: Brokers) -> None:
        self.version = version
        self._brokers = brokers

    def serve_all(self, root: Path, settings: Settings | None = None) -> Row:
        """As the function of that name."""
        settings = settings_beside(root) if settings is None else settings
        with tempfile.TemporaryDirectory(prefix="rocketmq-serve-") as scratch:
            copy = copy_of(root, settings, Path(scratch))
            return self.serve_here(copy, settings)

    def served(self, root: Path, settings: Settings, scratch: Path) -> Row:
        """As ``serve_all``, without ``changes``: the store is shut down behind.

        An orderly end sleeps for seconds. The copy, in ``scratch``, is left there.
        """
        return self._served(copy_of(root, settings, scratch), settings, "leave")

    def serve_here(self, root: Path, settings: Settings) -> Row:
        """As ``serve_all``, on the directory itself, which RocketMQ recovers."""
        before = contents(root, settings)
        manifest = self._served(root, settings, "close")
        return manifest | {"changes": _changes(before, contents(root, settings))}

    def _served(self, root: Path, settings: Settings, end: str) -> Row:
        broker = self._brokers.of(self.version)
        told_before = len(broker.said)
        manifest: Row = {"version": self.version, "outcome": "served", "why": None}
        manifest |= {"log": None, "queues": []}
        clock = threading.Timer(SERVE_SECONDS_MAX, broker.shoot)
        clock.start()
        try:
            broker.take(root, settings)
            manifest |= _asked_for_all(broker, end)
        except BrokerEnded as ended:
            is_hung = not clock.is_alive()
            outcome = "hung" if is_hung else _outcome(str(ended))
            manifest |= {"outcome": outcome, "why": str(ended)}
            self._brokers.drop(self.version)
        finally:
            clock.cancel()
        said = broker.said[told_before:][:SAID_LINES_MAX]
        return manifest | {"said": said}


def copy_of(root: Path, settings: Settings, target: Path) -> Path:
    """Copy a store and what belongs to it next to it; the copy's root."""
    for name in (root.name, *settings.beside):
        source = root.parent / name
        if source.is_dir():
            _ran("cp", "-a", "--sparse=always", str(source), str(target / name))
    return target / root.name


def _outcome(why: str) -> str:
    if why.startswith("DefaultMessageStore.load refused"):
        return "refused"
    return "ended" if why.startswith("RocketMQ ended") else "failed"


def _asked_for_all(broker: Broker, end: str) -> Row:
    broker.open()
    for verb in ("drain", "serve", end):
        broker.tell(verb)
    told: Row = {"queues": []}
    while "closed" not in (row := broker.answer("serve")):
        if "log" in row:
            told["log"] = {name: row[name] for name in row if name != "log"}
        elif "topic" in row:
            told["queues"].append(row | {"messages": [], "gaps": []})
        elif "gap" in row:
            told["queues"][-1]["gaps"].append(row)
        elif "queue_offset" in row:
            told["queues"][-1]["messages"].append(row)
        else:
            told |= row
    told["queues"] = [one for one in told["queues"] if one["max"] > 0 or one["gaps"]]
    return told


def contents(root: Path, settings: Settings) -> dict[str, str]:
    """Digests of a store's files, by path relative to the directory that holds it."""
    return {
        path.relative_to(root.parent).as_posix(): _digest(path)
        for name in (root.name, *settings.beside)
        for path in sorted((root.parent / name).rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def _digest(path: Path) -> str:
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _changes(before: Mapping[str, str], after: Mapping[str, str]) -> Row:
    return {
        "added": sorted(after.keys() - before.keys()),
        "removed": sorted(before.keys() - after.keys()),
        "changed": sorted(p for p in before if p in after and before[p] != after[p]),
    }
