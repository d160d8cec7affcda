"""The abort file: it exists from a start until an orderly shutdown.

Source: DefaultMessageStore#createTempFile, RocketMQ 5.3. Differs: its name is durable
before the store changes anything. RocketMQ may lose the file in a power loss and then
take the crash for an orderly shutdown.
"""

from __future__ import annotations

from crashmq.engine.host.disk import Disk

_PATH = "abort"


class AbortFile:
    """The file that marks a store as in use; it holds the process id as text."""

    def __init__(self, disk: Disk, process_id: int) -> None:
        self._disk = disk
        self._process_id = process_id

    def exists(self) -> bool:
        """Whether the previous run had no orderly shutdown, or is still running."""
        return self._disk.exists(_PATH)

    def create(self) -> None:
        """Create the file durably; an existing one stays as it is."""
        if not self.exists():
            text = str(self._process_id).encode()
            file = self._disk.open(_PATH, len(text), create=True, mapped=False)
            try:
                file.write_at(0, text)
                file.sync()
            finally:
                file.close()
        self._disk.sync_dir("")

    def remove(self) -> None:
        """Remove the file durably."""
        self._disk.remove(_PATH)
        self._disk.sync_dir("")
