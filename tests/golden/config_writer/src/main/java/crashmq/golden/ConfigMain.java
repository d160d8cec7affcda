package crashmq.golden;

import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;

/**
 * The door: {@code write ROOT} makes a broker's config files, {@code read ROOT...} tells what each
 * directory's load to, one JSON object a line.
 *
 * <p>Exit codes: 0 done, 1 a manager failed otherwise than by refusing its file, 2 usage.
 */
public final class ConfigMain {

    private ConfigMain() {
    }

    public static void main(String[] args) {
        // Only our JSON lines go to standard output, whatever a library prints.
        var lines = new PrintStream(
            new FileOutputStream(FileDescriptor.out), false, StandardCharsets.UTF_8);
        System.setOut(System.err);
        // A broker's controller leaves threads behind that would keep the JVM alive.
        System.exit(run(args, lines));
    }

    private static int run(String[] args, PrintStream lines) {
        if (args.length < 2 || !(args[0].equals("write") || args[0].equals("read"))) {
            System.err.println("usage: write ROOT | read ROOT...");
            return 2;
        }
        try {
            for (int i = 1; i < args.length; i++) {
                var tables = new Tables(args[i]);
                if (args[0].equals("write")) {
                    tables.write();
                } else {
                    lines.println(tables.read());
                }
            }
            return 0;
        } catch (Exception failed) {
            System.err.println("config writer: " + failed);
            return 1;
        } finally {
            lines.flush();
        }
    }
}
