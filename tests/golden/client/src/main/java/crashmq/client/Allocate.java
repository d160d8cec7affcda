package crashmq.client;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.StringJoiner;
import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMachineRoomNearby;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragelyByCircle;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByMachineRoom;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueConsistentHash;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * Divides queues among clients with the released strategies.
 *
 * A line in, a line out. In: strategy, machine rooms, clients, queues as broker:id, each a list
 * with commas, with tabs between them. Out: for each client the places of its queues in the list,
 * with commas; clients with semicolons; "!" where the strategy throws.
 */
public final class Allocate {
    private static final String TOPIC = "T";

    private Allocate() {
    }

    public static void main(String[] args) throws IOException {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        try (BufferedReader in =
                 new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                out.println(shares(line.split("\t", -1)));
            }
        }
        out.flush();
    }

    private static String shares(String[] fields) {
        AllocateMessageQueueStrategy strategy = strategy(fields[0], listed(fields[1]));
        List<String> clients = listed(fields[2]);
        List<MessageQueue> queues = new ArrayList<>();
        for (String queue : listed(fields[3])) {
            int at = queue.lastIndexOf(':');
            int id = Integer.parseInt(queue.substring(at + 1));
            queues.add(new MessageQueue(TOPIC, queue.substring(0, at), id));
        }
        StringJoiner shares = new StringJoiner(";");
        for (String client : clients) {
            shares.add(share(strategy, client, queues, clients));
        }
        return shares.toString();
    }

    private static String share(AllocateMessageQueueStrategy strategy, String client,
        List<MessageQueue> queues, List<String> clients) {
        StringJoiner places = new StringJoiner(",");
        try {
            for (MessageQueue queue : strategy.allocate("g", client, queues, clients)) {
                places.add(Integer.toString(queues.indexOf(queue)));
            }
        } catch (IllegalArgumentException refused) {
            return "!";
        }
        return places.toString();
    }

    private static AllocateMessageQueueStrategy strategy(String name, List<String> rooms) {
        switch (name) {
            case "AVG":
                return new AllocateMessageQueueAveragely();
            case "AVG_BY_CIRCLE":
                return new AllocateMessageQueueAveragelyByCircle();
            case "CONSISTENT_HASH":
                return new AllocateMessageQueueConsistentHash();
            case "MACHINE_ROOM":
                AllocateMessageQueueByMachineRoom byRoom = new AllocateMessageQueueByMachineRoom();
                byRoom.setConsumeridcs(new HashSet<>(rooms));
                return byRoom;
            case "MACHINE_ROOM_NEARBY-AVG":
                return new AllocateMachineRoomNearby(
                    new AllocateMessageQueueAveragely(), new Rooms());
            default:
                throw new IllegalStateException("no strategy is called " + name);
        }
    }

    private static List<String> listed(String text) {
        return text.isEmpty() ? new ArrayList<>() : new ArrayList<>(Arrays.asList(text.split(",")));
    }

    /** A broker's and a client's room is what stands before the first @; none: unknown. */
    private static final class Rooms implements AllocateMachineRoomNearby.MachineRoomResolver {
        @Override
        public String brokerDeployIn(MessageQueue queue) {
            return before(queue.getBrokerName());
        }

        @Override
        public String consumerDeployIn(String clientId) {
            return before(clientId);
        }

        private static String before(String name) {
            int at = name.indexOf('@');
            return at < 0 ? "" : name.substring(0, at);
        }
    }
}
