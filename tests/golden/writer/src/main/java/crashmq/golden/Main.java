package crashmq.golden;

import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * The door: {@code write ROOT ...} makes a store, {@code read ROOT ...} prints what one serves;
 * {@code bench} and {@code load} time what they do.
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
        System.exit(run(args, lines));
    }

    private static int run(String[] args, PrintStream lines) {
        try {
            dispatch(args, lines);
            return 0;
        } catch (IllegalArgumentException wrong) {
            System.err.println(wrong.getMessage() + "\n" + USAGE);
            return 2;
        } catch (IllegalStateException refused) {
            System.err.println("golden writer: " + refused.getMessage());
            return 1;
        } catch (Exception failed) {
            System.err.println("golden writer: " + failed);
            return 1;
        } finally {
            lines.flush();
        }
    }

    private static void dispatch(String[] args, PrintStream lines) throws Exception {
        if (args.length < 2) {
            throw new IllegalArgumentException("a verb and a store directory are needed");
        }
        var options = Options.parse(Arrays.copyOfRange(args, 1, args.length));
        switch (args[0]) {
            case "write" -> StoreWriter.write(options);
            case "read" -> StoreReader.read(options, lines);
            case "bench" -> StoreBench.bench(options, lines);
            case "load" -> StoreBench.load(options, lines);
            default -> throw new IllegalArgumentException("no verb named " + args[0]);
        }
    }
}
