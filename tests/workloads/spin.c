/* A function that is called, one that is inlined into it, and one of the C library. */
#include <stdlib.h>
static unsigned step(unsigned n) {
    return n * 1103515245u + 12345u;
}
__attribute__((noinline)) static unsigned spin(unsigned n) {
    for (int i = 0; i < 1000; i++)
        n = step(n) ^ (n >> 3);
    return n;
}
int main(int count, char **words) {
    unsigned n = count;
    long rounds = atol(words[1]);
    for (long i = 0; i < rounds; i++)
        n = spin(n);
    return n == 1;
}
