/**
 * A native method that spends its time in the JVM and in the kernel, and whose callers are known.
 */
public class Natives {
    static int ask() {
        return Runtime.getRuntime().availableProcessors();
    }

    /** Natives MILLISECONDS */
    public static void main(String[] args) {
        long end = System.nanoTime() + 1_000_000L * Long.parseLong(args[0]);
        int total = 0;
        int rounds = 0;
        while (System.nanoTime() < end) {
            total += ask();
            if (++rounds == 10_000) System.out.println("running");
        }
        System.out.println("done in " + rounds + " rounds: " + (total | 1));
    }
}
