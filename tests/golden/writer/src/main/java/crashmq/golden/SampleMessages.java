package crashmq.golden;

import java.net.InetSocketAddress;
import java.util.HashMap;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageConst;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExtBrokerInner;

/** Message i, from formulas alone; README.md states them once more for readers of a fixture. */
final class SampleMessages {

    private static final InetSocketAddress BORN_HOST = new InetSocketAddress("127.0.0.1", 10911);
    private static final InetSocketAddress STORE_HOST = new InetSocketAddress("127.0.0.1", 10912);

    // "payment" hashes below zero; the last tag ends in a surrogate pair.
    private static final String[] TAGS = {null, "created", "payment", "支付", "已付款💰"};

    private SampleMessages() {
    }

    static MessageExtBrokerInner message(int i) {
        var message = new MessageExtBrokerInner();
        setPlace(message, i);
        setProperties(message, i);
        message.setBody(body(i));
        message.setFlag(i % 7);
        message.setBornHost(BORN_HOST);
        message.setStoreHost(STORE_HOST);
        message.setBornTimestamp(System.currentTimeMillis());
        return message;
    }

    private static void setPlace(MessageExtBrokerInner message, int i) {
        switch (i % 3) {
            case 0 -> setPlace(message, "orders", i / 3 % 4);
            case 1 -> setPlace(message, "payments", i / 3 % 2);
            default -> setPlace(message, "audit-log", 0);
        }
    }

    private static void setPlace(MessageExtBrokerInner message, String topic, int queueId) {
        message.setTopic(topic);
        message.setQueueId(queueId);
    }

    private static void setProperties(MessageExtBrokerInner message, int i) {
        // The store asks the map for names, so a message without properties needs one too.
        MessageAccessor.setProperties(message, new HashMap<>());
        if (i % 5 != 0) {
            message.setTags(TAGS[i % 5]);
        }
        if (i / 3 % 3 != 2) {
            message.setKeys(keys(i));
        }
        if (i % 4 == 3) {
            message.putUserProperty("买家", "customer-" + i % 50);
        }
        if (i % 11 == 0) {
            MessageAccessor.putProperty(
                message, MessageConst.PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX, uniqKey(i));
        }
        message.setPropertiesString(
            MessageDecoder.messageProperties2String(message.getProperties()));
    }

    private static String keys(int i) {
        return i / 3 % 3 == 0 ? "K" + i : "K" + i + " customer-" + i % 50;
    }

    private static String uniqKey(int i) {
        return String.format("7F000001%024X", i);
    }

    private static byte[] body(int i) {
        byte[] body = new byte[i % 101 == 100 ? 4_096 + i : i * 97 % 401];
        for (int j = 0; j < body.length; j++) {
            body[j] = (byte) ((i + 7 * j) % 251);
        }
        return body;
    }
}
