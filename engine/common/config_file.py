"""ConfigFile: a text file that is replaced as a whole, with a backup beside it.

A persist first writes the old text to the backup, then the new text to the file, each
to a temporary file that is synced and renamed. So at every disk action of a persist the
file exists and is whole, for a kill and for power loss. The backup is for damage of the
file. If both are missing, the table is new. If neither is whole, a start refuses and
leaves them unchanged.

Source: org.apache.rocketmq.common.ConfigManager#load, #persist, MixAll#string2File,
RocketMQ 5.3. Differs: RocketMQ has no sync before HEAD, writes in place since 5.1,
loads nothing where it finds two empty files, and overwrites what it could not read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from crashmq.engine.host.disk import Disk
from crashmq.engine.host.probe import probe
from crashmq.engine.host.runtime import Runtime
from crashmq.engine.store.errors import Place, StoreCorrupted, StoreStopped

BACKUP = ".bak"
TEMPORARY = ".tmp"

LOADED = probe("config_file.load", "a start found a file of a table")
NEW = probe("config_file.load.new", "a start found neither a file nor its backup")
FROM_BACKUP = probe("config_file.load.backup", "a start took a backup for its file")
REFUSED = probe("config_file.load.refused", "a start found no copy of a table whole")
PERSISTED = probe("config_file.persist", "a table was made durable")
MADE_BY_ANOTHER = probe(
    "config_file.persist.folder_there", "another table made the folder at the same time"
)
LEFT_OVER = probe("config_file.persist.left_over", "a temporary file was left over")
TOO_LATE = probe("config_file.persist.too_late", "a table changed as its broker stops")

T = TypeVar("T")


class ConfigFile:
    """One file ``path`` below the disk's root, and its backup.

    Invariants:
        nothing is written before ``load`` has succeeded
    """

    def __init__(self, disk: Disk, path: str, runtime: Runtime) -> None:
        self._disk = disk
        self._path = path
        self._lock = runtime.lock()
        self._kept = b""  # the newest text that is known to be whole; b"": none is
        self._is_loaded = False
        self._is_over = False
        self._has_durable_folders = False

    def _check(self) -> None:
        assert self._is_loaded or not self._kept, self._path

    def load(self, decode: Callable[[str], T]) -> T | None:
        """The decoded file, or else the decoded backup; None: neither exists.

        Nothing on the disk is changed.

        Args:
            decode: reads a whole text; raises ValueError for any other.

        Raises:
            StoreCorrupted: the file or its backup exists, and neither is whole.
        """
        found = [self._read(path) for path in (self._path, self._path + BACKUP)]
        for data, mark in zip(found, (LOADED, FROM_BACKUP), strict=True):
            if not data:
                continue
            try:
                value = decode(data.decode())
            except ValueError:
                continue
            mark.hit()
            self._kept, self._is_loaded = data, True
            return value
        if found != [None, None]:
            REFUSED.hit()
            raise StoreCorrupted(
                f"neither it nor {self._path}{BACKUP} is intact, so what they held is "
                "unknown. Put one of them back from a copy, or remove both to begin "
                "without. Nothing was changed.",
                Place(self._path),
            )
        NEW.hit()
        self._is_loaded = True
        return None

    def _read(self, path: str) -> bytes | None:
        """The bytes of a file; None if there is none."""
        if not self._disk.exists(path):
            return None
        try:
            size = self._disk.file_size(path)
            if not size:
                return b""
            file = self._disk.open(path, size, create=False, mapped=False)
            try:
                return file.read_at(0, size)
            finally:
                file.close()
        except OSError as error:
            raise StoreCorrupted(
                f"it cannot be read ({error}). Mend the disk, or put the file back "
                f"from a copy. Nothing was changed.",
                Place(path),
            ) from None

    def settle(self) -> None:
        """Write the loaded text again, since it may be in the page cache only.

        Raises:
            OSError: the disk failed; another start does it.
        """
        if self._kept:
            self._sync_folders()
            self._write_whole(self._path, self._kept)
            self._disk.sync_dir(_folder_of(self._path))
        elif self._disk.is_dir(_folder_of(self._path)):
            # What is gone from it may have been removed by a life that was killed.
            if self._disk.exists(self._path + TEMPORARY):
                self._disk.remove(self._path + TEMPORARY)
            self._disk.sync_dir(_folder_of(self._path))

    def persist(self, text: str) -> None:
        """Replace the file by ``text``, durably; the old text goes to the backup.

        Raises:
            OSError: the file has the old text or the new one, whole either way.
            StoreStopped: the broker stops; the file has the old text.
        """
        self.persist_newest(lambda: text)

    @property
    def kept(self) -> bytes:
        """The newest text that is known to be whole; b"": none is."""
        return self._kept

    def persist_newest(self, encode: Callable[[], str]) -> None:
        """As ``persist``, but ``encode`` makes the text once no other persist runs.

        So of several callers at once, the last one to write also has the newest text.

        Raises:
            OSError: the file has the old text or the new one, whole either way.
            StoreStopped: the broker stops; the file has the old text.
        """
        assert self._is_loaded, f"{self._path} is not loaded: it may hold more"
        with self._lock:
            data = encode().encode()
            if self._is_over:
                TOO_LATE.hit()
                raise StoreStopped(f"the broker stops: {self._path} stays as it is.")
            try:
                self._replace(data)
            except OSError:
                # The backup may be another one already, and perhaps nobody tries again.
                if self._has_durable_folders:
                    self._disk.sync_dir(_folder_of(self._path))
                raise
            self._kept = data
        PERSISTED.hit()

    def end(self) -> None:
        """Wait for a persist in progress; later ones change nothing."""
        with self._lock:
            self._is_over = True

    def _replace(self, data: bytes) -> None:
        self._sync_folders()
        if self._kept:
            self._write_whole(self._path + BACKUP, self._kept)
        self._write_whole(self._path, data)
        self._disk.sync_dir(_folder_of(self._path))

    def _write_whole(self, path: str, data: bytes) -> None:
        temporary = self._path + TEMPORARY
        if self._disk.exists(temporary):
            LEFT_OVER.hit()
            self._disk.remove(temporary)
        file = self._disk.open(temporary, len(data), create=True, mapped=False)
        try:
            file.write_at(0, data)
            file.sync()
        finally:
            file.close()
        self._disk.rename(temporary, path)

    def _sync_folders(self) -> None:
        """Create the folders of the path, and make their directory entries durable."""
        if self._has_durable_folders:
            return
        folders = self._path.split("/")[:-1]
        for depth in range(len(folders)):
            folder = "/".join(folders[: depth + 1])
            if not self._disk.is_dir(folder):
                self._make_folder(folder)
            self._disk.sync_dir("/".join(folders[:depth]))
        self._has_durable_folders = True

    def _make_folder(self, folder: str) -> None:
        """Create a folder, unless another table has created it meanwhile."""
        try:
            self._disk.make_dir(folder)
        except FileExistsError:
            if not self._disk.is_dir(folder):
                raise
            MADE_BY_ANOTHER.hit()


def _folder_of(path: str) -> str:
    return path.rpartition("/")[0]
