package crashmq.client;

import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.TreeMap;
import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.client.consumer.store.LocalFileOffsetStore;
import org.apache.rocketmq.client.impl.factory.MQClientInstance;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * Reads the offsets of a broadcasting consumer with the released store, and writes them again.
 *
 * <p>Arguments: client id, group, topic. The directory of all clients is the system property
 * {@code rocketmq.client.localOffsetStoreDir}. A line a queue of the topic: broker, queue, offset.
 * Then every offset goes one further, and all are persisted.
 */
public final class LocalOffsets {

    private LocalOffsets() {
    }

    public static void main(String[] args) throws Exception {
        PrintStream out =
            new PrintStream(new FileOutputStream(FileDescriptor.out), false, StandardCharsets.UTF_8);
        System.setOut(System.err);
        MQClientInstance client = new MQClientInstance(new ClientConfig(), 0, args[0]);
        LocalFileOffsetStore store = new LocalFileOffsetStore(client, args[1]);
        store.load();
        Map<MessageQueue, Long> found = new TreeMap<>(store.cloneOffsetTable(args[2]));
        for (Map.Entry<MessageQueue, Long> one : found.entrySet()) {
            MessageQueue queue = one.getKey();
            out.println(queue.getBrokerName() + "\t" + queue.getQueueId() + "\t" + one.getValue());
            store.updateOffset(queue, one.getValue() + 1, true);
        }
        store.persistAll(found.keySet());
        out.flush();
        // A client leaves threads behind that would keep the JVM alive.
        System.exit(0);
    }
}
