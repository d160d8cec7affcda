package crashmq.golden;

import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** One store directory and the {@code --name value} pairs behind it. */
record Options(Path root, Map<String, String> values) {

    private static final Set<String> NAMES = Set.of(
        "manifest", "messages", "end", "log-file-size", "queue-file-size",
        "index-slots", "index-entries", "flush", "index", "body-size", "kind",
        "expire", "queries");

    static Options parse(String[] args) {
        var values = new HashMap<String, String>();
        for (int i = 1; i < args.length; i += 2) {
            values.put(nameOf(args[i]), valueAfter(args, i));
        }
        return new Options(Path.of(args[0]).toAbsolutePath(), Map.copyOf(values));
    }

    String oneOf(String name, String... choices) {
        String value = values.getOrDefault(name, choices[0]);
        if (!List.of(choices).contains(value)) {
            throw new IllegalArgumentException(
                "--" + name + " is one of " + String.join(", ", choices) + ", not " + value);
        }
        return value;
    }

    int positive(String name, int otherwise) {
        String text = values.getOrDefault(name, Integer.toString(otherwise));
        if (!text.matches("[1-9][0-9]{0,8}")) {
            throw new IllegalArgumentException(
                "--" + name + " is a whole number from 1 to 999999999, not " + text);
        }
        return Integer.parseInt(text);
    }

    Path file(String name) {
        String value = values.get(name);
        if (value == null) {
            throw new IllegalArgumentException("--" + name + " FILE is needed");
        }
        return Path.of(value).toAbsolutePath();
    }

    private static String nameOf(String argument) {
        String name = argument.startsWith("--") ? argument.substring(2) : "";
        if (!NAMES.contains(name)) {
            throw new IllegalArgumentException("no option named " + argument);
        }
        return name;
    }

    private static String valueAfter(String[] args, int i) {
        if (i + 1 == args.length) {
            throw new IllegalArgumentException(args[i] + " needs a value");
        }
        return args[i + 1];
    }
}
