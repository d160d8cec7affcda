package crashmq.golden;

import java.io.IOException;
import java.nio.file.Path;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.config.FlushDiskType;
import org.apache.rocketmq.store.config.MessageStoreConfig;
import org.apache.rocketmq.store.stats.BrokerStatsManager;

/** A loaded and started DefaultMessageStore; every setting not named here is RocketMQ's. */
final class OpenStore {

    private static final long DRAIN_MS_MAX = 30_000;
    private static final int NEVER_EXPIRE_HOURS = 24 * 365 * 100;

    private OpenStore() {
    }

    static DefaultMessageStore open(Options options) throws Exception {
        DefaultMessageStore store = create(options);
        if (!store.load()) {
            throw new IllegalStateException(
                "DefaultMessageStore.load refused " + options.root()
                    + "; check the file sizes given against the directory");
        }
        store.start();
        return store;
    }

    /** Wait until every record is in its ConsumeQueue and index. */
    static void awaitDispatch(DefaultMessageStore store) throws InterruptedException {
        long deadline = System.nanoTime() + DRAIN_MS_MAX * 1_000_000;
        while (store.dispatchBehindBytes() > 0) {
            if (System.nanoTime() > deadline) {
                throw new IllegalStateException("dispatch is still "
                    + store.dispatchBehindBytes() + " bytes behind after " + DRAIN_MS_MAX + " ms");
            }
            Thread.sleep(1);
        }
    }

    /** A store that has neither been loaded nor started. */
    static DefaultMessageStore create(Options options) throws IOException {
        var broker = new BrokerConfig();
        broker.setBrokerName("golden");
        return new DefaultMessageStore(
            config(options), new BrokerStatsManager(broker), null, broker,
            new ConcurrentHashMap<>());
    }

    private static MessageStoreConfig config(Options options) {
        Path root = options.root();
        var config = new MessageStoreConfig();
        config.setStorePathRootDir(root.toString());
        config.setStorePathCommitLog(root.resolve("commitlog").toString());
        config.setMappedFileSizeCommitLog(options.positive("log-file-size", 65_536));
        config.setMappedFileSizeConsumeQueue(options.positive("queue-file-size", 6_000));
        config.setMaxHashSlotNum(options.positive("index-slots", 256));
        config.setMaxIndexNum(options.positive("index-entries", 1_024));
        config.setMessageIndexEnable(options.oneOf("index", "on", "off").equals("on"));
        config.setFlushDiskType(flushDiskType(options));
        setKind(config, kind(options));
        config.setHaListenPort(0);
        // An unpacked fixture is old by its file times; nothing in it may expire.
        config.setFileReservedTime(NEVER_EXPIRE_HOURS);
        config.setCleanFileForciblyEnable(false);
        return config;
    }

    /** What the records of a store are, beside plain. */
    static String kind(Options options) {
        return options.oneOf("kind", "plain", "batch", "lmq", "ipv6", "crc");
    }

    private static void setKind(MessageStoreConfig config, String kind) {
        config.setEnableLmq(kind.equals("lmq"));
        config.setEnableMultiDispatch(kind.equals("lmq"));
        config.setEnabledAppendPropCRC(kind.equals("crc"));
    }

    private static FlushDiskType flushDiskType(Options options) {
        boolean isSync = options.oneOf("flush", "async", "sync").equals("sync");
        return isSync ? FlushDiskType.SYNC_FLUSH : FlushDiskType.ASYNC_FLUSH;
    }
}
