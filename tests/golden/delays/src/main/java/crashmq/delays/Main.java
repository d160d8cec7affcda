package crashmq.delays;

import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.PrintStream;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.rocketmq.broker.BrokerController;
import org.apache.rocketmq.broker.schedule.ScheduleMessageService;
import org.apache.rocketmq.broker.util.HookUtils;
import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageConst;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageExtBrokerInner;
import org.apache.rocketmq.remoting.netty.NettyClientConfig;
import org.apache.rocketmq.remoting.netty.NettyServerConfig;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.config.MessageStoreConfig;
import org.apache.rocketmq.store.stats.BrokerStatsManager;

/**
 * The released ScheduleMessageService on a directory of its own.
 *
 * <p>{@code deliver ROOT} puts delayed messages, lets the service deliver them, and persists its
 * offsets; {@code offsets ROOT} loads {@code config/delayOffset.json}, prints the offsets and the
 * version, and persists them again. Exit codes: 0 done, 1 it failed or loads nothing, 2 usage.
 */
public final class Main {

    private static final String LEVELS = "1s 2s 1s 1h";
    private static final int[] MESSAGES_BY_LEVEL = {5, 3, 0, 2};
    private static final long DELIVERED_MS_MAX = 20_000;
    private static final int NEVER_EXPIRE_HOURS = 24 * 365 * 100;

    private Main() {
    }

    public static void main(String[] args) {
        // Only our lines go to standard output, whatever a library prints.
        var lines = new PrintStream(
            new FileOutputStream(FileDescriptor.out), false, StandardCharsets.UTF_8);
        System.setOut(System.err);
        int exit = run(args, lines);
        lines.flush();
        // The broker leaves threads behind that would keep the JVM alive.
        System.exit(exit);
    }

    private static int run(String[] args, PrintStream lines) {
        if (args.length != 2 || !(args[0].equals("deliver") || args[0].equals("offsets"))) {
            System.err.println("usage: deliver ROOT | offsets ROOT");
            return 2;
        }
        try {
            Path root = Path.of(args[1]);
            if (args[0].equals("deliver")) {
                deliver(root, lines);
            } else {
                offsets(root, lines);
            }
            return 0;
        } catch (Exception failed) {
            System.err.println("golden delays: " + failed);
            return 1;
        }
    }

    /** Deliver what is due of ten messages, print each record delivered, and stop. */
    private static void deliver(Path root, PrintStream lines) throws Exception {
        BrokerController broker = broker(root);
        var store = (DefaultMessageStore) broker.getMessageStore();
        if (!store.load()) {
            throw new IllegalStateException("the store refused " + root);
        }
        store.start();
        ScheduleMessageService service = broker.getScheduleMessageService();
        if (!service.load()) {
            throw new IllegalStateException("the service loads nothing");
        }
        for (int level = 1; level <= MESSAGES_BY_LEVEL.length; level++) {
            for (int n = 0; n < MESSAGES_BY_LEVEL[level - 1]; n++) {
                MessageExtBrokerInner message = message(level, n);
                HookUtils.handleScheduleMessage(broker, message);
                store.putMessage(message);
            }
        }
        service.start();
        long due = MESSAGES_BY_LEVEL[0] + MESSAGES_BY_LEVEL[1];
        long deadline = System.nanoTime() + DELIVERED_MS_MAX * 1_000_000;
        while (store.getMaxOffsetInQueue("orders", 0) < due) {
            if (System.nanoTime() > deadline) {
                throw new IllegalStateException("the messages that are due are not delivered");
            }
            Thread.sleep(10);
        }
        Thread.sleep(1000); // so that each level's offset is that of a round after the last
        service.stop();
        for (long offset = 0; offset < due; offset++) {
            var found = store.getMessage("golden", "orders", 0, offset, 1, null);
            MessageExt read = MessageDecoder.decode(found.getMessageBufferList().get(0));
            lines.println(read.getQueueOffset() + " " + read.getBody().length + " "
                + new TreeMap<>(read.getProperties()));
            found.release();
        }
        store.shutdown();
    }

    /** Load the offsets and persist them again: what is on the disk is the service's own. */
    private static void offsets(Path root, PrintStream lines) throws Exception {
        BrokerController broker = broker(root);
        ScheduleMessageService service = broker.getScheduleMessageService();
        if (!service.loadWhenSyncDelayOffset()) {
            throw new IllegalStateException("the service loads nothing");
        }
        var field = ScheduleMessageService.class.getDeclaredField("offsetTable");
        field.setAccessible(true);
        lines.println(new TreeMap<>((Map<?, ?>) field.get(service)));
        lines.println(service.getDataVersion().getCounter() + " "
            + service.getDataVersion().getTimestamp());
        service.persist();
    }

    private static MessageExtBrokerInner message(int level, int number) {
        var message = new MessageExtBrokerInner();
        message.setTopic("orders");
        message.setQueueId(0);
        message.setBody(("level " + level + ", " + number).getBytes(StandardCharsets.UTF_8));
        message.setTags("created");
        message.setKeys("K" + level + "." + number);
        message.setDelayTimeLevel(level);
        message.setWaitStoreMsgOK(true);
        MessageAccessor.putProperty(
            message, MessageConst.PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX, "U" + level + number);
        message.setPropertiesString(
            MessageDecoder.messageProperties2String(message.getProperties()));
        message.setBornTimestamp(1_600_000_000_000L + number);
        message.setBornHost(new InetSocketAddress("127.0.0.1", 10911));
        message.setStoreHost(new InetSocketAddress("127.0.0.1", 10912));
        return message;
    }

    private static BrokerController broker(Path root) throws Exception {
        Files.createDirectories(root);
        var config = new MessageStoreConfig();
        config.setStorePathRootDir(root.toString());
        config.setStorePathCommitLog(root.resolve("commitlog").toString());
        config.setMappedFileSizeCommitLog(65_536);
        config.setMappedFileSizeConsumeQueue(6_000);
        config.setMessageIndexEnable(false);
        config.setHaListenPort(0);
        config.setFileReservedTime(NEVER_EXPIRE_HOURS);
        config.setCleanFileForciblyEnable(false);
        config.setTimerWheelEnable(false);
        config.setMessageDelayLevel(LEVELS);
        var broker = new BrokerConfig();
        broker.setBrokerName("golden");
        var server = new NettyServerConfig();
        server.setListenPort(10911);
        var controller = new BrokerController(broker, server, new NettyClientConfig(), config);
        controller.setMessageStore(new DefaultMessageStore(
            config, new BrokerStatsManager(broker), null, broker, new ConcurrentHashMap<>()));
        return controller;
    }
}
