"""Make the small directories that episodes of ``adopted_stores`` begin with.

    python tests/corpus/found_stores.py --out DIR
    python tests/corpus/found_stores.py --pack scenarios/found --from DIR

As ``make_corpus.py``, with log files of 4 to 16 KiB, queue files of seven to forty
units and index files of twenty entries, so that an episode of some dozen puts rolls all
of them. The first writes ``DIR/<name>/``, and tells what the same version serves of a
copy; the second packs the files of each store, and nothing else.

Exit codes: 0 made; 1 a directory could not be written; 2 usage; 4 Java, Maven or the
released jars are missing.
"""

from __future__ import annotations

import argparse
import json
import sys
import tarfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from corpus_features import ODD_INNER, Feature
from corpus_work import COMMIT, PREPARED, ROLLBACK, NotAcknowledged, Work
from corpus_work import inner_message as inner
from make_corpus import add, make
from our_stores import write_with_our_engine
from rocketmq import BrokerEnded, Brokers, MissingTool, Settings

SIZES: Mapping[str, str] = {
    "mappedFileSizeCommitLog": "8192",
    "mappedFileSizeConsumeQueue": "200",
    "maxHashSlotNum": "8",
    "maxIndexNum": "20",
}
QUEUES = (("T0", 0), ("T0", 1), ("T0", 0), ("T1", 0), ("T0", 0), ("Té", 2), ("T.1", 0))
TAGS = ("", "TagA", "TagB", "已付款")
COUNT = 36
OURS = 12
"""Messages of our own in a store that RocketMQ goes on with."""


def put(work: Work, first: int, count: int, **also: str) -> None:
    """Messages of all kinds, with the numbers [first, first + count)."""
    for number in range(first, first + count):
        properties = dict(also)
        if tags := TAGS[number % 4]:
            properties["TAGS"] = tags
        if number % 3:
            properties["KEYS"] = f"key-{number % 5} K{number}"
        if number % 5 == 2:
            properties["UNIQ_KEY"] = f"7F000001{number:024X}"
        hosts: dict[str, Any] = {"born_host": "2001:db8::1"} if number % 7 == 3 else {}
        body = (b"%d;" % number * 60)[: number * 53 % 170]
        work.put(*QUEUES[number % len(QUEUES)], body, properties, **hosts)


def orderly(work: Work) -> None:
    with work.life():
        put(work, 0, COUNT)


def slowly(work: Work) -> None:
    """So that 5.5.1 notes in its checkpoint where it has come to dispatch."""
    with work.life() as broker:
        put(work, 0, 18)
        broker.tell("sleep", ms=2_500)
        put(work, 18, 18)


def killed(work: Work) -> None:
    with work.life("kill"):
        put(work, 0, COUNT)


def four_lives(work: Work) -> None:
    for number in range(4):
        with work.life("kill" if number in (1, 3) else "clean"):
            put(work, 9 * number, 9)


def nul(work: Work) -> None:
    """NULs in properties, one at the very end of a record."""
    with work.life():
        _nul(work)


def nul_killed(work: Work) -> None:
    with work.life("kill"):
        _nul(work)


def _nul(work: Work) -> None:
    for number in range(0, 24, 6):
        put(work, number, 5)
        odd = {"user": "a\0b"} if number % 12 else {"user": "\0" * 40, "end": "a\0"}
        work.put("T0", 0, b"nul %d" % number, odd)


def deleted(work: Work) -> None:
    with work.life() as broker:
        put(work, 0, COUNT)
        broker.tell("drain")
        broker.tell("forget", topic="T1")
        broker.tell("sleep", ms=1_000)


def expired(work: Work) -> None:
    with work.life() as broker:
        put(work, 0, 3 * COUNT)
        broker.tell("drain")
        broker.tell("expire", files=2)


def light(work: Work) -> None:
    names = ("%LMQ%a", "%LMQ%a,%LMQ%b.c", "")
    with work.life():
        for number in range(0, COUNT, 2):
            named = names[number // 2 % 3]
            put(work, number, 1, **{"INNER_MULTI_DISPATCH": named} if named else {})
            put(work, number + 1, 1)


def kinds(work: Work) -> None:
    """Transactions, delayed messages, batches, and properties that are no text."""
    flags = (PREPARED, COMMIT, ROLLBACK)
    with work.life():
        for number in range(12):
            flag = flags[number % 3]
            work.put("T0", number % 2, b"transaction %d" % number, {}, sys_flag=flag)
            work.delay("T0", 0, b"delayed %d" % number, 1 + number % 4)
            several = [inner(b"odd", ODD_INNER[number + n - 3]) for n in range(2)]
            work.put_batch("T1", 0, several)
        put(work, 0, 9)


def continued(work: Work) -> None:
    _ours(work, OURS)
    with work.life():
        put(work, OURS, 24)


def continued_killed(work: Work) -> None:
    _ours(work, OURS)
    with work.life("kill"):
        put(work, OURS, 24)


def continued_nul(work: Work) -> None:
    _ours(work, OURS)
    with work.life():
        _nul(work)


def ours_expired(work: Work) -> None:
    _ours(work, 3 * COUNT)
    with work.life() as broker:
        broker.tell("drain")
        broker.tell("expire", files=2)


def _ours(work: Work, count: int) -> None:
    work.acknowledged += write_with_our_engine(work.root, work.settings, count, 80)


def _store(
    name: str, version: str, write: Callable[[Work], None], **settings: str
) -> tuple[str, Feature]:
    return version, Feature(f"{version}-{name}", write, Settings({**SIZES, **settings}))


_CRC = {"enabledAppendPropCRC": "true", "forceVerifyPropCRC": "true"}
_LIGHT = {"enableLmq": "true", "enableMultiDispatch": "true"}

STORES = (
    _store("orderly", "4.9.8", orderly),
    _store("nul", "4.9.8", nul, mappedFileSizeConsumeQueue="800"),
    _store("four-lives", "4.9.8", four_lives),
    _store("killed", "5.3.0", killed, mappedFileSizeCommitLog="4096"),
    _store("nul-killed", "5.3.0", nul_killed),
    _store("deleted", "5.3.0", deleted),
    _store("expired", "5.3.0", expired),
    _store("crc", "5.3.0", orderly, mappedFileSizeConsumeQueue="140", **_CRC),
    _store("light", "5.3.0", light, **_LIGHT),
    _store("kinds", "5.3.0", kinds),
    _store("continued", "5.3.0", continued),
    _store("continued-nul", "5.3.0", continued_nul),
    _store("ours-expired", "5.3.0", ours_expired),
    _store("orderly", "5.5.1", slowly),
    _store("killed", "5.5.1", killed, mappedFileSizeCommitLog="16384"),
    _store("continued-killed", "5.5.1", continued_killed),
)


def make_all(out: Path) -> int:
    """Write what is not there yet; how many could not be written."""
    failed = 0
    with Brokers() as brokers:
        for version, feature in STORES:
            home = out / feature.name
            if home.is_dir():
                continue
            try:
                manifest = make(feature, version, home, brokers)
            except (BrokerEnded, NotAcknowledged, AssertionError) as error:
                failed += 1
                print(f"{home}: {error}", file=sys.stderr, flush=True)
                continue
            served = sum(len(queue["messages"]) for queue in manifest["queues"])
            print(f"{home}: {served} messages served", flush=True)
    return failed


def pack(source: Path, target: Path) -> None:
    """Pack each store: its files by path, sorted, with no trace of who packed it."""
    target.mkdir(parents=True, exist_ok=True)
    for _, feature in STORES:
        root = source / feature.name / "store"
        with tarfile.open(target / f"{feature.name}.tar.xz", "w:xz", preset=9) as tar:
            for path in sorted(root.rglob("*")):
                if path.is_file():
                    add(tar, path, path.relative_to(root))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Make the stores that are found.")
    parser.add_argument("--out", type=Path, help="where directories are made")
    parser.add_argument("--pack", type=Path, help="where archives go")
    parser.add_argument("--from", type=Path, dest="source", help="what --out has made")
    said = parser.parse_args(arguments)
    if said.pack is not None and said.source is not None:
        pack(said.source, said.pack)
        return 0
    if said.out is None:
        parser.error("give --out DIR, or --pack and --from")
    said.out.mkdir(parents=True, exist_ok=True)
    return 1 if make_all(said.out) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except MissingTool as error:
        print(json.dumps(str(error)), file=sys.stderr)
        sys.exit(4)
