"""The directories of the corpus, unpacked where a test may use them.

These are the committed ones, or those below ``$CRASHMQ_CORPUS``.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from corpus_features import FEATURES, Feature
from rocketmq import Row, Settings
from unpacking import unpacked

ARCHIVES = Path(__file__).parent / "archives"
ARCHIVES_SIZE_MAX = 3 * 1024 * 1024
BY_NAME = {feature.name: feature for feature in FEATURES}
COMMITTED = tuple(
    f"{version}-{feature.name}" for feature in FEATURES for version in feature.committed
)
"""``<version>-<feature>`` of each archive, feature by feature."""

EVERY = tuple(
    f"{version}-{feature.name}" for feature in FEATURES for version in feature.versions
)
"""The committed ones, and those that are made on demand alone."""

MADE = os.environ.get("CRASHMQ_CORPUS", "")
"""Where ``make_corpus.py --out`` has made directories; "": test the committed ones."""

_LOG_FOLDERS = (
    *("store/commitlog", "elsewhere/commitlog", "log-a", "log-b"),
    "store/dledger-n0/data",
)


@dataclass(frozen=True)
class Real:
    """One directory that RocketMQ wrote.

    Attributes:
        root: the store's.
        manifest: what the version that wrote it serves of a copy.
    """

    name: str
    home: Path
    settings: Settings
    manifest: Row

    @property
    def root(self) -> Path:
        return self.home / "store"

    @property
    def feature(self) -> Feature:
        return BY_NAME[self.manifest["feature"]]

    @property
    def version(self) -> str:
        version: str = self.manifest["version"]
        return version

    @property
    def served(self) -> Iterator[tuple[str, int, Row]]:
        """(topic, queue_id, message) of all that the manifest says is served."""
        for queue in self.manifest["queues"]:
            for message in queue["messages"]:
                yield queue["topic"], queue["queue_id"], message

    @property
    def of_the_log(self) -> Iterator[tuple[str, int, Row]]:
        """What is served from the log: a compacted topic has a log of its own."""
        return (row for row in self.served if row[0] != "compacted")

    def log_files(self) -> dict[int, bytes]:
        """The log's files by base offset, wherever they lie."""
        return {
            int(path.name): path.read_bytes()
            for folder in _LOG_FOLDERS
            for path in sorted((self.home / folder).glob("[0-9]" * 20))
            if path.is_file()
        }


def made(root: Path) -> tuple[str, ...]:
    """``<version>-<feature>`` of the directories that ``make_corpus.py`` has made."""
    paths = {f"{path.parents[1].name}-{path.parent.name}" for path in _manifests(root)}
    return tuple(name for name in EVERY if name in paths)


def _manifests(root: Path) -> Iterator[Path]:
    return root.glob("*/*/manifest.json")


TESTED = made(Path(MADE)) if MADE else COMMITTED


def feature_of(name: str) -> Feature:
    """The feature of ``<version>-<feature>``."""
    return BY_NAME[name.partition("-")[2]]


def real_store(name: str, target: Path, *, committed: bool = False) -> Real:
    """Unpack or copy ``<version>-<feature>`` below ``target``.

    ``committed``: its archive in any case; what a kill leaves differs by the making.
    """
    home = target / name
    if MADE and not committed:
        version, _, feature = name.partition("-")
        shutil.copytree(Path(MADE) / version / feature, home)
    else:
        unpacked(ARCHIVES / f"{name}.tar.xz", home)
    return real_store_at(name, home)


def real_store_at(name: str, home: Path) -> Real:
    """A directory that ``make_corpus.py`` made, or an unpacked one."""
    settings = Settings.of(json.loads((home / "settings.json").read_text("utf-8")))
    manifest = json.loads((home / "manifest.json").read_text("utf-8"))
    return Real(name, home, settings, manifest)


def place_row(topic: str, queue_id: int, message: Row) -> Row:
    """What must be the same of a message, whoever serves it."""
    names = ("queue_offset", "phy_offset", "size", "body_crc")
    place = {"topic": topic, "queue_id": queue_id}
    return place | {name: message[name] for name in names}
