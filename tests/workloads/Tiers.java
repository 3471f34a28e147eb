import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.function.IntUnaryOperator;
import java.util.stream.IntStream;

/**
 * Calls inlined into one another, lambdas, methods compiled at several tiers, in loops and for one receiver after another;
 * and, asked to churn, classes that come and go with their code.
 */
public class Tiers {
    static int leaf(int n) {
        int sum = n;
        for (int i = 0; i < 40; i++) {
            sum = sum * 31 + i;
        }
        return sum;
    }

    static int middle(int n) {
        int before = n ^ 0x55;
        return leaf(before)
            + 1;
    }

    static int outer(int n) {
        int first = middle(n);
        int second = middle(n + 1);
        return first ^ second;
    }

    interface Shape {
        int area();
    }

    record Square(int side) implements Shape {
        public int area() {
            return leaf(side) * side;
        }
    }

    record Circle(int radius) implements Shape {
        public int area() {
            return 3 * middle(radius);
        }
    }

    static int areas(Shape[] shapes) {
        int sum = 0;
        for (Shape shape : shapes) {
            sum += shape.area();
        }
        return sum;
    }

    static int apply(IntUnaryOperator operator, int n) {
        return operator.applyAsInt(n);
    }

    static int fib(int n) {
        return n < 2 ? n : fib(n - 1) + fib(n - 2);
    }

    static int work(Shape[] shapes) {
        IntUnaryOperator lambda = n -> outer(n) * 3;
        int total = fib(12) + areas(shapes);
        for (int i = 0; i < 500; i++) {
            total += apply(lambda, i);
        }
        return total + IntStream.range(0, 100).map(n -> leaf(n) + 1).sum();
    }

    /** What churn loads over and over: its own copy of the class each time. */
    public static class Passing implements IntUnaryOperator {
        public int applyAsInt(int n) {
            int sum = n;
            for (int i = 0; i < 200; i++) {
                sum += leafOfOne(i);
            }
            return sum;
        }

        static int leafOfOne(int n) {
            return n * 7 + 1;
        }
    }

    /** Keeps eight copies of a class at work, a new one for the oldest each time. */
    static int churn(URL[] classes, ArrayDeque<IntUnaryOperator> copies) throws Exception {
        URLClassLoader loader = new URLClassLoader(classes, null);
        copies.add((IntUnaryOperator) loader.loadClass("Tiers$Passing").getDeclaredConstructor().newInstance());
        if (copies.size() > 8) copies.remove();
        int total = 0;
        for (IntUnaryOperator copy : copies) {
            for (int i = 0; i < 600; i++) total += copy.applyAsInt(i);
        }
        return total;
    }

    /** Tiers MILLISECONDS [churn] */
    public static void main(String[] args) throws Exception {
        Shape[] shapes = new Shape[200];
        long start = System.nanoTime();
        long end = start + 1_000_000L * Long.parseLong(args[0]);
        boolean churns = args.length > 1;
        URL[] classes = {Path.of(".").toUri().toURL()};
        ArrayDeque<IntUnaryOperator> copies = new ArrayDeque<>();
        int total = 0;
        int rounds = 0;
        while (System.nanoTime() < end) {
            // Circles come when code for squares alone was made.
            for (int i = 0; i < shapes.length; i++) {
                shapes[i] = rounds > 2000 && i % 2 == 0 ? new Circle(i) : new Square(i);
            }
            if (churns) total += churn(classes, copies);
            else total += work(shapes);
            if (churns && rounds % 20 == 0) System.gc();
            if (++rounds == (churns ? 100 : 5000)) System.out.println("running");
        }
        System.out.println("done in " + rounds + " rounds: " + (total | 1));
    }
}
