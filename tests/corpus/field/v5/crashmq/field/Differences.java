package crashmq.field;

import java.util.HashMap;
import java.util.Set;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageConst;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExtBatch;
import org.apache.rocketmq.common.message.MessageExtBrokerInner;
import org.apache.rocketmq.common.sysflag.MessageSysFlag;
import org.apache.rocketmq.store.CommitLog;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.GetMessageResult;
import org.apache.rocketmq.store.config.MessageStoreConfig;
import org.apache.rocketmq.store.config.StorePathConfigHelper;
import org.apache.rocketmq.store.stats.BrokerStatsManager;
import org.apache.rocketmq.store.timer.TimerCheckpoint;
import org.apache.rocketmq.store.timer.TimerMessageStore;
import org.apache.rocketmq.store.timer.TimerMetrics;

/** What 5.x calls by another name than 4.9. */
final class Differences {

    private Differences() {
    }

    static long queueOffset(GetMessageResult result, int i, long otherwise) {
        return result.getMessageQueueOffset().size() > i
            ? result.getMessageQueueOffset().get(i) : otherwise;
    }

    /** {@code name:value} pairs, apart by commas. */
    static void attributes(TopicConfig topic, String attributes) {
        var map = new HashMap<String, String>();
        for (String one : attributes.isEmpty() ? new String[0] : attributes.split(",")) {
            map.put(one.substring(0, one.indexOf(':')), one.substring(one.indexOf(':') + 1));
        }
        topic.setAttributes(map);
    }

    /** A batch kept as one record, for a topic of BatchCQ: SendMessageProcessor makes it so. */
    static MessageExtBrokerInner innerBatch(Order order) {
        var batch = new MessageExtBatch();
        Puts.place(batch, order);
        MessageAccessor.setProperties(batch, Puts.properties(order));
        batch.setSysFlag(batch.getSysFlag()
            | MessageSysFlag.NEED_UNWRAP_FLAG | MessageSysFlag.INNER_BATCH_FLAG);
        batch.setInnerBatch(true);
        MessageAccessor.putProperty(batch, MessageConst.PROPERTY_INNER_NUM, order.text("count"));
        batch.setPropertiesString(
            MessageDecoder.messageProperties2String(batch.getProperties()));
        return batch;
    }

    static Object timer(DefaultMessageStore store, MessageStoreConfig config) throws Exception {
        String root = config.getStorePathRootDir();
        var timer = new TimerMessageStore(store, config,
            new TimerCheckpoint(root + "/config/timercheck"),
            new TimerMetrics(root + "/config/timermetrics"),
            new BrokerStatsManager("field", true));
        timer.registerEscapeBridgeHook(store::putMessage);
        store.setTimerMessageStore(timer);
        if (!timer.load()) {
            throw new IllegalStateException("the timer store does not load");
        }
        timer.start();
        timer.setShouldRunningDequeue(true);
        return timer;
    }

    static void quiet(DefaultMessageStore store) {
        // A 5.x store delivers nothing by itself.
    }

    static int expire(CommitLog log, int files) {
        return log.deleteExpiredFile(0, 0, 1_000, true, files);
    }

    static void correct(DefaultMessageStore store) throws Exception {
        Object queues = store.getClass().getMethod("getQueueStore").invoke(store);
        queues.getClass().getMethod("cleanExpired", long.class)
            .invoke(queues, store.getMinPhyOffset());
    }

    static void forget(DefaultMessageStore store, String topic, Set<String> topics) {
        store.deleteTopics(Set.of(topic));
    }
}
