package crashmq.golden;

import com.alibaba.fastjson2.JSON;
import com.alibaba.fastjson2.JSONArray;
import com.alibaba.fastjson2.JSONObject;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.apache.rocketmq.broker.BrokerController;
import org.apache.rocketmq.broker.filter.ConsumerFilterManager;
import org.apache.rocketmq.broker.filter.MessageEvaluationContext;
import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.filter.expression.Expression;
import org.apache.rocketmq.filter.expression.MQFilterException;
import org.apache.rocketmq.filter.parser.SelectorParser;
import org.apache.rocketmq.filter.util.BitsArray;
import org.apache.rocketmq.filter.util.BloomFilter;
import org.apache.rocketmq.remoting.netty.NettyClientConfig;
import org.apache.rocketmq.remoting.netty.NettyServerConfig;
import org.apache.rocketmq.remoting.protocol.filter.FilterAPI;
import org.apache.rocketmq.remoting.protocol.heartbeat.SubscriptionData;
import org.apache.rocketmq.store.config.MessageStoreConfig;

/**
 * Asks RocketMQ's own filter classes: a JSON request a line in, a JSON answer a line out.
 *
 * <p>{@code {"verb": ...}} is one of: {@code evaluate} an expression on each of some maps of
 * properties, {@code bloom} positions of texts, {@code bits} of a map, {@code subscribe} to an
 * expression, {@code save} a consumerFilter.json, {@code load} one.
 */
public final class Filters {

    private Filters() {
    }

    public static void main(String[] args) throws Exception {
        // Only our JSON lines go to standard output, whatever a library prints.
        var lines = new PrintStream(
            new FileOutputStream(FileDescriptor.out), false, StandardCharsets.UTF_8);
        System.setOut(System.err);
        var requests = new BufferedReader(
            new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            lines.println(JSON.toJSONString(answer(JSON.parseObject(line))));
        }
        lines.flush();
        // A broker's parts leave threads behind that would keep the JVM alive.
        System.exit(0);
    }

    private static Object answer(JSONObject asked) throws Exception {
        return switch (asked.getString("verb")) {
            case "evaluate" -> evaluate(asked);
            case "bloom" -> bloom(asked);
            case "bits" -> bits(asked);
            case "subscribe" -> subscribe(asked);
            case "save" -> save(asked);
            case "load" -> load(asked);
            default -> throw new IllegalArgumentException("no verb in " + asked);
        };
    }

    /** {@code "P!"}, or for each map true, false, null or {@code "E!"}. */
    private static Object evaluate(JSONObject asked) {
        Expression compiled;
        try {
            compiled = SelectorParser.parse(asked.getString("expression"));
        } catch (MQFilterException wrong) {
            return "P!";
        }
        var results = new ArrayList<Object>();
        for (Object properties : asked.getJSONArray("properties")) {
            results.add(valueOf(compiled, texts((JSONObject) properties)));
        }
        return results;
    }

    private static Object valueOf(Expression compiled, Map<String, String> properties) {
        try {
            return compiled.evaluate(new MessageEvaluationContext(properties));
        } catch (Throwable failed) {
            return "E!";
        }
    }

    private static Map<String, String> texts(JSONObject properties) {
        var texts = new HashMap<String, String>();
        properties.forEach((name, value) -> texts.put(name, (String) value));
        return texts;
    }

    private static Object bloom(JSONObject asked) {
        var filter = BloomFilter.createByFn(asked.getIntValue("f"), asked.getIntValue("n"));
        var positions = new ArrayList<Object>();
        for (Object text : asked.getJSONArray("texts")) {
            positions.add(filter.calcBitPositions((String) text));
        }
        return Map.of("k", filter.getK(), "m", filter.getM(), "positions", positions);
    }

    /** The map of some texts, whether each of others is hit, and each bit by itself. */
    private static Object bits(JSONObject asked) {
        var filter = BloomFilter.createByFn(asked.getIntValue("f"), asked.getIntValue("n"));
        var bits = BitsArray.create(filter.getM());
        for (Object text : asked.getJSONArray("texts")) {
            filter.hashTo((String) text, bits);
        }
        var again = BitsArray.create(bits.bytes());
        var hits = new ArrayList<Boolean>();
        for (Object text : asked.getJSONArray("others")) {
            hits.add(filter.isHit((String) text, again));
        }
        var each = new ArrayList<Boolean>();
        for (int at = 0; at < filter.getM(); at++) {
            each.add(again.getBit(at));
        }
        return Map.of(
            "bytes", HexFormat.of().formatHex(bits.bytes()), "hits", hits, "each", each);
    }

    private static Object subscribe(JSONObject asked) {
        SubscriptionData made;
        try {
            made = FilterAPI.build(
                asked.getString("topic"), asked.getString("expression"), asked.getString("type"));
        } catch (Exception wrong) {
            return "P!";
        }
        return Map.of(
            "expression", made.getSubString(),
            "tags", new TreeSet<>(made.getTagsSet()),
            "codes", new TreeSet<>(made.getCodeSet()),
            "type", made.getExpressionType());
    }

    /** Registers groups, and persists: the file lies below {@code root} then. */
    private static Object save(JSONObject asked) {
        var manager = managerAt(asked.getString("root"));
        for (Object one : asked.getJSONArray("filters")) {
            var filter = (JSONArray) one;
            manager.register(
                filter.getString(0), filter.getString(1), filter.getString(2), "SQL92",
                filter.getLongValue(3));
        }
        for (Object group : asked.getJSONArray("unregistered")) {
            manager.unRegister((String) group);
        }
        manager.persist();
        return rows(manager);
    }

    /** What a broker of 5.3.0 finds below {@code root}; and what it writes again. */
    private static Object load(JSONObject asked) throws Exception {
        var manager = managerAt(asked.getString("root"));
        boolean isLoaded = manager.load();
        var rows = rows(manager);
        manager.persist();
        return Map.of(
            "loaded", isLoaded,
            "rows", rows,
            "text", Files.readString(Path.of(manager.configFilePath())));
    }

    private static ConsumerFilterManager managerAt(String root) {
        var store = new MessageStoreConfig();
        store.setStorePathRootDir(root);
        var broker = new BrokerController(
            new BrokerConfig(), new NettyServerConfig(), new NettyClientConfig(), store);
        return broker.getConsumerFilterManager();
    }

    private static List<Object> rows(ConsumerFilterManager manager) {
        var rows = new ArrayList<Object>();
        manager.getFilterDataByTopic().forEach((topic, groups) ->
            groups.getGroupFilterData().forEach((group, data) ->
                rows.add(Arrays.asList(
                    topic, group, data.getExpression(), data.getExpressionType(),
                    data.getBornTime(), data.getDeadTime(), data.getClientVersion(),
                    data.getBloomFilterData().getBitPos(),
                    data.getBloomFilterData().getBitNum(),
                    data.getCompiledExpression() != null))));
        return rows;
    }
}
