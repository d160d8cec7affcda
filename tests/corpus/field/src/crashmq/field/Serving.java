package crashmq.field;

import java.io.IOException;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Stream;
import java.util.zip.CRC32;
import org.apache.rocketmq.common.message.MessageConst;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.DispatchRequest;
import org.apache.rocketmq.store.GetMessageResult;
import org.apache.rocketmq.store.GetMessageStatus;
import org.apache.rocketmq.store.QueryMessageResult;
import org.apache.rocketmq.store.SelectMappedBufferResult;

/**
 * Tells all that a started store serves: a line for the log, then one for each queue, followed by
 * its messages and by the offsets at which a pull found none.
 *
 * <p>The queues are those that have a directory, those that the store's table has, and those that
 * records of the log name.
 */
final class Serving {

    private static final String GROUP = "field-reader";
    private static final int GAPS_MAX = 100;
    private static final int FOUND_MAX = 64;

    private final DefaultMessageStore store;
    private final Path root;
    private final PrintStream lines;
    private final Set<String> topics;

    Serving(DefaultMessageStore store, Path root, PrintStream lines, Set<String> topics) {
        this.store = store;
        this.root = root;
        this.lines = lines;
        this.topics = topics;
    }

    void tell() throws Exception {
        lines.println(new Json().put("log", true)
            .put("min", store.getMinPhyOffset()).put("max", store.getMaxPhyOffset())
            .put("confirmed", store.getConfirmOffset())
            .put("behind", store.dispatchBehindBytes())
            .put("writeable", store.getRunningFlags().isWriteable()));
        for (var queues : queues().entrySet()) {
            for (int queueId : queues.getValue()) {
                tell(queues.getKey(), queueId);
            }
        }
    }

    private void tell(String topic, int queueId) throws Exception {
        long offset = store.getMinOffsetInQueue(topic, queueId);
        long end = store.getMaxOffsetInQueue(topic, queueId);
        lines.println(new Json().put("topic", topic).put("queue_id", queueId)
            .put("min", offset).put("max", end));
        int gaps = 0;
        while (offset < end && gaps < GAPS_MAX) {
            GetMessageResult result = store.getMessage(GROUP, topic, queueId, offset, 1, null);
            if (result == null) {
                lines.println(new Json().put("gap", offset).put("status", "null").put("next", -1));
                return;
            }
            long next = result.getNextBeginOffset();
            if (result.getStatus() != GetMessageStatus.FOUND) {
                gaps++;
                lines.println(new Json().put("gap", offset)
                    .put("status", result.getStatus().name()).put("next", next));
            }
            // The count is that of messages, and a record of a batch queue holds several.
            for (int i = 0; i < result.getMessageBufferList().size(); i++) {
                message(result.getMessageBufferList().get(i), topic,
                    Differences.queueOffset(result, i, next - 1));
            }
            result.release();
            offset = Math.max(next, offset + 1);
        }
    }

    private void message(ByteBuffer buffer, String topic, long queueOffset) {
        int size = buffer.remaining();
        MessageExt message = MessageDecoder.decode(buffer.duplicate(), true, false);
        var line = new Json().put("queue_offset", queueOffset).put("size", size);
        if (message == null) {
            lines.println(line.put("undecodable", true));
            return;
        }
        byte[] body = message.getBody() == null ? new byte[0] : message.getBody();
        var crc = new CRC32();
        crc.update(body);
        line.put("phy_offset", message.getCommitLogOffset())
            .put("record_topic", message.getTopic())
            .put("record_queue_id", message.getQueueId())
            .put("record_queue_offset", message.getQueueOffset())
            .put("store_timestamp", message.getStoreTimestamp())
            .put("sys_flag", message.getSysFlag())
            .put("body_size", body.length).put("body_crc", crc.getValue() & 0x7FFFFFFF)
            .put("keys", message.getKeys()).put("tags", message.getTags())
            .put("unique_key",
                message.getProperty(MessageConst.PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX));
        line.put("looked_up", isLookedUp(message.getCommitLogOffset()));
        if (message.getKeys() != null) {
            line.put("found_by_key", isFoundByEachKey(message));
        }
        lines.println(line);
    }

    /** Whether a look by physical offset finds it; RocketMQ throws where no record begins. */
    private boolean isLookedUp(long phyOffset) {
        try {
            MessageExt looked = store.lookMessageByOffset(phyOffset);
            return looked != null && looked.getCommitLogOffset() == phyOffset;
        } catch (IllegalArgumentException | IndexOutOfBoundsException noRecord) {
            return false;
        }
    }

    private boolean isFoundByEachKey(MessageExt message) {
        for (String key : message.getKeys().split(MessageConst.KEY_SEPARATOR)) {
            QueryMessageResult found = store.queryMessage(
                message.getTopic(), key, FOUND_MAX, 0, Long.MAX_VALUE);
            boolean isThere = found.getMessageBufferList().stream()
                .map(buffer -> MessageDecoder.decode(buffer.duplicate(), true, false))
                .anyMatch(one -> one != null
                    && one.getCommitLogOffset() == message.getCommitLogOffset());
            found.release();
            if (!isThere) {
                return false;
            }
        }
        return true;
    }

    private Map<String, Set<Integer>> queues() throws IOException {
        var queues = new TreeMap<String, Set<Integer>>();
        for (String kind : new String[] {"consumequeue", "batchconsumequeue"}) {
            inDirectories(root.resolve(kind), queues);
        }
        Map<?, ?> table = store.getConsumeQueueTable();
        if (table != null) {
            table.forEach((topic, ofTopic) -> ((Map<?, ?>) ofTopic).keySet().forEach(
                id -> add(queues, (String) topic, (Integer) id)));
        }
        ofLog(queues);
        return queues;
    }

    private static void add(Map<String, Set<Integer>> queues, String topic, int queueId) {
        queues.computeIfAbsent(topic, any -> new TreeSet<>()).add(queueId);
    }

    private static void inDirectories(Path parent, Map<String, Set<Integer>> queues)
        throws IOException {
        for (Path topic : in(parent)) {
            for (Path queue : in(topic)) {
                String name = queue.getFileName().toString();
                if (name.matches("0|[1-9][0-9]{0,8}")) {
                    add(queues, topic.getFileName().toString(), Integer.parseInt(name));
                }
            }
        }
    }

    private static Set<Path> in(Path parent) throws IOException {
        if (!Files.isDirectory(parent)) {
            return Set.of();
        }
        try (Stream<Path> entries = Files.list(parent)) {
            return new TreeSet<>(entries.filter(Files::isDirectory).toList());
        }
    }

    /** Queues that whole records of the log belong to, as RocketMQ's own check reads them. */
    private void ofLog(Map<String, Set<Integer>> queues) {
        long at = store.getMinPhyOffset();
        while (at >= 0 && at < store.getMaxPhyOffset()) {
            SelectMappedBufferResult part = store.getCommitLog().getData(at);
            if (part == null) {
                return;
            }
            long begin = at;
            while (at - begin < part.getSize()) {
                part.getByteBuffer().position((int) (at - begin));
                int size = record(part.getByteBuffer(), queues);
                if (size < 0) {
                    part.release();
                    return;
                }
                at = size > 0 ? at + size : store.getCommitLog().rollNextFile(at);
            }
            part.release();
            at = Math.max(at, begin + 1);
        }
    }

    private int record(ByteBuffer buffer, Map<String, Set<Integer>> queues) {
        DispatchRequest request =
            store.getCommitLog().checkMessageAndReturnSize(buffer, false, false);
        if (!request.isSuccess()) {
            return -1;
        }
        if (request.getMsgSize() > 0) {
            add(queues, request.getTopic(), request.getQueueId());
        }
        return request.getBufferSize() == -1 ? request.getMsgSize() : request.getBufferSize();
    }
}
