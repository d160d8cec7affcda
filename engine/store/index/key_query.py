"""Query by key: reads the records that the index finds and keeps those with the key.

Source: DefaultMessageStore#queryMessage, RocketMQ 5.3. Differs: a hit counts only if
its record has the key, the topic and a time within the range, so a key with the same
hash is never returned and never uses up max_num; and a record is returned once.
"""

from __future__ import annotations

from contextlib import closing

from crashmq.engine.host.probe import probe
from crashmq.engine.store.clean.deleted_topics import DeletedTopics
from crashmq.engine.store.commit_log import CommitLog
from crashmq.engine.store.config import StoreConfig
from crashmq.engine.store.index.index_keys import keys_of
from crashmq.engine.store.index.index_service import IndexService
from crashmq.engine.store.results import QueryMessageResult

FOUND = probe("key_query.found", "a query found a message")
OTHER = probe("key_query.other", "a hit's record does not have the key")
GONE = probe("key_query.gone", "a hit's record has expired")
DEAD = probe("key_query.dead", "a hit's record is one of a deleted topic")
LIMITED = probe("key_query.limited", "a query stopped at its limit")


class KeyQuery:
    """Answers queries by key."""

    def __init__(
        self,
        config: StoreConfig,
        commit_log: CommitLog,
        index: IndexService,
        deleted: DeletedTopics,
    ) -> None:
        self._config = config
        self._deleted = deleted
        self._commit_log = commit_log
        self._index = index

    def query(
        self, topic: str, key: str, max_num: int, begin_ms: int, end_ms: int
    ) -> QueryMessageResult:
        """The newest messages with the key, in log order.

        Raises:
            OSError: the medium could not be read.
        """
        most = min(max_num, self._config.max_msgs_num_batch)
        found: list[bytes] = []
        with closing(self._index.offsets(topic, key, begin_ms, end_ms)) as offsets:
            for phy_offset in offsets:
                if len(found) >= most:
                    LIMITED.hit()
                    break
                data = self._commit_log.look_message_by_offset(phy_offset)
                if data is None:
                    GONE.hit()
                    continue
                request = self._commit_log.check_message(phy_offset, data, 0)
                dead_below = self._deleted.dead_below(topic, request.queue_id)
                if phy_offset < dead_below:
                    DEAD.hit()
                    continue
                is_within = begin_ms <= request.store_timestamp <= end_ms
                carries = request.topic == topic and key in keys_of(request.properties)
                if is_within and carries:
                    FOUND.hit()
                    found.append(data)
                else:
                    OTHER.hit()
        return QueryMessageResult(tuple(reversed(found)))
