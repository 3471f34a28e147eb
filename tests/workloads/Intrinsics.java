/**
 * Methods in which the compiler expands String's own by instructions that push.
 */
public class Intrinsics {
    static int compare(String one, String other) {
        return one.compareTo(other);
    }

    static int find(String text, String part) {
        return text.indexOf(part);
    }

    /** Intrinsics MILLISECONDS */
    public static void main(String[] args) {
        long end = System.nanoTime() + 1_000_000L * Long.parseLong(args[0]);
        String text = "in long text, nearly all time is in the instructions ".repeat(20);
        String one = text + "a", other = text + "b";
        int total = 0;
        int rounds = 0;
        while (System.nanoTime() < end) {
            for (int i = 0; i < 100; i++) total += compare(one, other) + find(one, "nearly b");
            if (++rounds == 10_000) System.out.println("running");
        }
        System.out.println("done in " + rounds + " rounds: " + (total | 1));
    }
}
