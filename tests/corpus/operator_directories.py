"""Directories as operators leave them: stores of the corpus, healthy or damaged.

``DIRECTORIES`` says of each how ``fsck`` begins, what it calls the cause, and what a
start of our engine without ``adopt`` does. ``fsck``'s forecast of the rest is compared
with RocketMQ itself.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from corpus_store import real_store
from operator_damages import log_paths, queue_paths, written, written_paths

Make: TypeAlias = Callable[[Path], None]
Does: TypeAlias = Literal["serves", "refuses"]
PLAIN = "5.3.0-plain"
KILLED = "5.3.0-plain-killed"
OTHER = "5.3.0-sync"
"""A store of other sizes of messages: another broker's."""


class Directory(NamedTuple):
    """One directory, and what is true of it.

    Attributes:
        make: what an operator did to a store.
        of: that store.
        says: how the first line of ``fsck`` begins.
        cause: the first one that it names; "": none.
        does: what a start of our engine without ``adopt`` does.
        anew: folders whose files our engine may make again; what it serves is judged.
        is_alone: all that belongs to it lies below its root.
        is_told: what is damaged can be told; else it looks as if it had expired.
    """

    make: Make
    of: str = PLAIN
    says: str = "CLEAN"
    cause: str = ""
    does: Does = "serves"
    anew: tuple[str, ...] = ()
    is_alone: bool = True
    is_told: bool = True


def put(path: Path, data: bytes = b"x") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def move_aside(root: Path, name: str) -> None:
    """Move a part of a store out of it, and leave a link."""
    (root / name).rename(root.parent / "aside")
    (root / name).symlink_to(root.parent / "aside")


def from_another(root: Path, *names: str) -> None:
    """Put parts of another broker's store in the place of this one's."""
    other = real_store(OTHER, root.parent / "other").root
    for name in names:
        if (root / name).is_dir():
            shutil.rmtree(root / name)
            shutil.copytree(other / name, root / name)
        else:
            shutil.copy(other / name, root / name)


def topics_text(root: Path) -> bytes:
    folders = (root / "consumequeue").iterdir()
    names = sorted(path.name for path in folders if any(path.iterdir()))
    rows = [f'"{name}":{{"topicName":"{name}","perm":6}}' for name in names]
    return f'{{"topicConfigTable":{{{",".join(rows)}}}}}'.encode()


def backups_of_an_editor(root: Path) -> None:
    put(root / "config/topics.json", topics_text(root))
    for name in ("topics.json~", ".topics.json.swp", "#topics.json#", "topics.orig"):
        put(root / "config" / name)


def topics_saved_on_windows(root: Path) -> None:
    text = topics_text(root).replace(b",", b",\r\n")
    put(root / "config/topics.json", b"\xef\xbb\xbf" + text)


def topics_in_single_quotes(root: Path) -> None:
    put(root / "config/topics.json", topics_text(root).replace(b'"', b"'"))


def topics_with_commas_and_comments(root: Path) -> None:
    text = topics_text(root).replace(b"}}}", b"},},}")
    put(root / "config/topics.json", b"/* by hand */\n" + text + b"// end\n")


def topics_cut(root: Path) -> None:
    put(root / "config/topics.json", topics_text(root)[:-9])


def tables_of_another(root: Path) -> None:
    put(root / "config/topics.json", b'{"topicConfigTable":{"TBW102":{}}}')
    put(root / "config/consumerOffset.json", b'{"offsetTable":{"orders@g":{0:9999}}}')


def a_table_as_temporary_file(root: Path) -> None:
    put(root / "config/topics.json", topics_text(root))
    put(root / "config/topics.json.tmp", topics_text(root)[:20])


def lost_and_found(root: Path) -> None:
    for name in ("", "commitlog", "consumequeue", "index", "config"):
        (root / name / "lost+found").mkdir(mode=0o700, parents=True)


def snapshots(root: Path) -> None:
    copy = shutil.copytree(root, root.parent / "copy")
    (root / ".snapshot").mkdir()
    copy.rename(root / ".snapshot/hourly.0")
    (root / "commitlog/.snapshot").mkdir()
    put(root / "commitlog/.snapshot/00000000000000000000")


def a_copy_inside(root: Path) -> None:
    shutil.copytree(root, root.parent / "copy").rename(root / "backup")


def sockets(root: Path) -> None:
    (root / "config").mkdir(exist_ok=True)
    for folder in (root, root / "config"):
        os.mknod(folder / "agent.sock", stat.S_IFSOCK | 0o600)


def crash_dumps(root: Path) -> None:
    put(root / "hs_err_pid7.log")
    put(root / "core.7")
    os.truncate(root / "core.7", 1 << 26)


def read_only(root: Path) -> None:
    for path in root.rglob("*"):
        if path.is_file():
            path.chmod(0o444)


def times_of_a_copy(root: Path) -> None:
    for path in root.rglob("*"):
        os.utime(path, ns=(1, 1))


def log_on_another_disk(root: Path) -> None:
    move_aside(root, "commitlog")


def queues_on_another_disk(root: Path) -> None:
    move_aside(root, "consumequeue")


def log_under_another_name(root: Path) -> None:
    (root / "commitlog").rename(root / "a-fast-disk")
    (root / "commitlog").symlink_to("a-fast-disk")


def an_archived_log_file(root: Path) -> None:
    move_aside(root, f"commitlog/{0:020d}")


def a_topic_copied_aside(root: Path) -> None:
    shutil.copytree(root / "consumequeue/orders", root / "consumequeue/orders.bak")


def a_queue_copied_aside(root: Path) -> None:
    shutil.copytree(root / "consumequeue/orders/0", root / "consumequeue/orders/0.bak")


def a_queue_with_a_zero_in_front(root: Path) -> None:
    shutil.copytree(root / "consumequeue/orders/0", root / "consumequeue/orders/00")


def notes_among_queues(root: Path) -> None:
    for name in ("README", "orders/notes.txt", ".DS_Store"):
        put(root / "consumequeue" / name)


def queues_made_ahead(root: Path) -> None:
    (root / "consumequeue/planned/0").mkdir(parents=True)
    (root / "consumequeue/orders/99").mkdir()


def a_queue_file_made_ahead(root: Path) -> None:
    path = queue_paths(root)[-1]
    size = path.stat().st_size
    put(path.with_name(f"{int(path.name) + size:020d}"), bytes(size))


def log_files_made_ahead(root: Path) -> None:
    path = log_paths(root)[-1]
    size = path.stat().st_size
    for number in (1, 2):
        put(path.with_name(f"{int(path.name) + number * size:020d}"), bytes(size))


def a_queue_file_longer(root: Path) -> None:
    os.truncate(queue_paths(root)[0], 5296)


def a_queue_file_cut_at_its_end(root: Path) -> None:
    path = queue_paths(root)[-1]
    os.truncate(path, written(path))


def a_log_file_kept_beside(root: Path) -> None:
    path = log_paths(root)[0]
    shutil.copy(path, path.with_name(f"{path.name}.bak"))


def a_log_file_packed(root: Path) -> None:
    put(root / "commitlog" / f"{0:020d}.gz")


def hidden_files_in_the_log(root: Path) -> None:
    put(root / "commitlog/.DS_Store")
    put(root / "commitlog/.nfs0000000000000001")


def a_copy_that_goes_on(root: Path) -> None:
    path = written_paths(root)[-1]
    path.rename(path.with_name(f".{path.name}.Xa12bC"))


def index_files_kept_beside(root: Path) -> None:
    path = sorted((root / "index").iterdir())[0]
    shutil.copy(path, path.with_name(f"{path.name}.bak"))
    put(root / "index/.DS_Store")


def the_log_alone(root: Path) -> None:
    for name in ("consumequeue", "index", "config"):
        shutil.rmtree(root / name, ignore_errors=True)
    (root / "checkpoint").unlink()


def queues_newer_than_the_log(root: Path) -> None:
    written_paths(root)[-1].unlink()


def queues_of_another(root: Path) -> None:
    from_another(root, "consumequeue")


def index_of_another(root: Path) -> None:
    from_another(root, "index")


def checkpoint_of_another(root: Path) -> None:
    from_another(root, "checkpoint")


def log_files_of_another_behind(root: Path) -> None:
    """What two brokers leave that were started on one directory."""
    other = real_store(OTHER, root.parent / "other").root
    size = log_paths(root)[0].stat().st_size
    end = int(log_paths(root)[-1].name) + size
    put(root / "commitlog" / f"{end:020d}", log_paths(other)[0].read_bytes())


def checkpoint_cut(root: Path) -> None:
    os.truncate(root / "checkpoint", 48)


def checkpoint_empty(root: Path) -> None:
    os.truncate(root / "checkpoint", 0)


def abort_is_a_folder(root: Path) -> None:
    (root / "abort").mkdir()


def checkpoint_is_a_folder(root: Path) -> None:
    (root / "checkpoint").unlink()
    put(root / "checkpoint/note")


def no_wheel_of_timers(root: Path) -> None:
    (root / "timerwheel").unlink()


def log_of_timers_cut(root: Path) -> None:
    path = sorted((root / "timerlog").iterdir())[-1]
    os.truncate(path, path.stat().st_size // 2)


def topic_of_halves_gone(root: Path) -> None:
    shutil.rmtree(root / "consumequeue/RMQ_SYS_TRANS_HALF_TOPIC")


def a_light_queue_gone(root: Path) -> None:
    shutil.rmtree(sorted((root / "consumequeue").glob("%LMQ%*"))[0])


def bit_maps_gone(root: Path) -> None:
    shutil.rmtree(root / "consumequeue_ext")


def queues_of_batches_gone(root: Path) -> None:
    shutil.rmtree(root / "batchconsumequeue")


def deleted_topic_of_an_edited_list(root: Path) -> None:
    topics_in_single_quotes(root)


def expired_by_hand(root: Path) -> None:
    for path in log_paths(root)[:2]:
        path.unlink()


def one_level_too_high(root: Path) -> None:
    inside = root.rename(root.parent / "inside")
    root.mkdir()
    inside.rename(root / "store")


def untouched(root: Path) -> None:
    assert root.is_dir()


OTHERS_NAME = "a file has the name of no log file"
CHECKPOINT = "the checkpoint is damaged"
TAIL_OR_CHECKPOINT = "the log's tail is gone, or the checkpoint is of another store"
DAMAGED = "DAMAGED: 0 messages unreadable, "
DIRECTORIES: tuple[Directory, ...] = (
    Directory(backups_of_an_editor),
    Directory(topics_saved_on_windows),
    Directory(topics_in_single_quotes),
    Directory(topics_with_commas_and_comments),
    Directory(a_table_as_temporary_file),
    Directory(topics_cut, says=DAMAGED, cause="a config file is not whole"),
    Directory(
        tables_of_another,
        says=DAMAGED,
        cause="groups have offsets past the end of a queue",
    ),
    Directory(deleted_topic_of_an_edited_list, "5.3.0-deleted-topic"),
    Directory(deleted_topic_of_an_edited_list, "4.9.8-deleted-topic"),
    Directory(lost_and_found),
    Directory(snapshots),
    Directory(a_copy_inside),
    Directory(sockets),
    Directory(crash_dumps),
    Directory(read_only),
    Directory(times_of_a_copy),
    Directory(log_under_another_name),
    Directory(log_on_another_disk, says="FOREIGN LAYOUT", is_alone=False),
    Directory(queues_on_another_disk, says="FOREIGN LAYOUT", is_alone=False),
    Directory(
        an_archived_log_file,
        says="FOREIGN LAYOUT",
        is_alone=False,
    ),
    Directory(
        a_topic_copied_aside,
        says=DAMAGED,
        cause="a queue file of another queue",
        does="refuses",
    ),
    Directory(a_queue_copied_aside),
    Directory(a_queue_with_a_zero_in_front),
    Directory(notes_among_queues),
    Directory(queues_made_ahead),
    Directory(a_queue_file_made_ahead, anew=("consumequeue",)),
    Directory(log_files_made_ahead),
    Directory(
        a_queue_file_longer,
        says=DAMAGED,
        cause="a queue file is too short or too long",
        does="refuses",
    ),
    Directory(
        a_queue_file_cut_at_its_end,
        says=DAMAGED,
        cause="a queue file is too short or too long",
        does="refuses",
    ),
    Directory(a_log_file_kept_beside, says=DAMAGED, cause=OTHERS_NAME),
    Directory(a_log_file_packed, says=DAMAGED, cause=OTHERS_NAME),
    Directory(hidden_files_in_the_log, says=DAMAGED, cause=OTHERS_NAME),
    Directory(
        a_copy_that_goes_on,
        says="DAMAGED: 11 messages unreadable, 149 whole",
        cause=TAIL_OR_CHECKPOINT,
        does="refuses",
    ),
    Directory(index_files_kept_beside),
    Directory(the_log_alone, says=DAMAGED, cause="all queues are gone"),
    Directory(the_log_alone, KILLED),
    Directory(
        queues_newer_than_the_log,
        says="DAMAGED: 11 messages unreadable, 149 whole",
        cause=TAIL_OR_CHECKPOINT,
        does="refuses",
    ),
    Directory(
        queues_of_another,
        says=DAMAGED,
        cause="a queue file of another broker",
        does="refuses",
    ),
    Directory(
        index_of_another,
        says=DAMAGED,
        cause="the index is damaged",
        anew=("index",),
    ),
    Directory(
        checkpoint_of_another,
        says=DAMAGED,
        cause=TAIL_OR_CHECKPOINT,
    ),
    Directory(
        log_files_of_another_behind,
        says=DAMAGED,
        cause="the log's tail is cut off or zeroed",
        does="refuses",
    ),
    Directory(checkpoint_cut, says=DAMAGED, cause=CHECKPOINT),
    Directory(checkpoint_empty, says=DAMAGED, cause=CHECKPOINT),
    Directory(checkpoint_empty, KILLED),
    Directory(
        abort_is_a_folder,
        says=DAMAGED,
        cause="something stands where no store has it",
        does="refuses",
    ),
    Directory(checkpoint_is_a_folder, says=DAMAGED, cause=CHECKPOINT, does="refuses"),
    Directory(no_wheel_of_timers, "5.3.0-timers"),
    Directory(log_of_timers_cut, "5.3.0-timers"),
    Directory(
        topic_of_halves_gone,
        "5.3.0-transactions",
        says=DAMAGED,
        cause="a topic's folder is gone",
    ),
    Directory(
        a_light_queue_gone,
        "5.3.0-light",
        says=DAMAGED,
        cause="a topic's folder is gone",
    ),
    Directory(
        bit_maps_gone,
        "5.3.0-extended",
        says=DAMAGED,
        cause="units of a queue are wrong or missing",
        anew=("consumequeue",),
    ),
    Directory(queues_of_batches_gone, "5.3.0-batch-queues", does="refuses"),
    Directory(untouched, "5.3.0-compaction", does="refuses"),
    Directory(untouched, "5.3.0-storm-pool-killed"),
    Directory(expired_by_hand, "5.3.0-expired"),
    Directory(expired_by_hand, "5.3.3-plain-killed"),
    Directory(one_level_too_high, says="NOT A STORE"),
)
