"""Directories of the field that ``stranger_directories`` lacks.

Replicas, newer brokers' folders, names of other character sets, half-made copies: as
``operator_directories``, and judged in the same way.
"""

from __future__ import annotations

import os
import shutil
import struct
from pathlib import Path

from operator_damages import change, log_paths, queue_paths, written
from operator_directories import OTHERS_NAME, Directory, put, topics_text

UNIT = struct.Struct(">qiq")
PRE_BLANK = UNIT.pack(0, 0x7FFFFFFF, 0)
GBK = os.fsdecode("订单".encode("gbk"))


def names_of_another_charset(root: Path) -> None:
    """A shell that spoke GBK left notes, and a table's copy."""
    put(root / GBK)
    put(root / "config" / f"topics.json.{GBK}")
    put(root / "consumequeue" / GBK)


def a_topic_of_another_charset(root: Path) -> None:
    """A queue's folder copied beside it under a name that is no UTF-8."""
    shutil.copytree(root / "consumequeue/orders", root / "consumequeue" / GBK)


def an_index_file_of_another_charset(root: Path) -> None:
    put(root / "index" / f"20260101{GBK}")


def a_log_file_of_another_charset(root: Path) -> None:
    shutil.copy(log_paths(root)[0], root / "commitlog" / f"{GBK}.bak")


def queues_in_rocksdb_too(root: Path) -> None:
    """``rocksdbCQDoubleWriteEnable``: the queues lie in files and in RocksDB."""
    put(root / "consumequeue_r/CURRENT", b"MANIFEST-000005\n")
    put(root / "consumequeue_r/MANIFEST-000005", b"\1" * 99)
    put(root / "consumequeue_r/000008.sst", b"\1" * 99)


def folders_of_a_newer_broker(root: Path) -> None:
    """Stores of pops, of timers and of transactions in RocksDB, of 5.4 and 5.5."""
    for name in ("kvStore", "timerRocksDB", "transRocksDB", "indexRocksDB"):
        put(root / name / "CURRENT", b"MANIFEST-000005\n")
        put(root / name / "LOCK", b"")
        put(root / name / "000004.log", b"\1" * 99)
    put(root / "rocksdbstore/timer/CURRENT", b"MANIFEST-000005\n")


def files_of_timers_gone_half(root: Path) -> None:
    """Snapshots of the wheel that its owner names after a flushed place."""
    put(root / "timerwheel.4096", bytes(4096))
    put(root / "timerwheel.8192.tmp", b"")
    put(root / "timerlog/00000000000000000000", b"")
    put(root / "config/timercheck", bytes(100))
    put(root / "config/timermetrics", b"{}")


def folders_of_compaction_empty(root: Path) -> None:
    put(root / "compaction/position-checkpoint", b"{}")
    (root / "compaction/compactionLog/orders/0/compacting").mkdir(parents=True)
    (root / "compaction/compactionCq/orders").mkdir(parents=True)


def a_late_replica(root: Path) -> None:
    """A replica that joined late: its queues begin with placeholders."""
    first = log_paths(root)[0]
    end = int(log_paths(root)[1].name)
    first.unlink()
    for path in queue_paths(root):
        data = bytearray(path.read_bytes())
        for at in range(0, len(data) - 19, 20):
            phy_offset, size, _ = UNIT.unpack_from(data, at)
            if size > 0 and phy_offset < end:
                data[at : at + 20] = PRE_BLANK
        path.write_bytes(data)
    shutil.rmtree(root / "index", ignore_errors=True)


def a_checkpoint_of_a_replica(root: Path) -> None:
    """The master's flushed place is ahead of what the replica has."""
    change(root / "checkpoint", 24, (1 << 40).to_bytes(8, "big"))


def a_checkpoint_of_its_fields_alone(root: Path) -> None:
    """Copied by something that left the zeros out."""
    os.truncate(root / "checkpoint", 48)


def a_checkpoint_longer(root: Path) -> None:
    os.truncate(root / "checkpoint", 1 << 20)


def tables_as_backups_alone(root: Path) -> None:
    put(root / "config/topics.json.bak", topics_text(root))
    put(root / "config/consumerOffset.json.bak", b'{"offsetTable":{"orders@g":{0:3}}}')


def tables_with_line_ends_of_windows(root: Path) -> None:
    text = topics_text(root).replace(b",", b",\r\n").replace(b"{", b"{\r\n\t")
    put(root / "config/topics.json", text)
    put(
        root / "config/consumerOffset.json",
        b'{\r\n\t"offsetTable":{\r\n\t\t"orders@g":{0:3,1:2\r\n\t\t}\r\n\t}\r\n}\r\n',
    )


def lock_is_a_folder(root: Path) -> None:
    (root / "lock").unlink(missing_ok=True)
    (root / "lock").mkdir()


def lock_is_a_link(root: Path) -> None:
    """The lock on a disk of this machine, the store on a shared one."""
    (root / "lock").unlink(missing_ok=True)
    put(root.parent / "lock-of-it", b"lock")
    (root / "lock").symlink_to(root.parent / "lock-of-it")


def lock_has_a_pid(root: Path) -> None:
    put(root / "lock", b"31337\n")


def abort_is_a_link(root: Path) -> None:
    (root / "abort").symlink_to("nowhere")


def log_within_by_a_link(root: Path) -> None:
    """The log moved to a folder of the store, and a link in its place."""
    (root / "commitlog").rename(root / "commitlog-2026")
    (root / "commitlog").symlink_to("commitlog-2026")


def a_log_file_a_byte_short(root: Path) -> None:
    path = log_paths(root)[1]
    os.truncate(path, path.stat().st_size - 1)


def last_log_file_a_byte_short(root: Path) -> None:
    path = log_paths(root)[-1]
    os.truncate(path, path.stat().st_size - 1)


def last_log_file_a_byte_long(root: Path) -> None:
    path = log_paths(root)[-1]
    os.truncate(path, path.stat().st_size + 1)


def next_log_file_empty(root: Path) -> None:
    last = log_paths(root)[-1]
    put(last.with_name(f"{int(last.name) + last.stat().st_size:020d}"), b"")


def next_log_file_of_a_byte(root: Path) -> None:
    last = log_paths(root)[-1]
    put(last.with_name(f"{int(last.name) + last.stat().st_size:020d}"), b"\0")


def next_queue_file_empty(root: Path) -> None:
    last = queue_paths(root)[-1]
    put(last.with_name(f"{int(last.name) + last.stat().st_size:020d}"), b"")


def next_index_file_empty(root: Path) -> None:
    put(root / "index/20991231235959999", b"")


def a_queue_of_the_highest_number(root: Path) -> None:
    """Nothing was put there: a file of zeros alone."""
    size = queue_paths(root)[0].stat().st_size
    put(root / f"consumequeue/orders/2147483647/{0:020d}", bytes(size))


def a_queue_below_zero(root: Path) -> None:
    """Java takes the name for a number, and the file has the size of the others."""
    size = queue_paths(root)[0].stat().st_size
    put(root / f"consumequeue/orders/-1/{0:020d}", bytes(size))


def a_queue_that_is_no_number(root: Path) -> None:
    shutil.copytree(
        root / "consumequeue/orders/0", root / "consumequeue/orders/0.rsync"
    )


def names_while_it_was_copied(root: Path) -> None:
    """rsync writes under a hidden name first; one of each kind was left."""
    for path in (log_paths(root)[0], queue_paths(root)[0], root / "checkpoint"):
        shutil.copy(path, path.with_name(f".{path.name}.Xa3dF9"))


def last_log_file_still_being_copied(root: Path) -> None:
    last = log_paths(root)[-1]
    last.rename(last.with_name(f".{last.name}.Xa3dF9"))


def files_of_a_bin(root: Path) -> None:
    put(root / ".Trash-1000/info/x.trashinfo", b"x")
    shutil.copytree(root / "commitlog", root / ".Trash-1000/files/commitlog")
    put(root / ".fuse_hidden0000001", b"x")
    put(root / ".nfs000000000000001", b"x")


def a_store_within(root: Path) -> None:
    """Of a broker container, with a second broker's store in a folder of the first."""
    shutil.copytree(root, root.parent / "twin")
    (root.parent / "twin").rename(root / "broker-b")


def end_of_the_last_file_written_ahead(root: Path) -> None:
    """Zeros to the very end, written and not left as a hole."""
    path = log_paths(root)[-1]
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(data)


def tail_of_ones(root: Path) -> None:
    """A disk that gives ones for what was never written."""
    path = log_paths(root)[-1]
    end, size = written(path), path.stat().st_size
    change(path, end, b"\xff" * (size - end))


def units_of_ones(root: Path) -> None:
    path = queue_paths(root)[0]
    end, size = written(path), path.stat().st_size
    end += -end % 20
    change(path, end, b"\xff" * (size - end))


STRANGE = "something stands where no store has it"
NONE_LOST = "DAMAGED: 0 messages unreadable, 160 whole"
LENGTH = "a log file is too short or too long"
CHECKPOINT = "the checkpoint is damaged"
FIELD: tuple[Directory, ...] = (
    Directory(names_of_another_charset),
    Directory(
        a_topic_of_another_charset,
        says=NONE_LOST,
        cause="a queue file of another queue",
        does="refuses",
    ),
    Directory(an_index_file_of_another_charset),
    Directory(a_log_file_of_another_charset, says=NONE_LOST, cause=OTHERS_NAME),
    Directory(queues_in_rocksdb_too),
    Directory(folders_of_a_newer_broker),
    Directory(files_of_timers_gone_half),
    Directory(folders_of_compaction_empty),
    Directory(a_late_replica, is_told=False),
    Directory(a_checkpoint_of_a_replica),
    Directory(a_checkpoint_of_its_fields_alone, says=NONE_LOST, cause=CHECKPOINT),
    Directory(a_checkpoint_longer, says=NONE_LOST, cause=CHECKPOINT),
    Directory(tables_as_backups_alone),
    Directory(tables_with_line_ends_of_windows),
    Directory(lock_is_a_folder, says=NONE_LOST, cause=STRANGE, does="refuses"),
    Directory(lock_is_a_link),
    Directory(lock_has_a_pid),
    Directory(abort_is_a_link, says=NONE_LOST, cause=STRANGE),
    Directory(log_within_by_a_link),
    Directory(a_log_file_a_byte_short, says=NONE_LOST, cause=LENGTH, does="refuses"),
    Directory(last_log_file_a_byte_short, says=NONE_LOST, cause=LENGTH, does="refuses"),
    Directory(last_log_file_a_byte_long, says=NONE_LOST, cause=LENGTH, does="refuses"),
    Directory(next_log_file_empty, says=NONE_LOST, cause=LENGTH),
    Directory(next_log_file_of_a_byte, says=NONE_LOST, cause=LENGTH, does="refuses"),
    Directory(
        next_queue_file_empty,
        says=NONE_LOST,
        cause="a queue file is too short or too long",
        anew=("consumequeue",),
    ),
    Directory(next_index_file_empty, says=NONE_LOST, cause="the index is damaged"),
    Directory(a_queue_of_the_highest_number, anew=("consumequeue",)),
    Directory(a_queue_below_zero),
    Directory(a_queue_that_is_no_number),
    Directory(names_while_it_was_copied, says=NONE_LOST, cause=OTHERS_NAME),
    Directory(
        last_log_file_still_being_copied,
        says="DAMAGED: 11 messages unreadable, 149 whole",
        cause="the log's tail is gone, or the checkpoint is of another store",
        does="refuses",
    ),
    Directory(files_of_a_bin),
    Directory(a_store_within),
    Directory(end_of_the_last_file_written_ahead),
    Directory(tail_of_ones, does="refuses"),
    Directory(
        units_of_ones,
        says=NONE_LOST,
        cause="units of a queue are wrong or missing",
        anew=("consumequeue",),
    ),
)
