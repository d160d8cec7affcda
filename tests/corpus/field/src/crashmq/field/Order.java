package crashmq.field;

import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.Map;

/** A verb and its {@code name=value} pairs, in the order given. */
record Order(String verb, Map<String, String> values) {

    static Order parse(String line) {
        String[] parts = line.split(" ");
        var values = new LinkedHashMap<String, String>();
        for (int i = 1; i < parts.length; i++) {
            int at = parts[i].indexOf('=');
            values.put(decoded(parts[i].substring(0, at)), decoded(parts[i].substring(at + 1)));
        }
        return new Order(parts[0], values);
    }

    String text(String name, String otherwise) {
        return values.getOrDefault(name, otherwise);
    }

    String text(String name) {
        if (!values.containsKey(name)) {
            throw new IllegalArgumentException(verb + " needs " + name + "=");
        }
        return values.get(name);
    }

    long number(String name, long otherwise) {
        return values.containsKey(name) ? Long.parseLong(values.get(name)) : otherwise;
    }

    int small(String name, int otherwise) {
        return Math.toIntExact(number(name, otherwise));
    }

    byte[] hex(String name) {
        return HexFormat.of().parseHex(text(name, ""));
    }

    private static String decoded(String text) {
        return URLDecoder.decode(text, StandardCharsets.UTF_8);
    }
}
