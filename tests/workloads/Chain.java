/**
 * One chain of calls, known beforehand: leaf, middle, forty times down, outer, main. Nearly all the time is spent in leaf.
 */
public class Chain {
    static int leaf(int n) {
        int sum = n;
        for (int i = 0; i < 3000; i++) {
            sum = sum * 31 + i;
        }
        return sum;
    }

    static int middle(int n) {
        int sum = leaf(n);
        return sum * 31 + 1;
    }

    static int down(int n, int left) {
        int below = left == 1 ? middle(n) : down(n + 1, left - 1);
        return below ^ left;
    }

    static int outer(int n) {
        return down(n, 40) + 1;
    }

    /** Chain MILLISECONDS */
    public static void main(String[] args) {
        long end = System.nanoTime() + 1_000_000L * Long.parseLong(args[0]);
        int total = 0;
        int rounds = 0;
        while (System.nanoTime() < end) {
            total += outer(rounds);
            if (++rounds == 50_000) System.out.println("running");
        }
        System.out.println("done in " + rounds + " rounds: " + (total | 1));
    }
}
