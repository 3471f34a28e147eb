/** Three methods. For another version of the program, a test changes a number in the second, and moves the third one line down. */
public class Hosts {
    static int kept(int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
            sum = (sum * 17 + i) % 65521;
        }
        return sum;
    }

    static int changed(int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
            sum = (sum * 31 + i) % 65521;
        }
        return sum;
    }

    // Moved.
    static int moved(int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
            sum = (sum ^ i) + 3;
        }
        return sum;
    }

    public static void main(String[] arguments) {
        int all = 0;
        for (int round = 0; round < 9000; round++) {
            all += kept(9000) + changed(9000) + moved(9000);
        }
        System.out.println(all != 0);
    }
}
