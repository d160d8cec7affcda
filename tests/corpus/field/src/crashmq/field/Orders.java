package crashmq.field;

import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.common.MixAll;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.store.CommitLog;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.PutMessageResult;
import org.apache.rocketmq.store.config.MessageStoreConfig;
import org.apache.rocketmq.store.stats.BrokerStatsManager;

/**
 * The verbs, and the store they are for.
 *
 * <p>{@code take} names the directory to begin with, and forgets all settings; {@code set} and {@code broker} change settings of MessageStoreConfig and BrokerConfig before
 * {@code open}; {@code topic} tells of one. {@code open} loads and starts; {@code put},
 * {@code batch} and {@code storm} put; {@code drain} waits for dispatch; {@code settle} has all
 * flushed; {@code expire}, {@code forget} and {@code bitmaps} are what their methods say;
 * {@code timer} starts the timer wheel; {@code serve} tells all that is served; {@code close}
 * shuts down in order; {@code leave} does so behind, since it sleeps; {@code halt} ends the process at once; {@code sleep} waits.
 */
final class Orders {

    private static final long DRAIN_MS_MAX = 30_000;

    private final PrintStream lines;
    private Path root;
    private ConcurrentHashMap<String, TopicConfig> topics;
    private MessageStoreConfig config;
    private BrokerConfig broker;
    private DefaultMessageStore store;
    private Object timer;

    Orders(PrintStream lines) {
        this.lines = lines;
    }

    private void take(Path directory) {
        root = directory.toAbsolutePath();
        topics = new ConcurrentHashMap<>();
        config = new MessageStoreConfig();
        broker = new BrokerConfig();
        timer = null;
        config.setStorePathRootDir(root.toString());
        config.setStorePathCommitLog(root.resolve("commitlog").toString());
        config.setHaListenPort(0);
        broker.setBrokerName("field");
    }

    void obey(Order order) throws Exception {
        switch (order.verb()) {
            case "take" -> take(Path.of(order.text("root")));
            case "set" -> change(config, order);
            case "broker" -> change(broker, order);
            case "topic" -> topic(order);
            case "open" -> open(order);
            case "put" -> Puts.answer(lines, store.putMessage(Puts.message(order)));
            case "batch" -> Puts.answer(lines, store.putMessages(Puts.batch(order)));
            case "inner" -> Puts.answer(lines, store.putMessage(Differences.innerBatch(order)));
            case "storm" -> new Storm(store, lines).rage(order);
            case "drain" -> drain();
            case "settle" -> settle();
            case "expire" -> expire(order.small("files", 1));
            case "forget" -> Differences.forget(store, order.text("topic"), topics.keySet());
            case "bitmaps" -> BitMaps.into(store);
            case "timer" -> timer = Differences.timer(store, config);
            case "serve" -> new Serving(store, root, lines, topics.keySet()).tell();
            case "close" -> close();
            case "leave" -> leave();
            case "halt" -> Runtime.getRuntime().halt(0);
            case "sleep" -> Thread.sleep(order.number("ms", 0));
            default -> throw new IllegalArgumentException("no order " + order.verb());
        }
    }

    private static void change(Object settings, Order order) {
        var properties = new Properties();
        order.values().forEach((name, value) -> {
            boolean isKnown = Arrays.stream(settings.getClass().getMethods())
                .anyMatch(method -> method.getName().equalsIgnoreCase("set" + name));
            if (!isKnown) {
                throw new IllegalArgumentException("this version has no setting " + name);
            }
            properties.setProperty(name, value);
        });
        MixAll.properties2Object(properties, settings);
    }

    private void topic(Order order) {
        var topic = new TopicConfig(order.text("name"));
        topic.setReadQueueNums(order.small("queues", 8));
        topic.setWriteQueueNums(order.small("queues", 8));
        Differences.attributes(topic, order.text("attributes", ""));
        topics.put(topic.getTopicName(), topic);
    }

    private void open(Order order) throws Exception {
        long began = System.nanoTime();
        store = create(order.text("class", "DefaultMessageStore"));
        boolean isLoaded = store.load();
        if (isLoaded) {
            store.start();
            Differences.quiet(store);
        }
        lines.println(new Json().put("opened", isLoaded)
            .put("ms", (System.nanoTime() - began) / 1_000_000));
        if (!isLoaded) {
            Runtime.getRuntime().halt(0);
        }
    }

    /** A store of the class named; its constructor takes what this version wants. */
    private DefaultMessageStore create(String name) throws Exception {
        var made = Class.forName("org.apache.rocketmq.store." + name).getConstructors()[0];
        Class<?>[] types = made.getParameterTypes();
        var given = new Object[types.length];
        for (int i = 0; i < types.length; i++) {
            given[i] = Set.of(MessageStoreConfig.class).contains(types[i]) ? config
                : types[i] == BrokerConfig.class ? broker
                : types[i] == BrokerStatsManager.class ? new BrokerStatsManager("field", true)
                : types[i].isAssignableFrom(ConcurrentHashMap.class) ? topics : null;
        }
        return (DefaultMessageStore) made.newInstance(given);
    }

    private void drain() throws InterruptedException {
        long deadline = System.nanoTime() + DRAIN_MS_MAX * 1_000_000;
        while (store.dispatchBehindBytes() > 0) {
            if (System.nanoTime() > deadline) {
                lines.println(new Json().put("behind", store.dispatchBehindBytes()));
                return;
            }
            Thread.sleep(1);
        }
        // What reput has handed over is dispatched when its round ends.
        Thread.sleep(50);
    }

    /** Have the log and all queues flushed, as long waiting would. */
    private void settle() throws Exception {
        drain();
        store.flush();
        Thread.sleep(1_500);
    }

    /** Let the oldest log files go, and what leads to them. */
    private void expire(int files) throws Exception {
        drain();
        CommitLog log = store.getCommitLog();
        int deleted = Differences.expire(log, files);
        if (deleted != files) {
            throw new IllegalStateException(
                deleted + " log files were deleted, not " + files + "; write more messages");
        }
        Differences.correct(store);
    }

    /** Shut down behind, in a directory that nobody looks at again. */
    private void leave() {
        var behind = new Thread(store::shutdown, "left behind");
        behind.setDaemon(true);
        behind.start();
        store = null;
        lines.println(new Json().put("closed", true));
    }

    private void close() throws Exception {
        if (timer != null) {
            timer.getClass().getMethod("shutdown").invoke(timer);
        }
        store.shutdown();
        store = null;
        lines.println(new Json().put("closed", true)
            .put("abort", Files.exists(root.resolve("abort"))));
    }
}
