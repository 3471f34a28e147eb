// Everything wrong that a program can do with the heap, and how memcheck, massif and DHAT are to show it.
//
// Compiled and run like workloads/calls: the text refers to nothing outside of itself, and what lies elsewhere
// is called through the table that `run` is given.

#include <stddef.h>

#define ALONE __attribute__((noinline, noclone, noipa))

struct table {
    void (*qsort)(void *, size_t, size_t, int (*)(const void *, const void *));
    void *(*malloc)(size_t);
    void (*free)(void *);
    long (*labs)(long);
};

// Without unwind tables valgrind follows frame pointers, and misses the caller of code that sets up none: code
// that calls nothing has one only if it asks for it.
ALONE long read_behind(const long *longs) {
    __asm__ volatile("" : : "r"(__builtin_frame_address(0)) : "memory");
    long sum = longs[0];
    sum += longs[4];
    return sum;
}

ALONE long read_freed(const struct table *table) {
    long *longs = table->malloc(48);
    longs[1] = 7;
    table->free(longs);
    return longs[1];
}

ALONE long *leak(const struct table *table, long size) {
    long *lost = table->malloc(size);
    lost[0] = size;
    return lost;
}

ALONE long leak_twice(const struct table *table) {
    long sum = leak(table, 1000)[0];
    sum += leak(table, 1000)[0];
    return sum;
}

ALONE long deep(const struct table *table, long depth) {
    if (depth > 0)
        return deep(table, depth - 1) + 1;
    long *kept = table->malloc(5000);
    kept[0] = kept[4] = depth;
    long sum = read_behind(kept);
    table->free(kept);
    return sum;
}

long run(const struct table *table, long rounds) {
    long *longs = table->malloc(4 * sizeof(long));
    long sum = 0;
    longs[0] = 1;
    for (long round = 0; round < rounds; round++) {
        sum += read_behind(longs) != 0;
        sum += read_freed(table) != 0;
        sum += leak_twice(table);
        sum += deep(table, 3);
    }
    table->free(longs);
    return sum;
}
