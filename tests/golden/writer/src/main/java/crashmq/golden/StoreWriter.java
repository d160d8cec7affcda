package crashmq.golden;

import com.alibaba.fastjson2.JSONObject;
import com.alibaba.fastjson2.JSONWriter;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
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

    private StoreWriter() {
    }

    static void write(Options options) throws Exception {
        refuseUsedRoot(options.root());
        int messages = options.positive("messages", 1_200);
        boolean isHalted = options.choice("end", "clean", "halt").equals("halt");
        try (PrintStream manifest = open(options.file("manifest"))) {
            DefaultMessageStore store = OpenStore.open(options);
            for (int i = 0; i < messages; i++) {
                put(store, i, manifest);
            }
            if (isHalted) {
                Runtime.getRuntime().halt(0);
            }
            OpenStore.awaitDispatch(store);
            store.shutdown();
        }
    }

    private static void put(DefaultMessageStore store, int i, PrintStream manifest)
        throws InterruptedException {
        if (i > 0 && i % BURST == 0) {
            Thread.sleep(GAP_MS);
        }
        MessageExtBrokerInner message = SampleMessages.message(i);
        PutMessageResult result = store.putMessage(message);
        if (result.getPutMessageStatus() != PutMessageStatus.PUT_OK || !result.isOk()) {
            throw new IllegalStateException("message " + i + " was not acknowledged: " + result);
        }
        manifest.println(line(message, result.getAppendMessageResult()));
    }

    private static String line(MessageExtBrokerInner message, AppendMessageResult stored) {
        var line = new JSONObject();
        line.put("topic", message.getTopic());
        line.put("queue_id", message.getQueueId());
        line.put("queue_offset", stored.getLogicsOffset());
        line.put("phy_offset", stored.getWroteOffset());
        line.put("size", stored.getWroteBytes());
        line.put("tags", message.getTags());
        line.put("keys", message.getKeys());
        line.put("body_size", message.getBody().length);
        line.put("body_sha1", Sha1.hex(message.getBody()));
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
