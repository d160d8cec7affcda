package crashmq.field;

import java.util.Set;
import java.util.TreeSet;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.store.CommitLog;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.GetMessageResult;
import org.apache.rocketmq.store.MessageExtBrokerInner;
import org.apache.rocketmq.store.config.MessageStoreConfig;

/** What 4.9 calls by another name, or has not. */
final class Differences {

    private Differences() {
    }

    static long queueOffset(GetMessageResult result, int i, long otherwise) {
        return otherwise;
    }

    static void attributes(TopicConfig topic, String attributes) {
        if (!attributes.isEmpty()) {
            throw new IllegalArgumentException("4.9 knows no attributes of topics");
        }
    }

    static MessageExtBrokerInner innerBatch(Order order) {
        throw new IllegalArgumentException("4.9 knows no inner batches");
    }

    static Object timer(DefaultMessageStore store, MessageStoreConfig config) {
        throw new IllegalArgumentException("4.9 has no timer wheel");
    }

    /** The store itself delivers delayed messages in 4.9; a reader must not have it do so. */
    static void quiet(DefaultMessageStore store) {
        store.getScheduleMessageService().shutdown();
    }

    static int expire(CommitLog log, int files) {
        int deleted = 0;
        for (int i = 0; i < files; i++) {
            deleted += deleteOldest(log);
        }
        return deleted;
    }

    /** 4.9 deletes at most ten at once and has no way to say fewer. */
    private static int deleteOldest(CommitLog log) {
        try {
            var field = CommitLog.class.getDeclaredField("mappedFileQueue");
            field.setAccessible(true);
            var queue = (org.apache.rocketmq.store.MappedFileQueue) field.get(log);
            var first = queue.getFirstMappedFile();
            if (first == null || queue.getMappedFiles().size() < 2 || !isGone(first)) {
                return 0;
            }
            var method = queue.getClass().getDeclaredMethod(
                "deleteExpiredFile", java.util.List.class);
            method.setAccessible(true);
            method.invoke(queue, new java.util.ArrayList<>(java.util.List.of(first)));
            return 1;
        } catch (ReflectiveOperationException changed) {
            throw new IllegalStateException(changed);
        }
    }

    /** Whether the file is deleted; another thread may hold it for a while. */
    private static boolean isGone(org.apache.rocketmq.store.MappedFile file)
        throws ReflectiveOperationException {
        for (int i = 0; i < 20 && !file.destroy(1_000); i++) {
            try {
                Thread.sleep(200);
            } catch (InterruptedException stopped) {
                throw new ReflectiveOperationException(stopped);
            }
        }
        return file.isCleanupOver();
    }

    static void correct(DefaultMessageStore store) {
        long min = store.getMinPhyOffset();
        store.getConsumeQueueTable().values().forEach(queues -> queues.values().forEach(
            queue -> {
                queue.deleteExpiredFile(min);
                queue.correctMinOffset(min);
            }));
    }

    static void forget(DefaultMessageStore store, String topic, Set<String> topics) {
        var kept = new TreeSet<>(store.getConsumeQueueTable().keySet());
        kept.addAll(topics);
        kept.remove(topic);
        store.cleanUnusedTopic(kept);
    }
}
