// About a second of work in several methods.
using System;
using System.Collections.Generic;

class Spin {
    static int Fib(int n) {
        return n < 2 ? n : Fib(n - 1) + Fib(n - 2);
    }

    static T Largest<T>(List<T> items) where T : IComparable<T> {
        T best = items[0];
        foreach (T item in items) {
            if (item.CompareTo(best) > 0) best = item;
        }
        return best;
    }

    static void Main() {
        var items = new List<int>();
        for (int i = 0; i < 2000; i++) items.Add(i * 7919 % 2003);
        var watch = System.Diagnostics.Stopwatch.StartNew();
        long total = 0;
        while (watch.ElapsedMilliseconds < 1000) total += Fib(18) + Largest(items);
        Console.WriteLine(total);
    }
}
