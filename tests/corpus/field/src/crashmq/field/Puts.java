package crashmq.field;

import java.io.PrintStream;
import java.net.InetSocketAddress;
import java.util.HashMap;
import org.apache.rocketmq.common.message.*;
import org.apache.rocketmq.store.*;

/** Messages as an order tells them, and what the store answered. */
final class Puts {

    private Puts() {
    }

    /** One message; properties are RocketMQ's own text: name, 1, value, 2. */
    static MessageExtBrokerInner message(Order order) {
        var message = new MessageExtBrokerInner();
        place(message, order);
        MessageAccessor.setProperties(message, properties(order));
        message.setPropertiesString(
            MessageDecoder.messageProperties2String(message.getProperties()));
        return message;
    }

    /** A batch, whose body is the inner messages as a producer sends them. */
    static MessageExtBatch batch(Order order) {
        var batch = new MessageExtBatch();
        place(batch, order);
        MessageAccessor.setProperties(batch, properties(order));
        return batch;
    }

    static void place(MessageExt message, Order order) {
        message.setTopic(order.text("topic"));
        message.setQueueId(order.small("queue", 0));
        message.setBody(order.hex("body"));
        message.setFlag(order.small("flag", 0));
        message.setSysFlag(order.small("sys_flag", 0));
        message.setReconsumeTimes(order.small("reconsumed", 0));
        message.setPreparedTransactionOffset(order.number("prepared", 0));
        message.setBornTimestamp(order.number("born", System.currentTimeMillis()));
        host(message, order.text("born_host", "127.0.0.1"), true);
        host(message, order.text("store_host", "127.0.0.1"), false);
    }

    private static void host(MessageExt message, String address, boolean isBorn) {
        var host = new InetSocketAddress(address, isBorn ? 10911 : 10912);
        boolean isV6 = address.contains(":");
        if (isBorn) {
            message.setBornHost(host);
        } else {
            message.setStoreHost(host);
        }
        if (isV6 && isBorn) {
            message.setBornHostV6Flag();
        } else if (isV6) {
            message.setStoreHostAddressV6Flag();
        }
    }

    static HashMap<String, String> properties(Order order) {
        return new HashMap<>(MessageDecoder.string2messageProperties(order.text("props", "")));
    }

    static void answer(PrintStream lines, PutMessageResult result) {
        lines.println(answered(result));
    }

    static Json answered(PutMessageResult result) {
        var line = new Json().put("status", result.getPutMessageStatus().name());
        AppendMessageResult appended = result.getAppendMessageResult();
        if (appended != null) {
            line.put("append", appended.getStatus().name())
                .put("phy_offset", appended.getWroteOffset())
                .put("size", appended.getWroteBytes())
                .put("queue_offset", appended.getLogicsOffset())
                .put("store_timestamp", appended.getStoreTimestamp());
        }
        return line;
    }
}
