"""AllocateMappedFileService: creates the log's next file before a put needs it.

A put that rolls the log takes the file that is ready, or creates it. The file after
that is then requested, and the service creates it. So there is at most one file beyond
the last, all zeros; an orderly shutdown removes it, a start after a crash removes or
uses it.

Source: org.apache.rocketmq.store.AllocateMappedFileService, RocketMQ 5.3. Differs: a
put does not wait for the service to create the file: if the file is not ready, the put
creates it, under the lock that keeps both from creating it.
"""

from __future__ import annotations

from crashmq.engine.host.disk import Disk
from crashmq.engine.host.probe import probe
from crashmq.engine.host.runtime import Runtime
from crashmq.engine.store.logfile.mapped_file import MappedFile, file_name
from crashmq.engine.store.logfile.mapped_file_queue import new_file
from crashmq.engine.store.logfile.transient_store_pool import TransientStorePool

READY = probe("allocate.ready", "a roll took the file that was created ahead")
NOT_READY = probe("allocate.not_ready", "a roll had to create its file itself")
MADE = probe("allocate.made", "a file was created before it was needed")
FAILED = probe(
    "allocate.failed", "the disk could not create a file ahead; the request stays"
)
DISCARDED = probe("allocate.discarded", "a file created ahead was removed at shutdown")
LEFT_OVER = probe(
    "allocate.left_over",
    "a file whose creation and removal had failed was removed at shutdown",
)


class AllocateMappedFileService:
    """Creates the files of one queue; as a service, the next one ahead."""

    name = "allocate"
    interval_ms = 10

    def __init__(
        self,
        disk: Disk,
        path: str,
        file_size: int,
        runtime: Runtime,
        pool: TransientStorePool | None = None,
    ) -> None:
        self._disk = disk
        self._path = path
        self._file_size = file_size
        self._pool = pool
        self._lock = runtime.lock()
        self._ready: MappedFile | None = None
        self._wanted = -1
        self._unmade = ""  # path of a file that a failed creation may have left

    def take(self, offset: int) -> MappedFile:
        """The file that begins at ``offset``: the prepared one, or a new one.

        Raises:
            OSError: it could not be created.

        Source: AllocateMappedFileService#putRequestAndReturnMappedFile.
        """
        with self._lock:
            file, self._ready = self._ready, None
            if file is None:
                NOT_READY.hit()
                file = self._make(offset)
            else:
                READY.hit()
            assert file.file_from_offset == offset, (file, offset)
            self._wanted = offset + self._file_size
            return file

    def run_once(self) -> int:
        """Create the requested file; returns how many files were created.

        Raises:
            OSError: the disk failed; the file stays requested.

        Source: AllocateMappedFileService#mmapOperation.
        """
        with self._lock:
            if self._wanted < 0 or self._ready is not None:
                return 0
            try:
                # A name must not be durable before that of the file before it.
                self._disk.sync_dir(self._path)
                self._ready = self._make(self._wanted)
            except OSError:
                FAILED.hit()
                raise
            MADE.hit()
            return 1

    def _make(self, offset: int) -> MappedFile:
        # After a failure the next file to be made is the same one.
        self._unmade = f"{self._path}/{file_name(offset)}"
        file = new_file(self._disk, self._unmade, self._file_size, self._pool)
        self._unmade = ""
        return file

    def discard(self) -> None:
        """Remove the prepared file if it is unused, and create no more files.

        The same for a file that a failed creation left and could not remove: what is in
        it may not be durable, so a start after an orderly end must not find it.

        Raises:
            OSError: it could not be removed; a start will.

        Source: AllocateMappedFileService#shutdown.
        """
        with self._lock:
            self._wanted = -1
            if self._ready is not None:
                DISCARDED.hit()
                self._ready.destroy()  # if it fails, ``close`` closes it
                self._ready = None
            elif self._unmade and self._disk.exists(self._unmade):
                LEFT_OVER.hit()
                self._disk.remove(self._unmade)
            else:
                return
            self._disk.sync_dir(self._path)

    def close(self) -> None:
        """Close the prepared file if it is unused; it stays on the disk."""
        if self._ready is not None:
            self._ready.close()
