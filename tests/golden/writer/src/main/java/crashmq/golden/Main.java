package crashmq.golden;

import com.alibaba.fastjson2.JSON;
import com.alibaba.fastjson2.JSONObject;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.function.Consumer;
import org.apache.rocketmq.store.DefaultMessageStore;

/**
 * The door: {@code write ROOT ...} makes a store, {@code read ROOT ...} prints what one serves;
 * {@code bench} and {@code load} time what they do. {@code serve} does what standard input asks, a
 * JSON array of arguments a line, and ends each answer with a line that has {@code exit} and
 * {@code said}; there a store that was read is shut down behind, since that sleeps for seconds.
 *
 * <p>Exit codes: 0 done, 1 the store refused or served something wrong, 2 usage.
 */
public final class Main {

    private static final String USAGE = """
        usage: write ROOT --manifest FILE [--messages N] [--expire FILES] [--end clean|halt]
                     [sizes]
               read ROOT [--end clean|halt] [--queries on|off] [sizes]
               bench ROOT --messages N --body-size N [--end clean|halt] [sizes]
               load ROOT [sizes]
               serve
        sizes: --log-file-size N --queue-file-size N --index-slots N --index-entries N
               --flush async|sync
                       --index on|off --kind plain|batch|lmq|ipv6|crc""";

    private Main() {
    }

    public static void main(String[] args) {
        // Only our JSON lines go to standard output, whatever a library prints.
        var lines = new PrintStream(
            new FileOutputStream(FileDescriptor.out), false, StandardCharsets.UTF_8);
        System.setOut(System.err);
        // The store leaves threads behind that would keep the JVM alive.
        Outcome outcome = args.length == 1 && args[0].equals("serve")
            ? serve(lines) : run(args, lines, DefaultMessageStore::shutdown);
        System.err.print(outcome.said());
        System.exit(outcome.exit());
    }

    private record Outcome(int exit, String said) {
    }

    private static Outcome serve(PrintStream lines) {
        var asked = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try {
            String line;
            while ((line = asked.readLine()) != null) {
                String[] args = JSON.parseObject(line, String[].class);
                Outcome outcome = run(args, lines, Main::shutDownBehind);
                var end = new JSONObject();
                end.put("exit", outcome.exit());
                end.put("said", outcome.said());
                lines.println(end);
                lines.flush();
            }
            return new Outcome(0, "");
        } catch (IOException failed) {
            return new Outcome(1, "golden writer: " + failed + "\n");
        }
    }

    private static void shutDownBehind(DefaultMessageStore store) {
        var behind = new Thread(store::shutdown, "shut down behind");
        behind.setDaemon(true);
        behind.start();
    }

    private static Outcome run(
            String[] args, PrintStream lines, Consumer<DefaultMessageStore> end) {
        try {
            dispatch(args, lines, end);
            return new Outcome(0, "");
        } catch (IllegalArgumentException wrong) {
            return new Outcome(2, wrong.getMessage() + "\n" + USAGE + "\n");
        } catch (IllegalStateException refused) {
            return new Outcome(1, "golden writer: " + refused.getMessage() + "\n");
        } catch (Exception failed) {
            return new Outcome(1, "golden writer: " + failed + "\n");
        } finally {
            lines.flush();
        }
    }

    private static void dispatch(
            String[] args, PrintStream lines, Consumer<DefaultMessageStore> end) throws Exception {
        if (args.length < 2) {
            throw new IllegalArgumentException("a verb and a store directory are needed");
        }
        var options = Options.parse(Arrays.copyOfRange(args, 1, args.length));
        switch (args[0]) {
            case "write" -> StoreWriter.write(options);
            case "read" -> StoreReader.read(options, lines, end);
            case "bench" -> StoreBench.bench(options, lines);
            case "load" -> StoreBench.load(options, lines);
            default -> throw new IllegalArgumentException("no verb named " + args[0]);
        }
    }
}
