"""The numbers used by laws, each with its place in RocketMQ 5.3.0.

They are taken from RocketMQ and written down here once: no law takes a number from the
store that it judges. Where a program's ``Setup`` can set another value, it says so.
Where our store differs on purpose, ``docs/sharp-edges.md`` says so.
"""

from __future__ import annotations

from typing import Final

PAGE_SIZE: Final = 4096
"""Least pages are counted by the numbers of such pages: MappedFile.OS_PAGE_SIZE."""

LOG_LEAST_PAGES: Final = 4
"""MessageStoreConfig#flushCommitLogLeastPages, #commitCommitLogLeastPages."""

QUEUE_LEAST_PAGES: Final = 2
"""MessageStoreConfig#flushConsumeQueueLeastPages."""

COMMIT_THOROUGH_MS: Final = 200
"""MessageStoreConfig#commitCommitLogThoroughInterval."""

SYNC_TIMEOUT_MS: Final = 5000
"""MessageStoreConfig#syncFlushTimeout."""

PUT_TIMES_MS: Final = (10, 50, 100, 200, 500, 1000, 2000, 3000, 4000, 5000, 10_000)
"""A put that took less than the first is counted in a range of its own, and so on:
StoreStatsService#setPutMessageEntireTimeMax; the range before all is of 0 ms."""

QUEUES_OF_A_TOPIC: Final = 8
"""So many queues a producer's new topic gets at most, and as many programs ask for.

Source: TopicConfigManager, its TBW102.
"""

DISPATCH_TIMEOUT_MS: Final = 5000
"""ReputMessageService#shutdown: 50 looks of 100 ms."""

DELETE_BATCH: Final = 10
"""MessageStoreConfig#deleteFileBatchMax."""

ROUNDS_OF_A_REQUEST: Final = 20
"""CleanCommitLogService.MAX_MANUAL_DELETE_FILE_TIMES."""

DELETE_FROM_PERCENT: Final = 75
"""MessageStoreConfig#diskMaxUsedSpaceRatio; files go that have expired."""

FORCE_FROM_PERCENT: Final = 85
"""MessageStoreConfig#diskSpaceCleanForciblyRatio; files go of any age."""

STOP_FROM_PERCENT: Final = 90
"""MessageStoreConfig#diskSpaceWarningLevelRatio; no put is taken."""

SCAN_UNITS: Final = 800
"""MessageStoreConfig#maxFilterMessageSize, 16,000 B of units of 20 B. RocketMQ 5.3.0
looks at one more; 4.9, 5.3.3 and our store do not."""

NEAR_TRANSFER: Final = (32, 262_144)
"""MessageStoreConfig#maxTransferCountOnMessageInMemory and the bytes beside it."""

FAR_TRANSFER: Final = (8, 65_536)
"""MessageStoreConfig#maxTransferCountOnMessageInDisk and the bytes beside it."""

QUERY_MAX: Final = 64
"""MessageStoreConfig#maxMsgsNumBatch."""

FILTERS_KEPT_MS: Final = 24 * 3_600_000
"""So long a broker keeps the filters of a group without members. Source: BrokerConfig
#filterDataCleanTimeSpan."""

SUSPEND_MS: Final = 15_000
"""DefaultMQPushConsumerImpl.BROKER_SUSPEND_MAX_TIME_MILLIS; so long a pull waits."""

SHORT_POLLING_MS: Final = 1_000
"""BrokerConfig#shortPollingTimeMills; the same without long polling."""

PULL_MAX_IDLE_MS: Final = 120_000
"""ProcessQueue#PULL_MAX_IDLE_TIME; a queue without a pull is begun again."""

CLIENT_SILENT_MS: Final = 120_000
"""ConsumerManager, channelExpiredTimeout; a silent client is no member any more."""

QUEUE_LOCK_MS: Final = 60_000
"""RebalanceLockManager.REBALANCE_LOCK_MAX_LIVE_TIME."""

PUT_OFF_MS: Final = 5_000
"""After so long a consumer takes up whatever it has put off.

ConsumeMessageConcurrentlyService#submitConsumeRequestLater.
"""

PAUSE_MS: Final = 1_000
"""DefaultMQPushConsumer#suspendCurrentQueueTimeMillis."""

PAUSE_MS_MIN: Final = 10
"""ConsumeMessageOrderlyService#submitConsumeRequestLater."""

REBALANCE_MS: Final = 20_000
"""RebalanceService#waitInterval; so long after all is well a client looks again."""

REBALANCE_AGAIN_MS: Final = 1_000
"""RebalanceService#minInterval; so long after it was not."""

LISTENERS_AWAITED_MS: Final = 30_000
"""So long a consumer that stops waits for its listeners, as it is configured.

DefaultMQPushConsumer#awaitTerminateMillisWhenShutdown.
"""

FILTER_BITS: Final = 3
"""Positions that a filter has in a bit map; BloomFilter#createByFn, 20 % for 32."""

BIT_MAP_BITS: Final = 112
"""The bits of a bit map, for 32 groups and an error rate of 20 %.

Source: BrokerConfig#expectConsumerNumUseFilter, #maxErrorRateOfBloomFilter,
BloomFilter#BloomFilter.
"""
