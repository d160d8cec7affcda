package crashmq.field;

import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;

/**
 * Obeys one order a line of standard input on the released store of one RocketMQ version.
 *
 * <p>An order is a verb and {@code name=value} pairs, apart by one
 * blank, values percent-encoded; {@link Orders} lists the verbs. Each answer is one JSON object
 * a line of standard output. The first order that fails is answered with {@code "failed"} and
 * ends the program. Exit codes: 0 all obeyed, 1 an order failed.
 */
public final class Main {

    private Main() {
    }

    public static void main(String[] args) throws Exception {
        // Only our JSON lines go to standard output, whatever a library prints.
        var lines = new PrintStream(
            new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8);
        System.setOut(System.err);
        var orders = new Orders(lines);
        var input = new BufferedReader(
            new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            if (!obeyed(orders, line, lines)) {
                Runtime.getRuntime().halt(1);
            }
        }
        // The store leaves threads behind that would keep the JVM alive.
        Runtime.getRuntime().halt(0);
    }

    private static boolean obeyed(Orders orders, String line, PrintStream lines) {
        try {
            orders.obey(Order.parse(line));
            return true;
        } catch (Exception | LinkageError | OutOfMemoryError failed) {
            failed.printStackTrace();
            lines.println(new Json()
                .put("failed", line.split(" ")[0]).put("why", rootOf(failed).toString()));
            return false;
        }
    }

    private static Throwable rootOf(Throwable failed) {
        return failed.getCause() == null ? failed : rootOf(failed.getCause());
    }
}
