"""BrokerTables: the config files of a broker, read and made durable together.

They are read in RocketMQ's order: topics, offsets, groups. None is written before all
were read, so if a start fails on one of them, every file stays as it is.

Source: org.apache.rocketmq.broker.BrokerController#initializeMetadata, RocketMQ 5.3.
Differs: there, a start that fails on one table persists all of them, empty.
"""

from __future__ import annotations

from typing import Protocol

from crashmq.engine.broker.offset.consumer_offset_manager import ConsumerOffsetManager
from crashmq.engine.broker.subscription.subscription_group_manager import (
    SubscriptionGroupManager,
)
from crashmq.engine.broker.topic.topic_config_manager import TopicConfigManager
from crashmq.engine.host.disk import Disk
from crashmq.engine.host.runtime import Runtime


class Table(Protocol):
    """The interface of a table with a config file."""

    def load(self) -> None:
        """Read the file, or its backup; changes nothing on the disk.

        Raises:
            StoreCorrupted: the file or its backup exists, and neither can be read.
        """

    def settle(self) -> None:
        """Make the loaded table durable.

        Raises:
            OSError: the disk failed.
        """

    def end(self) -> None:
        """Stop writing, since another process may use the directory from now on."""


class BrokerTables:
    """The tables of one broker."""

    def __init__(self, disk: Disk, runtime: Runtime) -> None:
        self.topic_config_manager = TopicConfigManager(disk, runtime)
        self.consumer_offset_manager = ConsumerOffsetManager(disk, runtime)
        self.subscription_group_manager = SubscriptionGroupManager(disk, runtime)
        self.all: tuple[Table, ...] = (
            self.topic_config_manager.table,
            self.consumer_offset_manager,
            self.subscription_group_manager.table,
        )

    def load(self) -> None:
        """Read all tables; stop at the first one that cannot be read.

        Raises:
            StoreCorrupted: the file or the backup of a table exists, and neither can be
                read.
        """
        for table in self.all:
            table.load()

    def settle(self) -> None:
        """Make the loaded tables durable, so that no later crash takes them back.

        Raises:
            OSError: the disk failed.
        """
        for table in self.all:
            table.settle()

    def end(self) -> None:
        """Stop writing, since another process may use the directory from now on."""
        for table in self.all:
            table.end()
