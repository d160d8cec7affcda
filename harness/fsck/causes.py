"""What made a store what it is: breaches grouped by a cause that an operator knows.

One page of zeros breaks a record, its queue's numbers and a dozen laws; somebody who
copied a queue's folder over another breaks thousands of units. Each breach is given to
one cause, by the file it is in and by what that file holds, and each cause has its
advice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Protocol, TypeAlias

from crashmq.models.files.log import LogFile, LogStop, QueueKey, first_nonzero
from crashmq.models.files.queue import QueueFile, QueueImage
from crashmq.models.files.record import as_listed
from crashmq.models.files.store_image import StoreImage

_PAGE: Final = 4096
_SECTOR: Final = 512
_SHOWN_FILES: Final = 3
_MOST: Final = 0.5
_YEAR_2200_MS: Final = 7_258_118_400_000
_NAMED: Final[Mapping[str, str]] = {
    "config/": "a config file is not whole",
    "deletedTopics": "the record of deleted topics is damaged",
    "consumequeue_ext/": "files beside queues are damaged",
    "consumequeue/": "units of a queue are wrong or missing",
    "index/": "the index is damaged",
    "index": "the index is damaged",
    "checkpoint": "the checkpoint is damaged",
    "commitlog": "records of the log are damaged",
    "config": "something stands where no store has it",
}
_OF_CONFIG: Final[Mapping[str, str]] = {
    "CFG-2": "groups have offsets past the end of a queue",
    "CFG-3": "filters are of another topic or group",
    "CFG-4": "filters are of another table",
}
_OF_WHOLE_RECORDS: Final[Mapping[str, str]] = {
    "CL-4": "whole records are stored in another order than their times",
    "CL-5": "fields of whole records are out of their range",
}
UNPACK: Final = "unpack"
REBUILD: Final = "rebuild"
SALVAGE: Final = "salvage"
RESTORE: Final = "restore"
RENAME: Final = "rename"
KEEP: Final = "keep"
REPORT: Final = "report"


class Breach(Protocol):
    """What a law found, as far as its cause is asked."""

    @property
    def law(self) -> str: ...  # noqa: D102
    @property
    def path(self) -> str: ...  # noqa: D102
    @property
    def byte(self) -> int | None: ...  # noqa: D102
    @property
    def seen(self) -> str: ...  # noqa: D102
    @property
    def expected(self) -> str: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class Cause:
    """One cause: its name, the files it shows in, how often, and how it is mended.

    ``remedy`` is ``unpack`` (a file beside it may be the missing one), ``rebuild``
    (queues, index or checkpoint from the log), ``salvage`` (the log itself is damaged),
    ``rename`` (a name has not its 20 digits), ``restore`` (a file must come from
    elsewhere), ``keep`` (whole messages are odd, and are served as they are) or
    ``report`` (a law of crashmq failed).
    """

    name: str
    remedy: str
    paths: tuple[str, ...]
    breaches: int
    laws: tuple[str, ...]

    def __str__(self) -> str:
        shown = ", ".join(self.paths[:_SHOWN_FILES])
        left = len(self.paths) - _SHOWN_FILES
        more = f" and {left:,} files more" if left > 0 else ""
        times = f"{self.breaches:,} breach{'' if self.breaches == 1 else 'es'}"
        return f"{self.name}: {shown}{more} ({times} of {', '.join(self.laws)})"


Named: TypeAlias = tuple[str, str]


def causes_of(image: StoreImage, breaches: Sequence[Breach]) -> tuple[Cause, ...]:
    """Each breach under one cause; the causes that lose data come first."""
    if not breaches:
        return ()
    files = {**_causes_of_queue_files(image), **_causes_of_log_files(image)}
    lost = _lost_folders(image)
    stop = image.commit_log.stop.path if image.commit_log.breaks else ""
    grouped: dict[Named, list[Breach]] = {}
    for breach in breaches:
        # Units of records that a damaged log has lost are no damage of their own.
        is_of_log = breach.law in ("CQ-3", "CP-2", "CP-5") and stop in files
        name = files[stop] if is_of_log else _named(breach, files, lost, image)
        grouped.setdefault(name, []).append(breach)
    order = (UNPACK, SALVAGE, RENAME, RESTORE, REBUILD, KEEP, REPORT)
    found = [
        Cause(
            name,
            remedy,
            tuple(dict.fromkeys(one.path for one in of)),
            len(of),
            tuple(dict.fromkeys(one.law for one in of)),
        )
        for (name, remedy), of in grouped.items()
    ]
    return tuple(sorted(found, key=lambda cause: order.index(cause.remedy)))


def _named(
    breach: Breach,
    files: Mapping[str, Named],
    lost: Mapping[QueueKey, str],
    image: StoreImage,
) -> Named:
    if breach.seen.startswith("this law failed"):
        return "crashmq could not judge", REPORT
    if breach.path in files:
        return files[breach.path]
    parts = breach.path.split("/")
    if parts[0] == "consumequeue" and len(parts) > 2 and parts[2].isdecimal():
        key = parts[1], int(parts[2])
        if key in lost:
            return lost[key], REBUILD
    if breach.law in _OF_CONFIG:
        return _OF_CONFIG[breach.law], RESTORE
    if breach.law in _OF_WHOLE_RECORDS:
        return _OF_WHOLE_RECORDS[breach.law], KEEP
    if breach.law == "CL-2" or breach.law == "CQ-5":
        return _of_a_name(breach, image)
    if breach.law == "CL-1" and "the checkpoint's" in breach.expected:
        of_stop = [f for f in image.commit_log.files if f.path == breach.path]
        if of_stop and first_nonzero(of_stop[0].data, 0) == len(of_stop[0].data):
            return "a log file of zeros", SALVAGE
        newest = max(image.checkpoint[:3])
        if newest > _YEAR_2200_MS:
            return "the checkpoint is damaged", REBUILD
        return "the log's tail is gone, or the checkpoint is of another store", SALVAGE
    for start, name in _NAMED.items():
        if breach.path.startswith(start):
            is_log = start == "commitlog"
            remedy = RESTORE if start in ("config/", "deletedTopics") else REBUILD
            return name, SALVAGE if is_log else remedy
    return "something stands where no store has it", RESTORE


def _of_a_name(breach: Breach, image: StoreImage) -> Named:
    is_log = breach.law == "CL-2"
    remedy = SALVAGE if is_log else REBUILD
    what = "log" if is_log else "queue"
    if "follows" in breach.seen:
        return f"a {what} file is missing", remedy
    if breach.seen.endswith("bytes"):
        return f"a {what} file is too short or too long", remedy
    queued = [file.path for queue in image.consume_queues for file in queue.files]
    if breach.path in (*queued, *[file.path for file in image.commit_log.files]):
        return f"a {what} file's name has too few digits, or too many", RENAME
    return f"a file has the name of no {what} file", RESTORE


def _lost_folders(image: StoreImage) -> dict[QueueKey, str]:
    """Queues that have records and no file."""
    topics = {queue.topic for queue in image.consume_queues}
    found = {}
    for key in image.commit_log.indexed_records:
        if key not in image.queue_at:
            is_whole = key[0] not in topics
            found[key] = f"a {'topic' if is_whole else 'queue'}'s folder is gone"
    if found and not image.consume_queues:
        return dict.fromkeys(found, "all queues are gone")
    return found


def _causes_of_queue_files(image: StoreImage) -> dict[str, Named]:
    """Queue files whose units are another queue's, or another broker's."""
    owners = {
        file.path: (queue.key, owner)
        for queue, _ in image.suspect_queues
        for file in queue.files
        if (owner := _owner_of(file, queue, image)) is not None
    }
    found: dict[str, Named] = {}
    for path, (key, owner) in owners.items():
        if owner == "stranger":
            found[path] = "a queue file of another broker", REBUILD
        elif owner == key:
            if sum(of == owner for _, of in owners.values()) > 1:
                found[path] = "queue files of one queue exchanged", REBUILD
        elif any(of == owner and by == key for of, by in owners.values()):
            found[path] = "queue files exchanged", REBUILD
        else:
            found[path] = "a queue file of another queue", REBUILD
    return found


def _owner_of(
    file: QueueFile, queue: QueueImage, image: StoreImage
) -> QueueKey | str | None:
    """Whose units most of a file's are, if not its queue's own; None: its own."""
    log, key = image.commit_log, queue.key
    asked = queue.count(file.units) - len(file.units)
    owners: Counter[QueueKey | str] = Counter({key: asked} if asked else {})
    moved = 0
    for unit in file.units:
        if unit.is_pre_blank or unit.phy_offset < log.min_phy_offset:
            continue
        asked += 1
        record = log.record_at.get(unit.phy_offset)
        if record is None or record.size != unit.size:
            owners["stranger"] += 1
            continue
        listed = as_listed(record, key[0])
        owner = listed.topic, listed.queue_id
        owners[owner] += 1
        moved += owner == key and listed.queue_offset != unit.queue_offset
    if not asked:
        return None
    owner_most, count = owners.most_common(1)[0]
    if owner_most == key:
        return key if moved > _MOST * asked else None
    if owner_most == "stranger":
        # Units past the end of a log that lost its tail are its own.
        inside = [u.phy_offset < log.max_phy_offset for u in file.units]
        left_out = queue.count(file.units) - len(file.units)
        if (sum(inside) + left_out) * 2 < asked or log.breaks:
            return None
    return owner_most if count > _MOST * asked else None


def _causes_of_log_files(image: StoreImage) -> dict[str, Named]:
    """Log files with pages of zeros, of another name, of another broker, or gone."""
    log = image.commit_log
    found: dict[str, Named] = {}
    for before, after in pairwise(log.files):
        if log.file_size and after.base != before.base + log.file_size:
            missing = f"commitlog/{before.base + log.file_size:020d}"
            found[missing] = "a log file is missing", SALVAGE
            for beside in [path for path in log.odd_paths if path.startswith(missing)]:
                found[missing] = found[beside] = "a log file is missing", UNPACK
    files = {file.path: file for file in log.files}
    for file in log.files:
        if len(file.data) != log.file_size and (file.data or not image.abort):
            found[file.path] = "a log file is too short or too long", SALVAGE
    for stop in log.breaks:
        if stop.path in files and stop.path not in found:
            found[stop.path] = _cause_of_break(stop, files[stop.path], image), SALVAGE
    for path in _files_of_others(log.files):
        found[path] = "a log file of another broker", SALVAGE
    return found


def _cause_of_break(stop: LogStop, file: LogFile, image: StoreImage) -> str:
    log = image.commit_log
    if stop.kind == "phy_offset" and stop.position == 0:
        carried = int(stop.seen.rpartition(" ")[2])
        bases = {one.base for one in log.files}
        return (
            "log files exchanged or renamed"
            if carried in bases
            else "a log file of another broker, or of another place"
        )
    if not file.data:
        return "a log file is too short or too long"
    if stop.position == 0 and first_nonzero(file.data, 0) == len(file.data):
        return "a log file of zeros"
    own = range(file.base, file.base + len(file.data))
    if stop.position == 0 and not any(r.phy_offset in own for r in log.records_beyond):
        return "a log file that holds no message, packed or of something else"
    behind = [r.phy_offset for r in log.records_beyond]
    later = [at - file.base for at in behind if stop.phy_offset < at]
    end = min([at for at in later if at <= len(file.data)], default=len(file.data))
    return _zeros_in(file, stop.position, end) or "bytes of a record were changed"


def _zeros_in(file: LogFile, start: int, end: int) -> str:
    """What is zero between two bytes of a file: whole pages, whole sectors, a tail."""
    end = min(end, start + (1 << 20))
    part = bytes(file.data[start:end])
    if end == len(file.data) and not part[-_PAGE:].strip(b"\0"):
        return "the log's tail is cut off or zeroed"
    for size, name in ((_PAGE, "page"), (_SECTOR, "sector")):
        first = -start % size
        whole = [
            at
            for at in range(first, len(part) - size + 1, size)
            if not part[at : at + size].strip(b"\0")
        ]
        if whole:
            return f"a {name} of zeros" if len(whole) == 1 else f"{name}s of zeros"
    return ""


def _files_of_others(files: Iterable[LogFile]) -> Iterator[str]:
    """Files all of whose records another host stored than nearly all of the others."""
    hosts = {
        file.path: {record.store_host for record in file.records}
        for file in files
        if file.records
    }
    if len(hosts) < 3:
        return
    counted = Counter(host for of in hosts.values() for host in of)
    usual, count = counted.most_common(1)[0]
    strangers = [path for path, of in hosts.items() if usual not in of]
    if count >= len(hosts) - 1 and len(strangers) == 1:
        yield strangers[0]
