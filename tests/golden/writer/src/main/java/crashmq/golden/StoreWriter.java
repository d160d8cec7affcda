package crashmq.golden;

import com.alibaba.fastjson2.JSONObject;
import com.alibaba.fastjson2.JSONWriter;
import java.io.IOException;
import java.io.PrintStream;
import java.net.UnknownHostException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.rocketmq.common.message.MessageConst;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExtBatch;
import org.apache.rocketmq.common.message.MessageExtBrokerInner;
import org.apache.rocketmq.store.AppendMessageResult;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.PutMessageResult;
import org.apache.rocketmq.store.PutMessageStatus;

/** Puts the sample messages into a new store, and writes down each acknowledgement. */
final class StoreWriter {

    // Bursts share store times; the gaps spread a run over several checkpoint flushes.
    private static final int BURST = 8;
    private static final long GAP_MS = 32;
    private static final int BATCH_MAX = 7;

    private StoreWriter() {
    }

    static void write(Options options) throws Exception {
        refuseUsedRoot(options.root());
        int messages = options.positive("messages", 1_200);
        boolean isHalted = options.oneOf("end", "clean", "halt").equals("halt");
        try (PrintStream manifest = open(options.file("manifest"))) {
            DefaultMessageStore store = OpenStore.open(options);
            String kind = OpenStore.kind(options);
            for (int i = 0; i < messages; ) {
                pause(i);
                i += kind.equals("batch")
                    ? putBatch(store, i, Math.min(1 + i % BATCH_MAX, messages - i), manifest)
                    : put(store, i, kind, manifest);
            }
            if (options.values().containsKey("expire")) {
                expire(store, options.positive("expire", 1));
            }
            if (isHalted) {
                Runtime.getRuntime().halt(0);
            }
            OpenStore.awaitDispatch(store);
            store.shutdown();
        }
    }

    private static void pause(int i) throws InterruptedException {
        if (i > 0 && i % BURST == 0) {
            Thread.sleep(GAP_MS);
        }
    }

    private static int put(
        DefaultMessageStore store, int i, String kind, PrintStream manifest) {
        MessageExtBrokerInner message = SampleMessages.message(i, kind);
        AppendMessageResult stored = acknowledged(i, store.putMessage(message));
        long offset = stored.getLogicsOffset();
        manifest.println(line(
            message, message, offset, stored.getWroteOffset(), stored.getWroteBytes(), stored));
        return 1;
    }

    /** Put messages [first, first + count) as one batch; the ids tell where each lies. */
    private static int putBatch(
        DefaultMessageStore store, int first, int count, PrintStream manifest)
        throws UnknownHostException {
        MessageExtBatch batch = SampleMessages.batch(first, count);
        AppendMessageResult stored = acknowledged(first, store.putMessages(batch));
        String[] ids = stored.getMsgId().split(",");
        long end = stored.getWroteOffset() + stored.getWroteBytes();
        for (int n = 0; n < count; n++) {
            long at = MessageDecoder.decodeMessageId(ids[n]).getOffset();
            long next = n + 1 < count ? MessageDecoder.decodeMessageId(ids[n + 1]).getOffset() : end;
            MessageExtBrokerInner inner = SampleMessages.message(first + n, "batch");
            manifest.println(line(
                batch, inner, stored.getLogicsOffset() + n, at, (int) (next - at), stored));
        }
        return count;
    }

    private static AppendMessageResult acknowledged(int i, PutMessageResult result) {
        if (result.getPutMessageStatus() != PutMessageStatus.PUT_OK || !result.isOk()) {
            throw new IllegalStateException("message " + i + " was not acknowledged: " + result);
        }
        return result.getAppendMessageResult();
    }

    /** Let the oldest log files go, and what leads to them. */
    private static void expire(DefaultMessageStore store, int files) throws InterruptedException {
        OpenStore.awaitDispatch(store);
        int deleted = store.getCommitLog().deleteExpiredFile(0, 0, 1_000, true, files);
        if (deleted != files) {
            throw new IllegalStateException(
                deleted + " log files were deleted, not " + files + "; write more messages");
        }
        store.getQueueStore().cleanExpired(store.getMinPhyOffset());
    }

    private static String line(
        MessageExtBrokerInner place, MessageExtBrokerInner message, long queueOffset,
        long phyOffset, int size, AppendMessageResult stored) {
        var line = new JSONObject();
        line.put("topic", place.getTopic());
        line.put("queue_id", place.getQueueId());
        line.put("queue_offset", queueOffset);
        line.put("phy_offset", phyOffset);
        line.put("size", size);
        line.put("tags", message.getTags());
        line.put("keys", message.getKeys());
        line.put("body_size", message.getBody().length);
        line.put("body_sha1", Sha1.hex(message.getBody()));
        line.put("lmq", message.getProperty(MessageConst.PROPERTY_INNER_MULTI_DISPATCH));
        line.put("store_timestamp", stored.getStoreTimestamp());
        return line.toString(JSONWriter.Feature.WriteNulls);
    }

    private static PrintStream open(Path manifest) throws IOException {
        // Unbuffered, so a halt right after the last put loses no line.
        return new PrintStream(Files.newOutputStream(manifest), true, StandardCharsets.UTF_8);
    }

    private static void refuseUsedRoot(Path root) {
        if (Files.exists(root)) {
            throw new IllegalArgumentException(root + " exists already; name a new directory");
        }
    }
}
