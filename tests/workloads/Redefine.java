import java.lang.instrument.ClassDefinition;
import java.lang.instrument.Instrumentation;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * Runs what Version computes, by itself and inlined, and gives that class the bytes of next/Version.class when the file
 * comes to be. Wants to be a javaagent as well, since only these may.
 */
public class Redefine {
    static Instrumentation instrumentation;

    public static void premain(String arguments, Instrumentation ours) {
        instrumentation = ours;
    }

    static int outer(int n) {
        return Version.work(n) + 1;
    }

    static int rounds(int count) {
        int total = 0;
        for (int i = 0; i < count; i++) {
            for (int n = 0; n < 500; n++) {
                total += outer(n);
                total ^= Version.work(n);
            }
        }
        return total;
    }

    /** Redefine MILLISECONDS */
    public static void main(String[] arguments) throws Exception {
        long end = System.nanoTime() + 1_000_000L * Long.parseLong(arguments[0]);
        Path next = Path.of("next/Version.class");
        int total = rounds(2000);
        System.out.println("running");
        while (!Files.exists(next)) total += rounds(10);
        instrumentation.redefineClasses(new ClassDefinition(Version.class, Files.readAllBytes(next)));
        total += rounds(2000);
        System.out.println("redefined");
        while (System.nanoTime() < end) {
            total += rounds(100);
            // What nobody runs any more goes with the garbage.
            System.gc();
        }
        System.out.println(total);
    }
}
