package crashmq.field;

import java.io.PrintStream;
import java.util.HashMap;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.PutMessageResult;

/** Several threads that put until the process is killed, or each has put its count. */
final class Storm {

    private final DefaultMessageStore store;
    private final PrintStream lines;

    Storm(DefaultMessageStore store, PrintStream lines) {
        this.store = store;
        this.lines = lines;
    }

    void rage(Order order) throws InterruptedException {
        var threads = new Thread[order.small("threads", 4)];
        for (int i = 0; i < threads.length; i++) {
            int number = i;
            threads[i] = new Thread(() -> put(order, number));
            threads[i].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
    }

    private void put(Order order, int thread) {
        for (int i = 0; i < order.small("count", Integer.MAX_VALUE); i++) {
            var values = new HashMap<>(order.values());
            values.put("topic", order.text("topic") + thread % 3);
            values.put("queue", Integer.toString(thread % 2));
            values.put("body", "%08x%08x".formatted(thread, i).repeat(1 + i % 20));
            values.put("props", "KEYS\u0001T%d-%d\u0002TAGS\u0001t%d".formatted(thread, i, i % 3));
            var message = Puts.message(new Order("put", values));
            PutMessageResult result = store.putMessage(message);
            synchronized (lines) {
                lines.println(Puts.answered(result).put("topic", message.getTopic())
                    .put("queue_id", message.getQueueId())
                    .put("key", message.getKeys()));
            }
        }
    }
}
