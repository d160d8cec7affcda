"""Damages of an operator's life, and what is true of a store after each.

What is whole is told by the bytes: a message is whole if its record lies unchanged in
the log file of its place. No decoder of ours is asked.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple, TypeAlias

from corpus_store import Real
from rocketmq import Row

from crashmq.harness.fsck.counts import QueueCount

PAGE = 4096
Key: TypeAlias = tuple[str, int]
Damage: TypeAlias = Callable[[Path], None]


def log_paths(root: Path) -> list[Path]:
    found = sorted(root.glob("commitlog/" + "[0-9]" * 20))
    return [path for path in found if path.is_file()]


def written_paths(root: Path) -> list[Path]:
    """Without the file that RocketMQ creates ahead."""
    return [path for path in log_paths(root) if written(path)]


def queue_paths(root: Path) -> list[Path]:
    return sorted(root.glob("consumequeue/*/*/" + "[0-9]" * 20))


def change(path: Path, start: int, data: bytes) -> None:
    content = bytearray(path.read_bytes())
    content[start : start + len(data)] = data
    path.write_bytes(content)


def written(path: Path) -> int:
    return len(path.read_bytes().rstrip(b"\0"))


def page_of_zeros(root: Path) -> None:
    paths = written_paths(root)
    change(paths[len(paths) // 2], 4 * PAGE, bytes(PAGE))


def page_of_zeros_in_an_old_file(root: Path) -> None:
    change(log_paths(root)[0], 2 * PAGE, bytes(PAGE))


def page_of_garbage(root: Path) -> None:
    change(written_paths(root)[-2], 3 * PAGE, bytes(range(256)) * (PAGE // 256))


def tail_cut_to_zeros(root: Path) -> None:
    path = written_paths(root)[-1]
    end = written(path)
    change(path, end - 700, bytes(700))


def last_file_cut_short(root: Path) -> None:
    path = written_paths(root)[-1]
    path.write_bytes(path.read_bytes()[: written(path) // 2])


def topic_folder_gone(root: Path) -> None:
    shutil.rmtree(root / "consumequeue" / "payments")


def queue_folder_gone(root: Path) -> None:
    shutil.rmtree(root / "consumequeue" / "orders" / "1")


def all_queues_gone(root: Path) -> None:
    shutil.rmtree(root / "consumequeue")


def queue_files_swapped(root: Path) -> None:
    one, other, *_ = sorted((root / "consumequeue" / "orders").glob("*/0*"))
    first = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(first)


def queue_file_of_zeros(root: Path) -> None:
    path = queue_paths(root)[1]
    path.write_bytes(bytes(len(path.read_bytes())))


def queues_of_an_older_copy(root: Path) -> None:
    """As if queues were put back from a copy that is older than the log."""
    for path in queue_paths(root):
        units = written(path) // 20
        kept = 20 * (units // 2)
        change(path, kept, bytes(len(path.read_bytes()) - kept))


def checkpoint_gone(root: Path) -> None:
    (root / "checkpoint").unlink()


def checkpoint_of_zeros(root: Path) -> None:
    path = root / "checkpoint"
    path.write_bytes(bytes(len(path.read_bytes())))


def abort_turned(root: Path) -> None:
    path = root / "abort"
    path.unlink() if path.exists() else path.write_bytes(b"")


def index_torn(root: Path) -> None:
    path = sorted((root / "index").iterdir())[0]
    size = len(path.read_bytes())
    change(path, size // 2, bytes(size - size // 2))


def index_gone(root: Path) -> None:
    shutil.rmtree(root / "index")


def file_of_another_broker(root: Path) -> None:
    """A newer file's bytes under an older one's name, as copied by mistake."""
    paths = written_paths(root)
    paths[2].write_bytes(paths[-2].read_bytes())


def newest_file_under_an_older_name(root: Path) -> None:
    """That one no filler closes."""
    paths = written_paths(root)
    paths[2].write_bytes(paths[-1].read_bytes())


def file_missing(root: Path) -> None:
    log_paths(root)[3].unlink()


def first_file_missing(root: Path) -> None:
    log_paths(root)[0].unlink()


def last_file_missing(root: Path) -> None:
    written_paths(root)[-1].unlink()


def bit_of_a_body(root: Path) -> None:
    path = written_paths(root)[-1]
    at = written(path) - 300
    change(path, at, bytes([path.read_bytes()[at] ^ 1]))


def file_named_wrong(root: Path) -> None:
    path = log_paths(root)[2]
    path.rename(path.with_name(f"{int(path.name) + 1:020d}"))


def empty_file_behind(root: Path) -> None:
    path = log_paths(root)[-1]
    size = len(path.read_bytes())
    path.with_name(f"{int(path.name) + size:020d}").write_bytes(b"")


def nothing(root: Path) -> None:
    assert root.is_dir()


DAMAGES: tuple[Damage, ...] = (
    *(nothing, page_of_zeros, page_of_zeros_in_an_old_file, page_of_garbage),
    *(tail_cut_to_zeros, last_file_cut_short, topic_folder_gone, queue_folder_gone),
    *(all_queues_gone, queue_files_swapped, queue_file_of_zeros),
    *(queues_of_an_older_copy, checkpoint_gone, checkpoint_of_zeros, abort_turned),
    *(index_torn, index_gone, file_of_another_broker, file_missing),
    newest_file_under_an_older_name,
    *(first_file_missing, last_file_missing, bit_of_a_body, file_named_wrong),
    empty_file_behind,
)


class Truth(NamedTuple):
    """By queue the phy_offsets of messages that are whole, and of those that are not.

    After a crash nobody can tell that there were messages behind the last whole one.
    """

    whole: dict[Key, set[int]]
    lost: dict[Key, set[int]]
    ended: bool

    def damaged(self, key: Key) -> int:
        """How many messages of a queue are known to have been there, and are lost."""
        last = max([max(of) for of in self.whole.values() if of], default=-1)
        return sum(self.ended or at < last for at in self.lost[key])

    @property
    def table(self) -> dict[Key, tuple[int, int]]:
        """How many messages of each queue are whole, and how many damaged."""
        counts = {key: (len(self.whole[key]), self.damaged(key)) for key in self.whole}
        return {key: count for key, count in counts.items() if any(count)}


def truth_of(real: Real, damaged: Path) -> Truth:
    """What is left of what the manifest has, by the bytes alone."""
    size = int(real.settings.store["mappedFileSizeCommitLog"])
    misnamed = [p for p in damaged.glob("commitlog/*") if p.name.isdecimal()]
    every = sorted({*misnamed, *log_paths(damaged)}, key=lambda path: len(path.name))
    now = {int(p.name): p.read_bytes() for p in every if p.is_file()}
    before = real.log_files()
    truth = Truth({}, {}, ended=not (damaged / "abort").exists())
    for topic, queue_id, message in real.served:
        base = message["phy_offset"] // size * size
        start = message["phy_offset"] - base
        part = slice(start, start + message["size"])
        is_whole = now.get(base, b"")[part] == before[base][part]
        of = (truth.whole, truth.lost) if is_whole else (truth.lost, truth.whole)
        of[0].setdefault((topic, queue_id), set()).add(message["phy_offset"])
        of[1].setdefault((topic, queue_id), set())
    return truth


def served_whole(real: Real, manifest: Row, truth: Truth) -> Counter[Key]:
    """How many whole messages each queue of a manifest serves, in their places."""
    known = {
        (topic, queue_id, row["queue_offset"]): (row["phy_offset"], row["body_crc"])
        for topic, queue_id, row in real.served
    }
    found: Counter[Key] = Counter()
    for queue in manifest["queues"]:
        key = queue["topic"], queue["queue_id"]
        for row in queue["messages"]:
            place = (row.get("phy_offset", -1), row.get("body_crc"))
            is_known = known.get((*key, row["queue_offset"])) == place
            found[key] += is_known and place[0] in truth.whole.get(key, ())
    return found


def misforetold(
    manifest: Row, truth: Truth, real: Real, queues: Iterable[QueueCount]
) -> dict[Key, tuple[int, int]]:
    """The queues of which RocketMQ lost others than foretold: (foretold, lost)."""
    told = {(queue.topic, queue.queue_id): queue.lost_by_rocketmq for queue in queues}
    served = served_whole(real, manifest, truth)
    lost = {key: len(of) - served[key] for key, of in truth.whole.items()}
    return {
        key: (told.get(key, 0), count)
        for key, count in lost.items()
        if told.get(key, 0) != count
    }


def taken_for_no_damage(damage: Damage, *, ended: bool) -> str:
    """Why a damage cannot be told from what RocketMQ itself does; "" if it can."""
    if damage is first_file_missing:
        return "the log's first files expire"
    if damage is topic_folder_gone and ended:
        return "a deleted topic leaves its records and no folder"
    return ""
