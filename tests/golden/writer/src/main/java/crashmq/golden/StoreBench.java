package crashmq.golden;

import com.alibaba.fastjson2.JSONObject;
import java.io.PrintStream;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.util.HashMap;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageExtBrokerInner;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.GetMessageResult;
import org.apache.rocketmq.store.PutMessageStatus;
import org.apache.rocketmq.store.SelectMappedBufferResult;

/** Times puts, pulls and a start of the real store; one JSON line of seconds and counts. */
final class StoreBench {

    private static final String TOPIC = "bench";
    private static final int QUEUES = 4;
    private static final int PULL_COUNT_MAX = 32;
    private static final InetSocketAddress HOST = new InetSocketAddress("127.0.0.1", 10911);

    private StoreBench() {
    }

    /** Warm up on a quarter, then time the rest: puts, dispatch to its end, pulls of all. */
    static void bench(Options options, PrintStream lines) throws Exception {
        if (Files.exists(options.root())) {
            throw new IllegalArgumentException(
                options.root() + " exists already; name a new directory");
        }
        int messages = options.positive("messages", 100_000);
        byte[] body = new byte[options.positive("body-size", 100)];
        boolean isHalted = options.oneOf("end", "clean", "halt").equals("halt");
        DefaultMessageStore store = OpenStore.open(options);
        put(store, 0, messages / 4, body);
        OpenStore.awaitDispatch(store);
        var line = new JSONObject();
        line.put("messages", messages);
        line.put("warm_messages", messages / 4);
        long begun = System.nanoTime();
        put(store, messages / 4, messages, body);
        line.put("put_s", secondsSince(begun));
        OpenStore.awaitDispatch(store);
        line.put("dispatched_s", secondsSince(begun));
        pull(store);
        begun = System.nanoTime();
        line.put("pulled", pull(store));
        line.put("pull_s", secondsSince(begun));
        line.put("log_bytes", store.getMaxPhyOffset());
        lines.println(line);
        lines.flush();
        if (isHalted) {
            Runtime.getRuntime().halt(0);
        }
        store.shutdown();
    }

    /** Time {@code load}, which recovers the log and its queues. */
    static void load(Options options, PrintStream lines) throws Exception {
        if (!Files.isDirectory(options.root())) {
            throw new IllegalArgumentException(options.root() + " is not a directory");
        }
        DefaultMessageStore store = OpenStore.create(options);
        long begun = System.nanoTime();
        if (!store.load()) {
            throw new IllegalStateException("DefaultMessageStore.load refused " + options.root());
        }
        var line = new JSONObject();
        line.put("load_s", secondsSince(begun));
        line.put("log_bytes", store.getMaxPhyOffset());
        lines.println(line);
    }

    private static void put(DefaultMessageStore store, int from, int to, byte[] body) {
        for (int i = from; i < to; i++) {
            var message = new MessageExtBrokerInner();
            MessageAccessor.setProperties(message, new HashMap<>());
            message.setTopic(TOPIC);
            message.setQueueId(i % QUEUES);
            message.setBody(body);
            message.setBornHost(HOST);
            message.setStoreHost(HOST);
            message.setBornTimestamp(System.currentTimeMillis());
            message.setPropertiesString("");
            if (store.putMessage(message).getPutMessageStatus() != PutMessageStatus.PUT_OK) {
                throw new IllegalStateException("message " + i + " was not acknowledged");
            }
        }
    }

    /** Read every queue whole, each message copied out as a reader would; how many. */
    private static long pull(DefaultMessageStore store) {
        long pulled = 0;
        for (int queueId = 0; queueId < QUEUES; queueId++) {
            long end = store.getMaxOffsetInQueue(TOPIC, queueId);
            long offset = 0;
            while (offset < end) {
                GetMessageResult result = store.getMessage(
                    "bench", TOPIC, queueId, offset, PULL_COUNT_MAX, null);
                for (SelectMappedBufferResult selected : result.getMessageMapedList()) {
                    ByteBuffer buffer = selected.getByteBuffer();
                    buffer.get(new byte[selected.getSize()]);
                    pulled++;
                }
                result.release();
                offset = result.getNextBeginOffset();
            }
        }
        return pulled;
    }

    private static double secondsSince(long begun) {
        return (System.nanoTime() - begun) / 1e9;
    }
}
