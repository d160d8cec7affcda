package crashmq.golden;

import com.alibaba.fastjson.JSON;
import com.alibaba.fastjson.JSONObject;
import com.alibaba.fastjson.serializer.SerializerFeature;
import java.util.Map;
import java.util.TreeMap;
import org.apache.rocketmq.broker.BrokerController;
import org.apache.rocketmq.broker.offset.ConsumerOffsetManager;
import org.apache.rocketmq.broker.subscription.SubscriptionGroupManager;
import org.apache.rocketmq.broker.topic.TopicConfigManager;
import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.common.ConfigManager;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.remoting.netty.NettyClientConfig;
import org.apache.rocketmq.remoting.netty.NettyServerConfig;
import org.apache.rocketmq.remoting.protocol.subscription.SubscriptionGroupConfig;
import org.apache.rocketmq.store.config.MessageStoreConfig;

/** The managers of a broker that is never started, on one root directory. */
final class Tables {
    private static final String[] GROUPS = {"billing", "shipping", "sub_localtest"};

    private final TopicConfigManager topics;
    private final SubscriptionGroupManager groups;
    private final ConsumerOffsetManager offsets;

    Tables(String root) throws Exception {
        MessageStoreConfig store = new MessageStoreConfig();
        store.setStorePathRootDir(root);
        BrokerConfig broker = new BrokerConfig();
        broker.setBrokerName("broker-a");
        BrokerController controller =
            new BrokerController(broker, new NettyServerConfig(), new NettyClientConfig(), store);
        topics = controller.getTopicConfigManager();
        groups = controller.getSubscriptionGroupManager();
        offsets = controller.getConsumerOffsetManager();
    }

    /** The tables of a broker of the topics that the golden stores have. */
    void write() {
        topics.updateTopicConfig(new TopicConfig("orders", 4, 4, 6));
        topics.updateTopicConfig(new TopicConfig("payments", 2, 2, 6));
        topics.updateTopicConfig(new TopicConfig("audit-log", 1, 1, 4));
        for (String group : GROUPS) {
            topics.createTopicInSendMessageBackMethod("%RETRY%" + group, 1, 6, 0);
        }
        SubscriptionGroupConfig strict = new SubscriptionGroupConfig();
        strict.setGroupName("shipping");
        strict.setRetryQueueNums(2);
        strict.setRetryMaxTimes(3);
        strict.setConsumeMessageOrderly(true);
        groups.updateSubscriptionGroupConfig(strict);
        groups.findSubscriptionGroupConfig("billing");
        groups.findSubscriptionGroupConfig("sub_localtest");
        groups.updateForbidden("billing", "audit-log", 0, true);
        commitAll(1);
        offsets.persist();
        commitAll(10);
        offsets.persist();
    }

    private void commitAll(long factor) {
        for (int queue = 0; queue < 4; queue++) {
            offsets.commitOffset("golden", "billing", "orders", queue, factor * (queue + 1));
        }
        for (int queue = 0; queue < 2; queue++) {
            offsets.commitOffset("golden", "shipping", "payments", queue, factor * (queue + 2));
        }
        for (String group : GROUPS) {
            offsets.commitOffset("golden", group, "%RETRY%" + group, 0, 0);
        }
        offsets.commitOffset("golden", "sub_localtest", "audit-log", 0, factor * 5);
    }

    /** What each manager loads, and what it holds then. */
    String read() {
        Map<String, Object> told = new TreeMap<>();
        told.put("topics", loaded(topics));
        told.put("groups", loaded(groups));
        told.put("offsets", loaded(offsets));
        told.put("offsetTable", offsets.getOffsetTable());
        told.put("topicConfigTable", topics.getTopicConfigTable());
        told.put("subscriptionGroupTable", groups.getSubscriptionGroupTable());
        told.put("offsetsVersion", offsets.getDataVersion().getCounter().get());
        told.put("encoded", encoded());
        return JSON.toJSONString(
            new JSONObject(told),
            SerializerFeature.MapSortField,
            SerializerFeature.WriteNonStringKeyAsString);
    }

    private String encoded() {
        try {
            return offsets.encode(true);
        } catch (RuntimeException error) {
            return error.getClass().getName();
        }
    }

    private static String loaded(ConfigManager manager) {
        try {
            return String.valueOf(manager.load());
        } catch (RuntimeException error) {
            return error.getClass().getName();
        }
    }
}
