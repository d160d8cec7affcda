"""More directories that operators have: backups, mixtures, leftovers, half copies.

As ``operator_directories``, and judged in the same way.
"""

from __future__ import annotations

import gzip
import os
import shutil
import tarfile
from pathlib import Path

from corpus_store import real_store
from operator_damages import change, log_paths, queue_paths, written, written_paths
from operator_directories import (
    CHECKPOINT,
    KILLED,
    OTHER,
    OTHERS_NAME,
    Directory,
    move_aside,
    put,
    topics_text,
)

SECTOR = 512
PAGE = 4096
UNIT = 20


def pid_in_abort(root: Path) -> None:
    put(root / "abort", b"31337")


def no_lock(root: Path) -> None:
    (root / "lock").unlink()


def files_of_a_controller(root: Path) -> None:
    """Epochs and identity of a broker whose master is elected."""
    put(root / "epochFileCheckpoint", b"1\n3-0\n7-65536\n")
    put(root / "epochFileCheckpoint.bak", b"1\n3-0\n")
    put(root / "config/brokerIdentity", b'{"brokerName":"a","brokerId":2}')


def files_of_tiered_storage(root: Path) -> None:
    put(root / "config/topics.json", topics_text(root))
    put(root / "config/tieredStoreMetadata.json", b'{"maxTopicId":{"value":3}}')
    put(root / "tieredstore/cluster/broker-a/orders/0/commitlog/a", b"\1" * 999)
    put(root / "rmq_tiered_store/x.index", bytes(100))


def tables_of_a_newer_broker(root: Path) -> None:
    """Tables that came with 5.x, and attributes in the known ones."""
    rows = topics_text(root).decode()
    rows = rows.replace('"perm":6', '"perm":6,"attributes":{"+message.type":"FIFO"}')
    version = '"dataVersion":{"counter":3,"stateVersion":1,"timestamp":1}'
    put(root / "config/topics.json", (rows[:-1] + f",{version}}}").encode())
    for name in ("topicQueueMapping", "messageRequestMode", "consumerOrderInfo"):
        put(root / f"config/{name}.json", b"{}")
    put(root / "config/lmqConsumerOffset.json", b'{"lmqOffsetTable":{"%LMQ%a@g":7}}')
    put(root / "config/broadcastOffset.json", b'{"offsetStoreMap":{}}')
    group = '"g":{"groupName":"g","attributes":{"+a":"b"},"retryMaxTimes":16}'
    text = f'{{"forbiddenTable":{{}},"subscriptionGroupTable":{{{group}}},{version}}}'
    put(root / "config/subscriptionGroup.json", text.encode())
    text = (
        f'{{"offsetTable":{{"orders@g":{{0:3,1:2}}}},"pullOffsetTable":{{}},{version}}}'
    )
    put(root / "config/consumerOffset.json", text.encode())


def tables_in_rocksdb(root: Path) -> None:
    """``useSingleRocksDBForAllConfigs`` and its like: no table is a file of JSON."""
    for name in ("topics", "subscriptionGroups", "consumerOffsets", "metadata"):
        put(root / "config" / name / "CURRENT", b"MANIFEST-000005\n")
        put(root / "config" / name / "000004.sst", b"\1" * 99)


def tables_by_kubernetes(root: Path) -> None:
    """A mounted ConfigMap is links to a link to a folder."""
    put(root / "config/..2026_01_01/topics.json", topics_text(root))
    (root / "config/..data").symlink_to("..2026_01_01")
    (root / "config/topics.json").symlink_to("..data/topics.json")


def config_on_another_disk(root: Path) -> None:
    put(root / "config/topics.json", topics_text(root))
    move_aside(root, "config")


def checkpoint_on_another_disk(root: Path) -> None:
    move_aside(root, "checkpoint")


def index_on_another_disk(root: Path) -> None:
    move_aside(root, "index")


def a_queue_on_another_disk(root: Path) -> None:
    move_aside(root, "consumequeue/orders")


def a_link_to_a_file_that_is_gone(root: Path) -> None:
    path = log_paths(root)[2]
    path.unlink()
    path.symlink_to("/mnt/archive/gone")


def links_in_a_circle(root: Path) -> None:
    (root / "again").symlink_to(".")
    (root / "consumequeue/again").symlink_to("..")


def hard_links_of_a_backup(root: Path) -> None:
    backup = root.parent / "backup"
    shutil.copytree(root, backup, copy_function=os.link)


def topics_in_utf16(root: Path) -> None:
    put(root / "config/topics.json", topics_text(root).decode().encode("utf-16"))


def tables_of_a_full_disk(root: Path) -> None:
    """New tables have no byte, and the backups are whole."""
    put(root / "config/topics.json", b"")
    put(root / "config/topics.json.bak", topics_text(root))
    put(root / "config/consumerOffset.json", b"")
    put(root / "config/consumerOffset.json.bak", b'{"offsetTable":{"orders@g":{0:3}}}')


def tables_of_a_full_disk_alone(root: Path) -> None:
    put(root / "config/consumerOffset.json", b"")


def a_log_file_of_a_full_disk(root: Path) -> None:
    """The next file was begun, and not lengthened to its size."""
    last = log_paths(root)[-1]
    size = last.stat().st_size
    put(last.with_name(f"{int(last.name) + size:020d}"), bytes(PAGE))


def a_queue_file_of_a_full_disk(root: Path) -> None:
    path = queue_paths(root)[-1]
    base = int(path.name) + path.stat().st_size
    put(path.with_name(f"{base:020d}"), b"")


def an_index_file_of_a_full_disk(root: Path) -> None:
    put(root / "index/20991231235959999", b"")


def copies_that_go_on_among_queues(root: Path) -> None:
    path = queue_paths(root)[0]
    put(path.with_name(f".{path.name}.Qx81ab"), path.read_bytes()[:300])


def copies_that_go_on_beside(root: Path) -> None:
    """Partial files of rsync outside of the log and the queues."""
    put(root / ".checkpoint.x81abQ", bytes(100))
    put(root / "config/.topics.json.x81abQ", b"{")
    put(root / "index/.20260101000000000.x81abQ", bytes(100))
    put(root / "commitlog/.rsync-partial/00000000000000000000", bytes(100))
    put(root / "consumequeue/.~tmp~/x", bytes(100))


def files_of_a_mac(root: Path) -> None:
    for folder in (root, root / "config", root / "index"):
        put(folder / "._checkpoint", b"\0\5\26\7" + bytes(60))


def files_of_a_mac_in_the_log(root: Path) -> None:
    put(root / "commitlog" / f"._{0:020d}", b"\0\5\26\7" + bytes(60))


def folders_of_a_file_server(root: Path) -> None:
    for name in ("@eaDir", ".zfs", "$RECYCLE.BIN", ".Trash-0", "System Volume x"):
        put(root / name / "00000000000000000000")
        put(root / "consumequeue" / name / "00000000000000000000")
        put(root / "commitlog" / name / "00000000000000000000")
        put(root / "index" / name / "00000000000000000000")


def a_folder_with_a_number_in_the_log(root: Path) -> None:
    (root / "commitlog" / f"{1 << 40:020d}").mkdir()


def a_folder_in_place_of_a_log_file(root: Path) -> None:
    path = log_paths(root)[2]
    path.unlink()
    path.mkdir()


def a_file_in_place_of_a_topic(root: Path) -> None:
    shutil.rmtree(root / "consumequeue/payments")
    put(root / "consumequeue/payments", b"moved to /mnt/b")


def a_file_in_place_of_a_queue(root: Path) -> None:
    shutil.rmtree(root / "consumequeue/orders/1")
    put(root / "consumequeue/orders/1", b"moved to /mnt/b")


def a_file_in_place_of_the_index(root: Path) -> None:
    shutil.rmtree(root / "index")
    put(root / "index")


def a_file_in_place_of_the_queues(root: Path) -> None:
    shutil.rmtree(root / "consumequeue")
    put(root / "consumequeue")


def a_file_in_place_of_config(root: Path) -> None:
    shutil.rmtree(root / "config", ignore_errors=True)
    put(root / "config")


def a_topic_packed(root: Path) -> None:
    with tarfile.open(root / "consumequeue/payments.tar", "w") as tar:
        tar.add(root / "consumequeue/payments", "payments")
    shutil.rmtree(root / "consumequeue/payments")


def a_cold_log_file_packed(root: Path) -> None:
    """The original is gone, and its packed copy lies beside the others."""
    path = log_paths(root)[0]
    put(path.with_name(f"{path.name}.gz"), gzip.compress(path.read_bytes(), mtime=0))
    path.unlink()


def a_cold_log_file_packed_in_its_place(root: Path) -> None:
    path = log_paths(root)[0]
    data = gzip.compress(path.read_bytes(), mtime=0)
    path.write_bytes(data.ljust(path.stat().st_size, b"\0"))


def a_queue_file_packed(root: Path) -> None:
    path = queue_paths(root)[0]
    put(path.with_name(f"{path.name}.gz"), gzip.compress(path.read_bytes(), mtime=0))
    path.unlink()


def holes_for_zeros(root: Path) -> None:
    """A copy that leaves zeros out, as cp and tar can make it."""
    for path in [p for p in sorted(root.rglob("*")) if p.is_file()]:
        data = path.read_bytes()
        path.write_bytes(b"")
        os.truncate(path, len(data))
        with path.open("r+b") as file:
            for at in range(0, len(data), PAGE):
                if any(part := data[at : at + PAGE]):
                    file.seek(at)
                    file.write(part)


def tails_cut(root: Path) -> None:
    """A copy that drops zeros at the end of a file."""
    for path in (*written_paths(root)[-1:], *queue_paths(root)):
        os.truncate(path, written(path))


def saved_as_text(root: Path) -> None:
    """What a transfer as text makes of a file."""
    path = log_paths(root)[1]
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))


def queue_saved_as_text(root: Path) -> None:
    path = queue_paths(root)[0]
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))


def two_log_files_in_one(root: Path) -> None:
    first, second, *_ = log_paths(root)
    first.write_bytes(first.read_bytes() + second.read_bytes())
    second.unlink()


def log_files_of_two_sizes(root: Path) -> None:
    """``mappedFileSizeCommitLog`` was doubled amid the life of a store."""
    paths = log_paths(root)
    size = paths[0].stat().st_size
    for path in paths[2:]:
        base = int(path.name)
        if base // size % 2 == 0:
            os.truncate(path, 2 * size)
        else:
            path.unlink()


def a_log_of_zeros(root: Path) -> None:
    """What is left of files whose blocks a disk has given away."""
    for path in log_paths(root):
        path.write_bytes(bytes(path.stat().st_size))


def an_old_log_file_of_zeros(root: Path) -> None:
    path = log_paths(root)[1]
    path.write_bytes(bytes(path.stat().st_size))


def last_log_file_of_zeros(root: Path) -> None:
    path = written_paths(root)[-1]
    path.write_bytes(bytes(path.stat().st_size))


def last_log_file_empty(root: Path) -> None:
    os.truncate(written_paths(root)[-1], 0)


def a_log_file_empty(root: Path) -> None:
    os.truncate(log_paths(root)[1], 0)


def first_page_of_the_log_of_zeros(root: Path) -> None:
    change(log_paths(root)[0], 0, bytes(PAGE))


def a_blank_of_zeros(root: Path) -> None:
    """The end of a full file, behind its last message."""
    path = written_paths(root)[-2]
    change(path, written(path) - 8, bytes(8))


def log_files_rotated(root: Path) -> None:
    """Each of three files under the name of the next one."""
    one, two, three = log_paths(root)[:3]
    data = [path.read_bytes() for path in (one, two, three)]
    for path, content in zip((two, three, one), data, strict=True):
        path.write_bytes(content)


def an_older_copy_of_the_last_file(root: Path) -> None:
    """A snapshot was put back for one file alone."""
    path = written_paths(root)[-1]
    end = written(path) // 2
    change(path, end, bytes(path.stat().st_size - end))


def an_older_copy_of_the_checkpoint(root: Path) -> None:
    change(root / "checkpoint", 0, bytes(24))


def last_files_put_back_alone(root: Path) -> None:
    """The newest two log files came back from a backup, and no earlier one."""
    for path in written_paths(root)[:-2]:
        path.unlink()


def copied_while_it_ran(root: Path) -> None:
    """The log first, then queues that had gone on; abort and lock as they were."""
    an_older_copy_of_the_last_file(root)
    put(root / "abort", b"")


def copied_queues_first(root: Path) -> None:
    """Queues and index first, then a log that had gone on."""
    for path in queue_paths(root):
        units = written(path) // UNIT
        kept = UNIT * (units - 2) if units > 2 else 0
        change(path, kept, bytes(path.stat().st_size - kept))
    put(root / "abort", b"")


def a_unit_of_zeros(root: Path) -> None:
    path = sorted((root / "consumequeue/orders/0").iterdir())[0]
    change(path, 3 * UNIT, bytes(UNIT))


def a_unit_cut_out(root: Path) -> None:
    """One unit is gone, and those behind it have moved up."""
    path = sorted((root / "consumequeue/orders/0").iterdir())[0]
    data = path.read_bytes()
    path.write_bytes(data[: 3 * UNIT] + data[4 * UNIT :] + bytes(UNIT))


def a_unit_twice(root: Path) -> None:
    path = sorted((root / "consumequeue/orders/0").iterdir())[0]
    data = path.read_bytes()
    path.write_bytes((data[: 4 * UNIT] + data[3 * UNIT :])[: len(data)])


def units_of_the_other_byte_order(root: Path) -> None:
    path = sorted((root / "consumequeue/orders/0").iterdir())[0]
    _turn(path, (8, 4, 8))


def checkpoint_of_the_other_byte_order(root: Path) -> None:
    _turn(root / "checkpoint", (8,))


def log_of_the_other_byte_order(root: Path) -> None:
    for path in log_paths(root):
        _turn(path, (4,))


def _turn(path: Path, widths: tuple[int, ...]) -> None:
    data, turned, at = path.read_bytes(), bytearray(), 0
    while at < len(data):
        for width in widths:
            turned += data[at : at + width][::-1]
            at += width
    path.write_bytes(turned)


def folders_in_capitals(root: Path) -> None:
    """As some file systems and archives give names back."""
    (root / "consumequeue").rename(root / "ConsumeQueue")


def log_in_capitals(root: Path) -> None:
    (root / "commitlog").rename(root / "CommitLog")


def a_topic_in_capitals(root: Path) -> None:
    (root / "consumequeue/orders").rename(root / "consumequeue/ORDERS")


def topics_of_another_merged(root: Path) -> None:
    """Queues of two brokers in one directory, beside the log of one."""
    other = real_store(OTHER, root.parent / "other", committed=True).root
    shutil.copytree(other / "consumequeue/orders", root / "consumequeue/orders-b")


def a_log_file_of_another_in_the_middle(root: Path) -> None:
    other = real_store(OTHER, root.parent / "other", committed=True).root
    log_paths(root)[2].write_bytes(log_paths(other)[0].read_bytes())


def folders_alone(root: Path) -> None:
    """A copy of the tree without its files."""
    for path in [p for p in sorted(root.rglob("*")) if p.is_file()]:
        path.unlink()


def log_files_with_a_digit_less(root: Path) -> None:
    for path in log_paths(root):
        path.rename(path.with_name(path.name[1:]))


def first_log_file_with_a_digit_less(root: Path) -> None:
    path = log_paths(root)[0]
    path.rename(path.with_name(path.name[1:]))


def a_log_file_with_a_digit_less(root: Path) -> None:
    path = log_paths(root)[2]
    path.rename(path.with_name(path.name[1:]))


def a_log_file_with_a_digit_more(root: Path) -> None:
    path = written_paths(root)[-1]
    path.rename(path.with_name(f"0{path.name}"))


def a_queue_file_with_a_digit_less(root: Path) -> None:
    path = sorted((root / "consumequeue/orders/0").iterdir())[0]
    path.rename(path.with_name(path.name[1:]))


def the_same_number_twice(root: Path) -> None:
    path = log_paths(root)[1]
    shutil.copy(path, path.with_name(path.name[1:]))


def numbers_that_are_no_files(root: Path) -> None:
    put(root / "commitlog/7", b"seven")


def names_with_a_blank(root: Path) -> None:
    path = log_paths(root)[1]
    path.rename(path.with_name(f"{path.name} (1)"))


def the_log_itself(root: Path) -> None:
    """DIR is the directory of the log's files."""
    _is_given(root, root / "commitlog")


def the_queues_themselves(root: Path) -> None:
    _is_given(root, root / "consumequeue")


def a_topic_itself(root: Path) -> None:
    _is_given(root, root / "consumequeue/orders/0")


def two_levels_too_high(root: Path) -> None:
    inside = root.rename(root.parent / "inside")
    (root / "rocketmq").mkdir(parents=True)
    inside.rename(root / "rocketmq/store")


def _is_given(root: Path, part: Path) -> None:
    part.rename(root.parent / "part")
    shutil.rmtree(root)
    (root.parent / "part").rename(root)


def delays_gone(root: Path) -> None:
    shutil.rmtree(root / "consumequeue/SCHEDULE_TOPIC_XXXX")


def offsets_of_delays_cut(root: Path) -> None:
    put(root / "config/delayOffset.json", b'{"offsetTable":{1:')


def offsets_of_retries_that_expired(root: Path) -> None:
    put(root / "config/topics.json", topics_text(root))
    text = b'{"offsetTable":{"%RETRY%g@g":{0:5},"gone@g":{0:77},"orders@g":{0:1}}}'
    put(root / "config/consumerOffset.json", text)


def no_files_of_newer_releases(root: Path) -> None:
    """Opened by an older release, which knows nothing of these."""
    for name in ("rocksdbstore", "timerwheel", "timerlog"):
        path = root / name
        if path.is_dir():
            shutil.rmtree(path)
        elif path.exists():
            path.unlink()


def folders_of_rocksdb_without_a_file(root: Path) -> None:
    (root / "consumequeue_rocksdb").mkdir()
    (root / "consumequeue_r").mkdir()


def a_disk_of_several_lost(root: Path) -> None:
    shutil.rmtree(root.parent / "log-b")


def expired_and_killed(root: Path) -> None:
    log_paths(root)[0].unlink()
    put(root / "abort", b"")


def queues_of_expired_messages_gone(root: Path) -> None:
    """A cleaner of an operator's own took the oldest queue files, too."""
    log_paths(root)[0].unlink()
    queue_paths(root)[0].unlink()


STRANGERS: tuple[Directory, ...] = (
    Directory(pid_in_abort),
    Directory(no_lock),
    Directory(files_of_a_controller),
    Directory(files_of_tiered_storage),
    Directory(tables_of_a_newer_broker),
    Directory(tables_in_rocksdb),
    Directory(tables_by_kubernetes),
    Directory(config_on_another_disk, says="FOREIGN LAYOUT"),
    Directory(checkpoint_on_another_disk, says="FOREIGN LAYOUT"),
    Directory(index_on_another_disk, says="FOREIGN LAYOUT"),
    Directory(a_queue_on_another_disk, says="FOREIGN LAYOUT"),
    Directory(
        a_link_to_a_file_that_is_gone,
        says="DAMAGED: 33 messages unreadable, 127 whole",
        cause="a log file is too short or too long",
        does="refuses",
    ),
    Directory(links_in_a_circle),
    Directory(hard_links_of_a_backup),
    Directory(
        topics_in_utf16,
        says="DAMAGED: 0 messages unreadable, 160 whole",
        cause="a config file is not whole",
    ),
    Directory(tables_of_a_full_disk),
    Directory(
        tables_of_a_full_disk_alone,
        says="DAMAGED: 0 messages unreadable, 160 whole",
        cause="a config file is not whole",
    ),
    Directory(
        a_log_file_of_a_full_disk,
        says="DAMAGED: 0 messages unreadable, 160 whole",
        cause="a log file is too short or too long",
        does="refuses",
    ),
    Directory(
        a_queue_file_of_a_full_disk,
        says="DAMAGED: 0 messages unreadable, 160 whole",
        cause="a queue file is too short or too long",
        anew=("consumequeue",),
    ),
    Directory(
        an_index_file_of_a_full_disk,
        says="DAMAGED: 0 messages unreadable, 160 whole",
        cause="the index is damaged",
    ),
    Directory(
        copies_that_go_on_among_queues,
        says="DAMAGED: 0 messages unreadable, 160 whole",
        cause="a file has the name of no queue file",
    ),
    Directory(copies_that_go_on_beside),
    Directory(files_of_a_mac),
    Directory(
        files_of_a_mac_in_the_log,
        says="DAMAGED: 0 messages unreadable, 160 whole",
        cause=OTHERS_NAME,
    ),
    Directory(folders_of_a_file_server),
    Directory(a_folder_with_a_number_in_the_log),
    Directory(
        a_folder_in_place_of_a_log_file,
        says="DAMAGED: 33 messages unreadable, 127 whole",
        cause="a log file is missing",
        does="refuses",
    ),
    Directory(
        a_file_in_place_of_a_topic,
        says="DAMAGED: 0 messages unreadable, 160 whole",
        cause="a topic's folder is gone",
        does="refuses",
    ),
    Directory(
        a_file_in_place_of_a_queue,
        says="DAMAGED: 0 messages unreadable, 160 whole",
        cause="a queue's folder is gone",
        does="refuses",
    ),
    Directory(
        a_file_in_place_of_the_index,
        says="DAMAGED: 0 messages unreadable, 160 whole",
        cause="the index is damaged",
        does="refuses",
    ),
    Directory(
        a_file_in_place_of_the_queues,
        says="DAMAGED: 0 messages unreadable, 160 whole",
        cause="something stands where no store has it",
        does="refuses",
    ),
    Directory(
        a_file_in_place_of_config,
        says="DAMAGED: 0 messages unreadable, 160 whole",
        cause="something stands where no store has it",
    ),
    Directory(
        a_topic_packed,
        says="DAMAGED: 0 messages unreadable, 160 whole",
        cause="a topic's folder is gone",
    ),
    Directory(
        a_cold_log_file_packed,
        says="DAMAGED: 0 messages unreadable, 125 whole",
        cause=OTHERS_NAME,
        is_told=False,
    ),
    Directory(
        a_cold_log_file_packed_in_its_place,
        says="DAMAGED: 35 messages unreadable, 125 whole",
        cause="a log file that holds no message, packed or of something else",
        anew=("index",),
    ),
    Directory(
        a_queue_file_packed,
        says="DAMAGED: 0 messages unreadable, 160 whole",
        cause="a topic's folder is gone",
    ),
    Directory(holes_for_zeros),
    Directory(
        tails_cut,
        says="DAMAGED: 0 messages unreadable, 160 whole",
        cause="a log file is too short or too long",
        does="refuses",
    ),
    Directory(
        saved_as_text,
        says="DAMAGED: 15 messages unreadable, 145 whole",
        cause="a log file is too short or too long",
        does="refuses",
    ),
    Directory(
        queue_saved_as_text,
        says="DAMAGED: 0 messages unreadable, 160 whole",
        cause="units of a queue are wrong or missing",
        does="refuses",
    ),
    Directory(
        two_log_files_in_one,
        says="DAMAGED: 15 messages unreadable, 145 whole",
        cause="a log file is missing",
        does="refuses",
    ),
    Directory(
        log_files_of_two_sizes,
        says="DAMAGED: 37 messages unreadable, 123 whole",
        cause="a log file is missing",
        does="refuses",
    ),
    Directory(
        a_log_of_zeros,
        says="DAMAGED: 160 messages unreadable, 0 whole",
        cause="a log file of zeros",
        does="refuses",
    ),
    Directory(
        an_old_log_file_of_zeros,
        says="DAMAGED: 15 messages unreadable, 145 whole",
        cause="a log file of zeros",
        anew=("index",),
    ),
    Directory(
        last_log_file_of_zeros,
        says="DAMAGED: 11 messages unreadable, 149 whole",
        cause="a log file of zeros",
        does="refuses",
    ),
    Directory(
        last_log_file_empty,
        says="DAMAGED: 11 messages unreadable, 149 whole",
        cause="a log file is too short or too long",
        does="refuses",
    ),
    Directory(
        a_log_file_empty,
        says="DAMAGED: 15 messages unreadable, 145 whole",
        cause="a log file is too short or too long",
        anew=("index",),
    ),
    Directory(
        first_page_of_the_log_of_zeros,
        says="DAMAGED: 9 messages unreadable, 151 whole",
        cause="a page of zeros",
        anew=("index",),
    ),
    Directory(
        a_blank_of_zeros,
        says="DAMAGED: 0 messages unreadable, 160 whole",
        cause="the log's tail is cut off or zeroed",
        does="refuses",
    ),
    Directory(
        log_files_rotated,
        says="DAMAGED: 83 messages unreadable, 77 whole",
        cause="log files exchanged or renamed",
        anew=("index",),
    ),
    Directory(
        an_older_copy_of_the_last_file,
        says="DAMAGED: 6 messages unreadable, 154 whole",
        cause="the log's tail is cut off or zeroed",
        does="refuses",
    ),
    Directory(an_older_copy_of_the_checkpoint),
    Directory(last_files_put_back_alone, is_told=False),
    Directory(copied_while_it_ran, anew=("consumequeue", "index")),
    Directory(
        copied_queues_first,
        says="DAMAGED: 0 messages unreadable, 160 whole",
        cause="units of a queue are wrong or missing",
        anew=("consumequeue",),
    ),
    Directory(
        a_unit_of_zeros,
        says="DAMAGED: 0 messages unreadable, 160 whole",
        cause="units of a queue are wrong or missing",
        anew=("consumequeue",),
    ),
    Directory(
        a_unit_cut_out,
        says="DAMAGED: 0 messages unreadable, 160 whole",
        cause="units of a queue are wrong or missing",
        does="refuses",
    ),
    Directory(
        a_unit_twice,
        says="DAMAGED: 0 messages unreadable, 160 whole",
        cause="units of a queue are wrong or missing",
        does="refuses",
    ),
    Directory(
        units_of_the_other_byte_order,
        says="DAMAGED: 0 messages unreadable, 160 whole",
        cause="units of a queue are wrong or missing",
        does="refuses",
    ),
    Directory(
        checkpoint_of_the_other_byte_order,
        says="DAMAGED: 0 messages unreadable, 160 whole",
        cause=CHECKPOINT,
    ),
    Directory(
        log_of_the_other_byte_order,
        says="DAMAGED: 160 messages unreadable, 0 whole",
        cause="a log file that holds no message, packed or of something else",
        does="refuses",
    ),
    Directory(
        folders_in_capitals,
        says="DAMAGED: 0 messages unreadable, 160 whole",
        cause="all queues are gone",
    ),
    Directory(log_in_capitals, says="FOREIGN LAYOUT", does="refuses"),
    Directory(
        a_topic_in_capitals,
        says="DAMAGED: 0 messages unreadable, 160 whole",
        cause="a queue file of another queue",
        does="refuses",
    ),
    Directory(
        topics_of_another_merged,
        says="DAMAGED: 0 messages unreadable, 160 whole",
        cause="a queue file of another broker",
        does="refuses",
    ),
    Directory(
        a_log_file_of_another_in_the_middle,
        says="DAMAGED: 33 messages unreadable, 127 whole",
        cause="log files exchanged or renamed",
        anew=("index",),
    ),
    Directory(
        folders_alone,
        says="DAMAGED: 0 messages unreadable, 0 whole",
        cause="records of the log are damaged",
        is_told=False,
    ),
    Directory(
        log_files_with_a_digit_less,
        says="DAMAGED: 0 messages unreadable, 160 whole",
        cause="a log file's name has too few digits, or too many",
        does="refuses",
    ),
    Directory(
        first_log_file_with_a_digit_less,
        says="DAMAGED: 0 messages unreadable, 160 whole",
        cause="a log file's name has too few digits, or too many",
        does="refuses",
    ),
    Directory(
        a_log_file_with_a_digit_less,
        says="DAMAGED: 0 messages unreadable, 160 whole",
        cause="a log file's name has too few digits, or too many",
        does="refuses",
    ),
    Directory(
        a_log_file_with_a_digit_more,
        says="DAMAGED: 0 messages unreadable, 160 whole",
        cause="a log file's name has too few digits, or too many",
        does="refuses",
    ),
    Directory(
        a_queue_file_with_a_digit_less,
        says="DAMAGED: 0 messages unreadable, 160 whole",
        cause="a queue file's name has too few digits, or too many",
        does="refuses",
    ),
    Directory(
        the_same_number_twice,
        says="DAMAGED: 0 messages unreadable, 160 whole",
        cause=OTHERS_NAME,
        does="refuses",
    ),
    Directory(
        numbers_that_are_no_files,
        says="DAMAGED: 0 messages unreadable, 160 whole",
        cause=OTHERS_NAME,
        does="refuses",
    ),
    Directory(
        names_with_a_blank,
        says="DAMAGED: 15 messages unreadable, 145 whole",
        cause="a log file is missing",
        does="refuses",
    ),
    Directory(the_log_itself, says="NOT A STORE"),
    Directory(the_queues_themselves, says="NOT A STORE"),
    Directory(a_topic_itself, says="NOT A STORE"),
    Directory(two_levels_too_high, says="NOT A STORE"),
    Directory(
        delays_gone,
        "5.3.0-delayed",
        says="DAMAGED: 0 messages unreadable, 84 whole",
        cause="a topic's folder is gone",
    ),
    Directory(
        offsets_of_delays_cut,
        says="DAMAGED: 0 messages unreadable, 160 whole",
        cause="a config file is not whole",
    ),
    Directory(offsets_of_retries_that_expired),
    Directory(no_files_of_newer_releases),
    Directory(folders_of_rocksdb_without_a_file),
    Directory(
        a_disk_of_several_lost,
        "5.3.0-several-paths",
        says="FOREIGN LAYOUT",
        does="refuses",
    ),
    Directory(expired_and_killed, is_told=False),
    Directory(
        queues_of_expired_messages_gone,
        says="DAMAGED: 0 messages unreadable, 125 whole",
        cause="a topic's folder is gone",
        is_told=False,
    ),
    Directory(no_files_of_newer_releases, "5.5.1-timers"),
    Directory(
        tails_cut,
        KILLED,
        says="DAMAGED: 0 messages unreadable, 160 whole",
        cause="a log file is too short or too long",
        does="refuses",
    ),
    Directory(holes_for_zeros, "5.5.1-plain"),
    Directory(holes_for_zeros, "5.3.0-storm-pool-killed"),
    Directory(pid_in_abort, "5.5.1-plain-killed"),
    Directory(last_log_file_of_zeros, KILLED, anew=("consumequeue",)),
    Directory(last_log_file_empty, KILLED, anew=("consumequeue",)),
    Directory(
        log_files_with_a_digit_less,
        KILLED,
        says="DAMAGED: 0 messages unreadable, 160 whole",
        cause="a log file's name has too few digits, or too many",
        does="refuses",
    ),
    Directory(
        a_log_file_with_a_digit_less,
        KILLED,
        says="DAMAGED: 0 messages unreadable, 160 whole",
        cause="a log file's name has too few digits, or too many",
        does="refuses",
    ),
    Directory(
        a_log_file_of_a_full_disk,
        KILLED,
        says="DAMAGED: 0 messages unreadable, 160 whole",
        cause="a log file is too short or too long",
        does="refuses",
    ),
    Directory(a_queue_file_of_a_full_disk, KILLED, anew=("consumequeue",)),
    Directory(an_index_file_of_a_full_disk, KILLED),
    Directory(
        a_unit_of_zeros,
        KILLED,
        says="DAMAGED: 0 messages unreadable, 160 whole",
        cause="units of a queue are wrong or missing",
        anew=("consumequeue",),
    ),
    Directory(
        a_topic_packed,
        KILLED,
        says="DAMAGED: 0 messages unreadable, 160 whole",
        cause="a topic's folder is gone",
    ),
    Directory(
        a_topic_in_capitals,
        KILLED,
        says="DAMAGED: 0 messages unreadable, 160 whole",
        cause="a topic's folder is gone",
        does="refuses",
    ),
    Directory(
        a_cold_log_file_packed,
        "4.9.8-plain",
        says="DAMAGED: 0 messages unreadable, 125 whole",
        cause=OTHERS_NAME,
    ),
    Directory(an_older_copy_of_the_checkpoint, "5.5.1-plain-killed"),
    Directory(copied_while_it_ran, "5.5.1-plain", anew=("consumequeue", "index")),
    Directory(
        copied_queues_first,
        "4.9.8-plain",
        says="DAMAGED: 0 messages unreadable, 160 whole",
        cause="units of a queue are wrong or missing",
        anew=("consumequeue",),
    ),
    Directory(
        folders_alone,
        "4.9.8-plain",
        says="DAMAGED: 0 messages unreadable, 0 whole",
        cause="records of the log are damaged",
    ),
    Directory(tables_of_a_newer_broker, "5.5.1-light"),
    Directory(tables_in_rocksdb, "5.5.1-timers"),
    Directory(topics_of_another_merged, KILLED, does="refuses"),
    Directory(
        a_link_to_a_file_that_is_gone,
        KILLED,
        says="DAMAGED: 33 messages unreadable, 127 whole",
        cause="a log file is too short or too long",
        does="refuses",
    ),
    Directory(
        a_blank_of_zeros,
        KILLED,
        says="CLEAN, BUT A START LOSES 11 MESSAGES",
        does="refuses",
    ),
    Directory(
        delays_gone,
        "5.5.1-delayed",
        says="DAMAGED: 0 messages unreadable, 84 whole",
        cause="a topic's folder is gone",
    ),
    Directory(a_queue_on_another_disk, "5.3.0-light", says="FOREIGN LAYOUT"),
)
