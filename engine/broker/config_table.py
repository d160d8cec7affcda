"""ConfigTable: named rows in one config file; a change is durable before it is visible.

As in RocketMQ, each change writes the whole table again. If a change could not be
written, rows and version are as before in memory; the file, and so the next start, may
still have it, until ``make_sure`` or another change has written the file again.

Source: org.apache.rocketmq.common.ConfigManager, as TopicConfigManager and
SubscriptionGroupManager use it. Differs: there a change is visible first, and a failed
persist is only logged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Generic, TypeVar

from crashmq.engine.common.bean import Bean
from crashmq.engine.common.config_file import ConfigFile
from crashmq.engine.common.data_version import DataVersion
from crashmq.engine.common.fastjson import (
    Json,
    JsonKey,
    in_hash_order,
    pretty,
    read_json,
)
from crashmq.engine.host.disk import Disk
from crashmq.engine.host.probe import probe
from crashmq.engine.host.runtime import Runtime
from crashmq.engine.store.message.message import java_string_hash

AGAIN = probe("config_table.again", "a table was written again after a failed change")

_TABLE_BINS = 2048  # of a ConcurrentHashMap that is to hold 1024

Row = TypeVar("Row")


class ConfigTable(Generic[Row]):
    """The rows of one file, by name; unknown fields of the file are kept."""

    def __init__(
        self,
        disk: Disk,
        runtime: Runtime,
        path: str,
        field: str,
        codec: tuple[Callable[[Row], Json], Callable[[str, Json], Row]],
    ) -> None:
        self._file = ConfigFile(disk, path, runtime)
        self._runtime = runtime
        self._lock = runtime.lock()
        self._field = field
        self._encode_row, self._decode_row = codec
        self._rows: dict[str, Row] = {}
        self._others: dict[str, Json] = {}
        self._may_differ = False  # the file may have a change that failed
        self.data_version = DataVersion(runtime.now_ms())

    def begin_with(self, rows: Mapping[str, Row]) -> None:
        """Add default rows, in memory only; rows of the same name in the file win."""
        self._rows = {**rows, **self._rows}

    def with_empty(self, *fields: str) -> None:
        """Always write these fields, empty if the file does not have them."""
        self._others = {name: {} for name in fields}

    def load(self) -> None:
        """Read the file, or its backup; changes nothing on the disk.

        Raises:
            StoreCorrupted: the file or its backup exists, and neither can be read.
        """
        self._file.load(self._decode)

    def settle(self) -> None:
        """Make the loaded rows durable, so that no later crash takes them back.

        Raises:
            OSError: the disk failed.
        """
        self._file.settle()

    def end(self) -> None:
        """Stop writing; later writes raise ``StoreStopped``."""
        self._file.end()

    @property
    def rows(self) -> Mapping[str, Row]:
        """All rows, by name; an immutable snapshot."""
        return self._rows

    def get(self, name: str) -> Row | None:
        """One row; None if there is none."""
        return self._rows.get(name)

    def put(self, name: str, row: Row) -> None:
        """Add or replace a row, durably.

        Raises:
            ValueError: no start could load such a row; nothing has changed.
            OSError: the disk failed; the table in memory is as before.
        """
        self._decode_row(name, self._encode_row(row))
        with self._lock:
            self._become({**self._rows, name: row})

    def put_if_absent(self, name: str, make: Callable[[], Row]) -> Row:
        """The row of that name; if there is none, add what ``make`` returns, durably.

        Raises:
            OSError: the disk failed; no row was added.
        """
        self.make_sure()
        known = self._rows.get(name)
        if known is not None:
            return known
        with self._lock:
            known = self._rows.get(name)
            if known is None:
                known = make()
                self._become({**self._rows, name: known})
        return known

    def remove(self, names: Iterable[str]) -> int:
        """Remove rows, durably; returns how many existed.

        Raises:
            OSError: the disk failed; the table in memory is as before.
        """
        gone = set(names)
        self.make_sure()
        with self._lock:
            left = {name: row for name, row in self._rows.items() if name not in gone}
            count = len(self._rows) - len(left)
            if count:
                self._become(left)
        return count

    def _become(self, rows: dict[str, Row]) -> None:
        version = DataVersion(0)
        version.assign(self.data_version.to_json())
        version.next_version(self._runtime.now_ms())
        self._write(self._encode(rows, version))
        self._rows, self.data_version = rows, version

    def persist(self) -> None:
        """Write the present rows to the file.

        Raises:
            OSError: the disk failed.
        """
        with self._lock:
            self._write(self.encode())

    def make_sure(self) -> None:
        """Write the present rows if the file may have a change that failed.

        Whoever relies on a row calls it: a topic whose deletion failed is gone at the
        next start otherwise, with the messages that were put into it since.

        Raises:
            OSError: the disk failed again.
        """
        if self._may_differ:
            with self._lock:
                if self._may_differ:
                    AGAIN.hit()
                    self._write(self.encode())

    def _write(self, text: str) -> None:
        try:
            self._file.persist(text)
        except OSError:
            self._may_differ = True
            raise
        self._may_differ = False

    def encode(self) -> str:
        """The table as the text of its file."""
        return self._encode(self._rows, self.data_version)

    def _encode(self, rows: Mapping[str, Row], version: DataVersion) -> str:
        names = in_hash_order(rows, java_string_hash, _TABLE_BINS)
        table: dict[JsonKey, Json] = {
            name: self._encode_row(rows[name]) for name in names
        }
        fields: dict[str, Json] = {
            **self._others,
            "dataVersion": version.to_json(),
            self._field: table,
        }
        return pretty({name: fields[name] for name in sorted(fields)})

    def _decode(self, text: str) -> None:
        found = Bean(read_json(text), "the table")
        rows = Bean(found.fields(self._field), self._field)
        version = DataVersion(self.data_version.timestamp)
        version.assign(found.fields("dataVersion"))
        decoded = {name: self._decode_row(name, rows.get(name)) for name in rows.names}
        self._others = {name: found.fields(name) for name in self._others}
        self._rows, self.data_version = {**self._rows, **decoded}, version
