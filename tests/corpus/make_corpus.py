"""Make the corpus: store directories of every feature, by every version of RocketMQ.

    python tests/corpus/make_corpus.py --out DIR [--versions V ...] [--features F ...]
    python tests/corpus/make_corpus.py --pack tests/corpus/archives --from DIR

The first writes ``DIR/<version>/<feature>/`` with ``store/`` (and what belongs to it
beside), ``settings.json`` and ``manifest.json``: what the same version serves of a
copy, and what it had acknowledged. A directory that is there already is kept. The
second packs those that ``corpus_features.py`` says are committed.

Exit codes: 0 made; 1 a directory could not be written; 2 usage; 4 Java, Maven or the
released jars are missing.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path

from corpus_features import FEATURES, Feature
from corpus_work import NotAcknowledged, Work
from rocketmq import VERSIONS, BrokerEnded, Brokers, MissingTool, Row, Server
from serve_rocketmq import manifest_text, summary

BY_NAME = {feature.name: feature for feature in FEATURES}
_PARTS = ("settings.json", "manifest.json")


def make(feature: Feature, version: str, home: Path, brokers: Brokers) -> Row:
    """Write one directory and its manifest; the manifest."""
    scratch = home.parent / f"{home.name}.part"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    work = Work(version, scratch, feature.settings, brokers)
    feature.write(work)
    told = {"version": version, "feature": feature.name}
    settings = json.dumps(told | feature.settings.to_json(), indent=1)
    (scratch / "settings.json").write_text(settings + "\n", "utf-8")
    manifest: Row = {"feature": feature.name}
    manifest |= Server(version, brokers).serve_all(work.root, feature.settings)
    manifest["acknowledged"] = work.acknowledged
    (scratch / "manifest.json").write_text(manifest_text(manifest), "utf-8")
    scratch.rename(home)
    return manifest


def make_all(out: Path, versions: Sequence[str], features: Sequence[Feature]) -> int:
    """Write what is not there yet; how many could not be written."""
    failed = 0
    for version in versions:
        with Brokers() as brokers:
            for feature in features:
                home = out / version / feature.name
                if version not in feature.versions or home.is_dir():
                    continue
                try:
                    manifest = make(feature, version, home, brokers)
                except (BrokerEnded, NotAcknowledged, AssertionError) as error:
                    failed += 1
                    print(f"{home}: {error}", file=sys.stderr, flush=True)
                    continue
                acknowledged = len(manifest["acknowledged"])
                said = f"{acknowledged} acknowledged; {summary(manifest)}"
                print(f"{home}: {said}", flush=True)
    return failed


def archive_name(feature: Feature, version: str) -> str:
    return f"{version}-{feature.name}.tar.xz"


def pack(source: Path, target: Path) -> int:
    """Pack what is committed; how many bytes all archives take."""
    target.mkdir(parents=True, exist_ok=True)
    size = 0
    for feature in FEATURES:
        for version in feature.committed:
            archive = target / archive_name(feature, version)
            pack_one(source / version / feature.name, feature, archive)
            size += archive.stat().st_size
    return size


def pack_one(home: Path, feature: Feature, archive: Path) -> None:
    """Pack one directory with sorted names and no trace of who packed it, or when."""
    sources = [home / name for name in ("store", *feature.settings.beside, *_PARTS)]
    with tarfile.open(archive, "w:xz", format=tarfile.PAX_FORMAT, preset=9) as tar:
        for source in sources:
            for path in sorted([source, *source.rglob("*")]):
                if path.exists():
                    add(tar, path, path.relative_to(home))


def add(tar: tarfile.TarFile, path: Path, name: Path) -> None:
    """Add a file or directory without its owner and time."""
    entry = tarfile.TarInfo(name.as_posix())
    if path.is_dir():
        entry.type, entry.mode = tarfile.DIRTYPE, 0o755
        tar.addfile(entry)
    else:
        entry.size, entry.mode = path.stat().st_size, 0o644
        with path.open("rb") as content:
            tar.addfile(entry, content)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Make the corpus of real stores.")
    parser.add_argument("--out", type=Path, help="where directories are made")
    parser.add_argument("--versions", nargs="*", default=list(VERSIONS))
    parser.add_argument("--features", nargs="*", default=sorted(BY_NAME))
    parser.add_argument("--pack", type=Path, help="where archives go")
    parser.add_argument("--from", type=Path, dest="source", help="what --out has made")
    said = parser.parse_args(arguments)
    for name in said.features:
        if name not in BY_NAME:
            parser.error(f"no feature {name}; there are {', '.join(BY_NAME)}")
    if said.pack is not None:
        if said.source is None:
            parser.error("--pack needs --from DIR")
        print(f"{pack(said.source, said.pack):,} bytes in {said.pack}")
        return 0
    if said.out is None:
        parser.error("give --out DIR, or --pack and --from")
    wanted = [feature for feature in FEATURES if feature.name in said.features]
    return 1 if make_all(said.out, said.versions, wanted) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except MissingTool as error:
        print(f"make_corpus.py: {error}", file=sys.stderr)
        sys.exit(4)
