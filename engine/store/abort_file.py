"""The abort file: it exists while a store is not shut down in order.

Source: DefaultMessageStore#createTempFile, RocketMQ 5.3. Differs: its name is durable
before the store changes anything, since RocketMQ may lose it with the power and then
take a crash for a clean exit.
"""

from __future__ import annotations

from engine.host.disk import Disk

_PATH = "abort"


class AbortFile:
    """The marker of a store in use; it holds the process id as text."""

    def __init__(self, disk: Disk, process_id: int) -> None:
        self._disk = disk
        self._process_id = process_id

    def exists(self) -> bool:
        """Whether the last store here did not end in order, or still runs."""
        return self._disk.exists(_PATH)

    def create(self) -> None:
        """Make the file, durably; one that is there stays as it is."""
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
        """Take the file away, durably."""
        self._disk.remove(_PATH)
        self._disk.sync_dir("")
