"""SubscriptionGroupManager: the consumer groups that a broker knows.

The file is ``config/subscriptionGroup.json``, written again at each change. A group
that no one has configured gets RocketMQ's defaults when it is first needed.

Source: org.apache.rocketmq.broker.subscription.SubscriptionGroupManager, RocketMQ
5.3.0, and its file byte for byte. Differs: RocketMQ's own groups do not exist before
they are used; the table of forbidden reads is kept as it was loaded.
"""

from __future__ import annotations

from collections.abc import Mapping

from crashmq.engine.broker.config_table import ConfigTable
from crashmq.engine.common.subscription_group_config import (
    SubscriptionGroupConfig,
    group_from_json,
    group_to_json,
)
from crashmq.engine.host.disk import Disk
from crashmq.engine.host.probe import probe
from crashmq.engine.host.runtime import Runtime

PATH = "config/subscriptionGroup.json"

UNWRITTEN = probe(
    "subscription_group.unwritten", "a group of a pull could not be written"
)
CREATED = probe("subscription_group.created", "a group got its defaults by its use")


class SubscriptionGroupManager:
    """The configuration of all groups, in memory, and their file.

    Attributes:
        auto_create: whether an unknown group is created with the defaults when it
            is needed. Source: BrokerConfig#autoCreateSubscriptionGroup.
    """

    def __init__(
        self, disk: Disk, runtime: Runtime, *, auto_create: bool = True
    ) -> None:
        codec = group_to_json, group_from_json
        self.table = ConfigTable(disk, runtime, PATH, "subscriptionGroupTable", codec)
        self.table.with_empty("forbiddenTable")
        self.auto_create = auto_create

    @property
    def groups(self) -> Mapping[str, SubscriptionGroupConfig]:
        """All groups by name."""
        return self.table.rows

    def contains_subscription_group(self, group: str) -> bool:
        """Whether a group is configured. Source: #containsSubscriptionGroup."""
        return self.table.get(group) is not None

    def find_subscription_group_config(
        self, group: str
    ) -> SubscriptionGroupConfig | None:
        """A group's configuration, created if it is new; None: it may not be created.

        Raises:
            OSError: the disk failed; nothing has changed.

        Source: SubscriptionGroupManager#findSubscriptionGroupConfig.
        """
        self.table.make_sure()
        known = self.table.get(group)
        if known is not None or not self.auto_create or not group:
            return known

        def make() -> SubscriptionGroupConfig:
            CREATED.hit()
            return SubscriptionGroupConfig(group)

        return self.table.put_if_absent(group, make)

    def find_or_default(self, group: str) -> SubscriptionGroupConfig | None:
        """As ``find_subscription_group_config``, but whatever the disk does.

        A group that cannot be written has the defaults, and is not created. Only who
        relies on no row being durable may ask so: a pull does.
        """
        try:
            return self.find_subscription_group_config(group)
        except OSError:
            UNWRITTEN.hit()
            return self.table.get(group) or SubscriptionGroupConfig(group)

    def update_subscription_group_config(self, group: SubscriptionGroupConfig) -> None:
        """Add a group, or replace its configuration.

        Raises:
            OSError: the disk failed; nothing has changed.

        Source: SubscriptionGroupManager#updateSubscriptionGroupConfig.
        """
        self.table.put(group.group_name, group)

    def delete_subscription_group_config(self, group: str) -> bool:
        """Remove a group; returns whether it existed.

        Raises:
            OSError: the disk failed; nothing has changed.

        Source: SubscriptionGroupManager#deleteSubscriptionGroupConfig.
        """
        return self.table.remove((group,)) > 0
