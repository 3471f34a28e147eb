// Every way in which one function comes to another, for profilers to tell apart.
//
// Compiled into a shared object whose text refers to nothing outside of itself, so that a copy of the text
// at any address does the same: what lies elsewhere is called through the table that `run` is given.

#include <stddef.h>

#define ALONE __attribute__((noinline, noclone, noipa))

struct table {
    void (*qsort)(void *, size_t, size_t, int (*)(const void *, const void *));
    void *(*malloc)(size_t);
    void (*free)(void *);
    long (*labs)(long);
};

// In moves.S.
long self_jump(long), chain_in(long), mid_call(long), mid_jump(long), push_ret(long), push_ret_inside(long),
    call_next(long), fall_into(long), own_entry_again(long), from_two(long), two_heads(long),
    self_jump_once(long), call_self_jump_inside(long), ring_from_two(long);

// Keeps a call from becoming a jump, and a sum from being known beforehand.
static inline long kept(long x) {
    __asm__ volatile("" : "+r"(x));
    return x;
}

ALONE long fact(long n) { return n < 2 ? 1 : kept(fact(n - 1)) * n; }

ALONE long fib(long n) { return n < 2 ? n : kept(fib(n - 1)) + kept(fib(n - 2)); }

long odd(long n);
ALONE long even(long n) { return n == 0 ? 1 : kept(odd(n - 1)) + 1; }
ALONE long odd(long n) { return n == 0 ? 0 : kept(even(n - 1)) + 2; }

ALONE long leaf(long n) {
    long sum = 0;
    for (long i = 0; i < kept(n & 7) + 3; i++)
        sum += i * n;
    return sum;
}

// Tail calls: a chain, and a diamond whose lower corner costs the same from either side.
ALONE long chain_c(long n) { return kept(leaf(n)) + 3; }
ALONE long chain_b(long n) {
    long more = leaf(n + 1);
    return chain_c(more + n);
}
ALONE long chain_a(long n) { return chain_b(kept(n) * 3); }

ALONE long bottom(long n) { return kept(kept(n) * 5) + 1; }
ALONE long left(long n) { return bottom(kept(leaf(n)) + 2); }
ALONE long right(long n) { return bottom(kept(n) - 2); }
ALONE long top(long n) { return n & 1 ? left(n) : right(n); }

// The same with a lower corner that costs what it is asked for: how much for whom, no profile tells.
ALONE long uneven_bottom(long n) {
    long sum = 0;
    for (long i = 0; i < n; i++)
        sum += kept(i);
    return sum;
}
ALONE long uneven_left(long n) { return uneven_bottom(kept(n) + 40); }
ALONE long uneven_right(long n) { return uneven_bottom(kept(2)); }
ALONE long uneven(long n) { return n & 1 ? uneven_left(n) : uneven_right(n); }

// Tail calls in a ring.
long pong(long n, long sum);
ALONE long ping(long n, long sum) { return n <= 0 ? sum : pong(n - 1, kept(sum) + 1); }
ALONE long pong(long n, long sum) { return n <= 0 ? sum : ping(n - 2, kept(sum) * 2 + 1); }

// Rings that are entered once. A ring of three, entered from outside and left by a return after some work.
long ring_second(long n, long sum), ring_third(long n, long sum);
ALONE long ring_first(long n, long sum) { return ring_second(n, kept(sum) + 1); }
ALONE long ring_second(long n, long sum) {
    if (n > 0)
        return ring_third(n - 1, kept(sum) * 2 + 1);
    for (long i = 0; i < 9; i++)
        sum += kept(i);
    return sum;
}
ALONE long ring_third(long n, long sum) { return ring_first(n, kept(sum * 3) + n); }
ALONE long into_ring(long n) { return ring_first(kept(n), 0); }

// A ring that begins with what was called, calls in each round, and is left by a tail call.
long calling_ring_back(long n, long sum);
ALONE long calling_ring(long n, long sum) {
    long more = fact(5);
    return n <= 0 ? leaf(kept(sum)) : calling_ring_back(n - 1, kept(sum) + more);
}
ALONE long calling_ring_back(long n, long sum) { return calling_ring(n, kept(sum) + fact(3)); }

// A ring that only one of many calls jumps to.
long seldom_second(long n, long sum);
ALONE long seldom_first(long n, long sum) { return n <= 0 ? kept(sum) + 1 : seldom_second(n - 1, kept(sum) * 3); }
ALONE long seldom_second(long n, long sum) { return seldom_first(n, kept(kept(sum) + n) * 2); }
ALONE long seldom(long n) { return n == 17 ? seldom_first(9, kept(n)) : n; }

// A ring of which each visit costs something else.
long uneven_ring_back(long n, long sum);
ALONE long uneven_ring(long n, long sum) {
    for (long i = 0; i < n * n; i++)
        sum += kept(i);
    return n <= 0 ? sum : uneven_ring_back(n - 1, sum);
}
ALONE long uneven_ring_back(long n, long sum) { return uneven_ring(n, kept(sum) + 1); }

// A ring of two ways: the order of the visits does not follow from their number.
long way_left(long n, long sum), way_right(long n, long sum);
ALONE long ways(long n, long sum) {
    if (n <= 0)
        return sum;
    return n % 5 < 2 ? way_left(n - 1, sum) : way_right(n - 1, sum);
}
ALONE long way_left(long n, long sum) { return ways(n, kept(kept(sum) * 3) + 1); }
ALONE long way_right(long n, long sum) { return ways(n, kept(sum) + 2); }

// A tail call of what was called before, and is called by others.
ALONE long shared(long n) { return kept(fact((n & 3) + 2)) + n; }
ALONE long to_shared(long n) { return shared(kept(n) + 1); }
ALONE long calls_shared(long n) { return kept(shared(n)) + kept(to_shared(n)); }

ALONE long many_blocks(long n) {
    long sum = 0;
    for (long i = 0; i < 12; i++) {
        if (kept(i) % 3 == 0)
            sum += i;
        else if (kept(i) % 5 == 0)
            sum -= n;
        else
            for (long j = 0; j < (n & 3); j++)
                sum += j & 1 ? i : -i;
        if (sum > 1000)
            break;
    }
    return sum;
}

ALONE int compare(const void *left, const void *right) {
    long a = *(const long *)left, b = *(const long *)right;
    return (a > b) - (a < b);
}

// Called back from outside, and calling back in from there.
ALONE int compare_deep(const void *left, const void *right) {
    long a = kept(leaf(*(const long *)left)), b = kept(leaf(*(const long *)right));
    return (a > b) - (a < b);
}

ALONE long sort(const struct table *out, long n, int (*order)(const void *, const void *)) {
    long items[24];
    for (long i = 0; i < 24; i++)
        items[i] = kept((i * 7919 + n) % 101);
    out->qsort(items, 24, sizeof *items, order);
    return items[0] + items[11] * 3 + items[23] * 7;
}

ALONE long outside(const struct table *out, long n) {
    char *room = out->malloc(40);
    room[n % 40] = 1;
    out->free(room);
    return n;
}

ALONE long tail_outside(const struct table *out, long n) { return out->labs(kept(-n)); }

__attribute__((visibility("default"))) long run(const struct table *out, long rounds) {
    long sum = 0;
    for (long n = 1; n <= rounds; n++) {
        sum += fact(n % 9 + 1) + fib(n % 7) + even(n % 5) + odd(n % 6);
        sum += chain_a(n) + top(n) + uneven(n) + ping(n % 11, n);
        sum += shared(n) + to_shared(n) + calls_shared(n) + many_blocks(n);
        sum += sort(out, n, compare) + sort(out, n, compare_deep);
        sum += outside(out, n) + tail_outside(out, n);
        sum += self_jump(n % 5 + 2) + chain_in(n) + mid_call(n) + mid_jump(n);
        sum += push_ret(n) + push_ret_inside(n) + call_next(n) + fall_into(n);
        sum += own_entry_again(n % 4) + from_two(n) + two_heads(n) + seldom(n);
    }
    sum += into_ring(7) + calling_ring(6, 1) + uneven_ring(6, 0) + ways(23, 1);
    sum += self_jump_once(9) + call_self_jump_inside(8) + ring_from_two(11);
    return sum;
}
