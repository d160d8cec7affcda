package crashmq.golden;

import com.alibaba.fastjson2.JSONObject;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.apache.rocketmq.common.MixAll;
import org.apache.rocketmq.common.message.MessageConst;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.GetMessageResult;
import org.apache.rocketmq.store.GetMessageStatus;
import org.apache.rocketmq.store.QueryMessageResult;

/**
 * Opens a store directory, prints every message it serves, and ends it as it is told.
 *
 * <p>Opening recovers the directory, so it changes it: read a copy. A record that names
 * another place than the one it was served from ends the read with an error.
 */
final class StoreReader {

    private static final String GROUP = "golden-reader";
    private static final int PULL_COUNT_MAX = 32;
    private static final int QUERY_COUNT_MAX = 64;

    private record Queue(String topic, int queueId) {

        @Override
        public String toString() {
            return topic + "/" + queueId;
        }
    }

    private final DefaultMessageStore store;
    private final PrintStream lines;
    private final boolean queries;

    private StoreReader(DefaultMessageStore store, PrintStream lines, boolean queries) {
        this.store = store;
        this.lines = lines;
        this.queries = queries;
    }

    static void read(Options options, PrintStream lines, Consumer<DefaultMessageStore> end)
            throws Exception {
        if (!Files.isDirectory(options.root())) {
            throw new IllegalArgumentException(options.root() + " is not a directory");
        }
        boolean isHalted = options.oneOf("end", "clean", "halt").equals("halt");
        DefaultMessageStore store = OpenStore.open(options);
        try {
            OpenStore.awaitDispatch(store);
            boolean queries = options.oneOf("queries", "off", "on").equals("on");
            var reader = new StoreReader(store, lines, queries);
            for (Queue queue : queues(options.root().resolve("consumequeue"))) {
                reader.readQueue(queue);
            }
            if (isHalted) {
                lines.flush();
                Runtime.getRuntime().halt(0);
            }
        } finally {
            end.accept(store);
        }
    }

    private void readQueue(Queue queue) {
        long offset = store.getMinOffsetInQueue(queue.topic(), queue.queueId());
        long end = store.getMaxOffsetInQueue(queue.topic(), queue.queueId());
        while (offset < end) {
            offset = pull(queue, offset);
        }
    }

    /** Print one pull from {@code offset}, and say where the next one starts. */
    private long pull(Queue queue, long offset) {
        GetMessageResult result = store.getMessage(
            GROUP, queue.topic(), queue.queueId(), offset, PULL_COUNT_MAX, null);
        try {
            if (result.getStatus() != GetMessageStatus.FOUND) {
                System.err.println(place(queue, offset) + ": " + result.getStatus()
                    + ", goes on at " + result.getNextBeginOffset());
            }
            for (int i = 0; i < result.getMessageCount(); i++) {
                printMessage(queue, result, i);
            }
        } finally {
            result.release();
        }
        return onward(queue, offset, result.getNextBeginOffset());
    }

    private void printMessage(Queue queue, GetMessageResult result, int i) {
        long queueOffset = result.getMessageQueueOffset().get(i);
        MessageExt message = decode(result, i);
        String place = place(queue, queueOffset);
        boolean isOwn = !MixAll.isLmq(queue.topic());
        if (isOwn && !place.equals(placeNamedBy(message))) {
            throw new IllegalStateException(
                place + " serves the record of " + placeNamedBy(message));
        }
        byte[] body = message.getBody() == null ? new byte[0] : message.getBody();
        var line = new JSONObject();
        line.put("topic", queue.topic());
        line.put("queue_id", queue.queueId());
        line.put("queue_offset", queueOffset);
        line.put("phy_offset", message.getCommitLogOffset());
        line.put("size", message.getStoreSize());
        line.put("body_sha1", Sha1.hex(body));
        if (queries && message.getKeys() != null) {
            line.put("indexed", isFoundByEachKey(message));
        }
        lines.println(line);
    }

    private boolean isFoundByEachKey(MessageExt message) {
        for (String key : message.getKeys().split(MessageConst.KEY_SEPARATOR)) {
            QueryMessageResult found = store.queryMessage(
                message.getTopic(), key, QUERY_COUNT_MAX, 0, Long.MAX_VALUE);
            boolean isThere = found.getMessageBufferList().stream()
                .anyMatch(buffer -> MessageDecoder.decode(buffer.duplicate(), true, false)
                    .getCommitLogOffset() == message.getCommitLogOffset());
            found.release();
            if (!isThere) {
                return false;
            }
        }
        return true;
    }

    /** Decode without unpacking, so the hash is that of the stored body. */
    private static MessageExt decode(GetMessageResult result, int i) {
        return MessageDecoder.decode(result.getMessageBufferList().get(i), true, false);
    }

    private static String place(Queue queue, long queueOffset) {
        return queue + " queue_offset " + queueOffset;
    }

    private static String placeNamedBy(MessageExt message) {
        if (message == null) {
            return "nobody: its bytes do not decode";
        }
        return place(
            new Queue(message.getTopic(), message.getQueueId()), message.getQueueOffset());
    }

    private static long onward(Queue queue, long offset, long next) {
        if (next <= offset) {
            throw new IllegalStateException(
                "a pull at " + place(queue, offset) + " leads back to " + next);
        }
        return next;
    }

    /** The queues RocketMQ sees: it, too, passes over a directory that is no number. */
    private static List<Queue> queues(Path consumeQueues) throws IOException {
        var queues = new ArrayList<Queue>();
        for (Path topic : directoriesIn(consumeQueues)) {
            for (Path directory : directoriesIn(topic)) {
                String queueId = directory.getFileName().toString();
                if (queueId.matches("[0-9]{1,9}")) {
                    queues.add(
                        new Queue(topic.getFileName().toString(), Integer.parseInt(queueId)));
                }
            }
        }
        queues.sort(Comparator.comparing(Queue::topic).thenComparing(Queue::queueId));
        return queues;
    }

    private static List<Path> directoriesIn(Path parent) throws IOException {
        if (!Files.isDirectory(parent)) {
            return List.of();
        }
        try (Stream<Path> entries = Files.list(parent)) {
            return entries.filter(Files::isDirectory).toList();
        }
    }
}
