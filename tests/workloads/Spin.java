/** About a second of work in several methods, or as many milliseconds as are asked for. */
public class Spin {
    static int fib(int n) {
        return n < 2 ? n : fib(n - 1) + fib(n - 2);
    }

    static int sieve(int limit) {
        boolean[] composite = new boolean[limit + 1];
        int primes = 0;
        for (int i = 2; i <= limit; i++) {
            if (composite[i]) continue;
            primes++;
            for (int j = i * 2; j <= limit; j += i) composite[j] = true;
        }
        return primes;
    }

    interface Shape {
        double area();
    }

    record Square(double side) implements Shape {
        public double area() {
            return side * side;
        }
    }

    record Circle(double radius) implements Shape {
        public double area() {
            return 3.14 * radius * radius;
        }
    }

    static double areas(Shape[] shapes) {
        double sum = 0;
        for (Shape shape : shapes) sum += shape.area();
        return sum;
    }

    public static void main(String[] args) {
        Shape[] shapes = new Shape[1000];
        for (int i = 0; i < shapes.length; i++) shapes[i] = i % 2 == 0 ? new Square(i) : new Circle(i);
        long millis = args.length > 0 ? Long.parseLong(args[0]) : 1500;
        System.out.println("running");
        long end = System.nanoTime() + 1_000_000L * millis;
        double total = 0;
        while (System.nanoTime() < end) total += fib(20) + sieve(5000) + areas(shapes);
        System.out.println(total);
    }
}
