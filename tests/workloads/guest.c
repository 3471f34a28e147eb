/* A program for QEMU: its functions are compared with its symbols, and its lines with its debug information. */
#include <stdio.h>
#include <stdlib.h>

static inline __attribute__((always_inline)) long mix(long sum, long i) {
    return sum + ((i * 7) ^ (sum >> 3));
}

__attribute__((noinline)) long inner(long n) {
    long sum = 0;
    for (long i = 0; i < n; i++) {
        sum = mix(sum, i);
    }
    return sum;
}

__attribute__((noinline)) int fib(int n) {
    if (n < 2)
        return n;
    return fib(n - 1) + fib(n - 2);
}

static int compare(const void *a, const void *b) {
    return *(const int *)a - *(const int *)b;
}

static int numbers[3000];

int main(void) {
    long all = 0;
    for (int round = 0; round < 200; round++) {
        /* Equal arguments would be computed once, before the loop: both functions depend on nothing else. */
        all += inner(200000 + round);
        all += fib(19 + round % 4);
        for (int i = 0; i < 3000; i++)
            numbers[i] = (int)((i * 2654435761u) >> 2);
        qsort(numbers, 3000, sizeof *numbers, compare);
    }
    printf("%ld\n", all);
    return 0;
}
