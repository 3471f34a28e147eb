// The code of a library that is gone while it runs: a function that is exported, and one that is not.
#include <stdint.h>

#ifdef OTHER
// Other functions at the addresses of those below.
uint64_t other_before(uint64_t x) { return x * 3 + 1; }
__attribute__((noinline)) static uint64_t other_inner(uint64_t x) {
#else
__attribute__((noinline)) static uint64_t gone_inner(uint64_t x) {
#endif
    for (int i = 0; i < 1000; i++)
        x = x * 6364136223846793005ULL + 1442695040888963407ULL;
    return x;
}

#ifdef OTHER
#define gone_inner other_inner
#endif

__attribute__((noinline)) uint64_t gone_exported(uint64_t x) {
    uint64_t sum = 0;
    for (int i = 0; i < 100; i++)
        sum += gone_inner(x + i);
    for (int i = 0; i < 100000; i++)
        sum = sum * 31 + (sum >> 7);
    return sum;
}
