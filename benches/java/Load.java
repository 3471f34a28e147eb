import java.io.ByteArrayOutputStream;
import java.io.OutputStream;
import java.net.URI;
import java.util.ArrayList;
import java.util.List;
import javax.tools.FileObject;
import javax.tools.ForwardingJavaFileManager;
import javax.tools.JavaCompiler;
import javax.tools.JavaFileManager;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.ToolProvider;

/**
 * What is measured with one agent or another. Prints how long each step took, in nanoseconds, then waits until its standard
 * input ends: so its threads can be looked at.
 */
public class Load {
    /** A little work, over and over: {@code STEPS} of a thousand rounds each. */
    static void tiers(int steps) {
        Tiers.Shape[] shapes = new Tiers.Shape[200];
        int total = 0;
        for (int step = 0; step < steps; step++) {
            long start = System.nanoTime();
            total += rounds(shapes, step);
            System.out.println(System.nanoTime() - start);
        }
        if (total == 42) System.err.println(total);
    }

    static int rounds(Tiers.Shape[] shapes, int step) {
        int total = 0;
        for (int round = 0; round < 1000; round++) {
            for (int i = 0; i < shapes.length; i++) {
                shapes[i] = step > 3 && i % 2 == 0 ? new Tiers.Circle(i) : new Tiers.Square(i);
            }
            total += Tiers.work(shapes);
        }
        return total;
    }

    /** The same, and then on, until the program ends. */
    static void steady(int steps) {
        tiers(steps);
        Thread work = new Thread(() -> {
            Tiers.Shape[] shapes = new Tiers.Shape[200];
            for (int step = 4, total = 0; ; step += total == 42 ? 1 : 0) total += rounds(shapes, step);
        });
        work.setDaemon(true);
        work.start();
    }

    /** A class with what classes have. */
    static String source(int number) {
        StringBuilder text = new StringBuilder("import java.util.*;\npublic class Made" + number + " {\n");
        for (int i = 0; i < 30; i++) {
            text.append("    static <T extends Comparable<T>> int method" + i + "(List<T> list, Map<String, T> map, int n) {\n"
                + "        int sum = n * " + i + ";\n"
                + "        for (T item : list) {\n"
                + "            if (item.compareTo(list.get(0)) > " + number + ") sum += item.hashCode() ^ n;\n"
                + "            else map.merge(\"key\" + n, item, (a, b) -> a.compareTo(b) < 0 ? a : b);\n"
                + "        }\n"
                + "        switch (sum % 4) {\n"
                + "            case 0: return list.stream().mapToInt(Object::hashCode).map(x -> x + n).sum();\n"
                + "            case 1: try { return Integer.parseInt(\"\" + sum); } catch (NumberFormatException e) { return -1; }\n"
                + "            default: return sum;\n"
                + "        }\n"
                + "    }\n");
        }
        return text.append("}\n").toString();
    }

    static class Source extends SimpleJavaFileObject {
        final String text;

        Source(int number) {
            super(URI.create("string:///Made" + number + ".java"), Kind.SOURCE);
            text = source(number);
        }

        public CharSequence getCharContent(boolean ignored) {
            return text;
        }
    }

    static class Nowhere extends SimpleJavaFileObject {
        Nowhere(String name) {
            super(URI.create("nowhere:///" + name.replace('.', '/') + ".class"), Kind.CLASS);
        }

        public OutputStream openOutputStream() {
            return new ByteArrayOutputStream();
        }
    }

    /** The Java compiler, four classes of thirty methods a step. */
    static void javac(int steps) {
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        JavaFileManager files = new ForwardingJavaFileManager<>(compiler.getStandardFileManager(null, null, null)) {
            public JavaFileObject getJavaFileForOutput(Location place, String name, JavaFileObject.Kind kind, FileObject sibling) {
                return new Nowhere(name);
            }
        };
        for (int step = 0; step < steps; step++) {
            long start = System.nanoTime();
            List<Source> sources = new ArrayList<>();
            for (int number = 0; number < 4; number++) sources.add(new Source(number));
            if (!compiler.getTask(null, files, null, List.of("-proc:none"), null, sources).call()) System.exit(1);
            System.out.println(System.nanoTime() - start);
        }
    }

    /** Load nothing|tiers|steady|javac STEPS */
    public static void main(String[] args) throws Exception {
        int steps = Integer.parseInt(args[1]);
        switch (args[0]) {
            case "tiers" -> tiers(steps);
            case "steady" -> steady(steps);
            case "javac" -> javac(steps);
        }
        System.out.println("done");
        System.in.read();
    }
}
