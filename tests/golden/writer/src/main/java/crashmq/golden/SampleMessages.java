package crashmq.golden;

import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.HashMap;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageConst;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExtBatch;
import org.apache.rocketmq.common.message.MessageExtBrokerInner;

/** Message i, from formulas alone; README.md states them once more for readers of a fixture. */
final class SampleMessages {

    private static final InetSocketAddress BORN_HOST = new InetSocketAddress("127.0.0.1", 10911);
    private static final InetSocketAddress STORE_HOST = new InetSocketAddress("127.0.0.1", 10912);

    private static final InetSocketAddress BORN_HOST_V6 =
        new InetSocketAddress("2001:db8::1", 10911);
    private static final InetSocketAddress STORE_HOST_V6 =
        new InetSocketAddress("2001:db8::2", 10912);

    // Of every five messages in a store with multi-dispatch, the queues of their own.
    private static final String[] LMQ = {null, "%LMQ%a", "%LMQ%b", "%LMQ%a,%LMQ%b", "%LMQ%c"};

    // "payment" hashes below zero; the last tag ends in a surrogate pair.
    private static final String[] TAGS = {null, "created", "payment", "支付", "已付款💰"};

    private SampleMessages() {
    }

    static MessageExtBrokerInner message(int i, String kind) {
        var message = new MessageExtBrokerInner();
        setPlace(message, i);
        setProperties(message, i, kind);
        message.setBody(body(i));
        message.setFlag(i % 7);
        setHosts(message, i, kind);
        message.setBornTimestamp(System.currentTimeMillis());
        return message;
    }

    /** One batch: its messages share the place and the hosts of message {@code first}. */
    static MessageExtBatch batch(int first, int count) {
        var messages = new ArrayList<Message>();
        for (int i = first; i < first + count; i++) {
            messages.add(message(i, "batch"));
        }
        var batch = new MessageExtBatch();
        MessageAccessor.setProperties(batch, new HashMap<>());
        setPlace(batch, first);
        batch.setBody(MessageDecoder.encodeMessages(messages));
        setHosts(batch, first, "batch");
        batch.setBornTimestamp(System.currentTimeMillis());
        return batch;
    }

    private static void setHosts(MessageExtBrokerInner message, int i, String kind) {
        boolean isV6 = kind.equals("ipv6");
        message.setBornHost(isV6 && i % 2 == 0 ? BORN_HOST_V6 : BORN_HOST);
        message.setStoreHost(isV6 && i % 3 != 0 ? STORE_HOST_V6 : STORE_HOST);
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

    private static void setProperties(MessageExtBrokerInner message, int i, String kind) {
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
        if (kind.equals("lmq") && i % 5 != 0) {
            MessageAccessor.putProperty(
                message, MessageConst.PROPERTY_INNER_MULTI_DISPATCH, LMQ[i % 5]);
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
