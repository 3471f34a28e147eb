/*
 * Announces COUNT codes in a burst, and prints how many of them were not shown to debuggers at once.
 *
 *     JITSCRIBE=gdb,gdb-synchronous burst COUNT
 */
#define _GNU_SOURCE
#include <jitscribe.h>

#include "interface.h"

/* Where the debugger stops the program: gdb fails if a program ends while another of its threads stops at a breakpoint. */
__attribute__((noinline)) static void finished(void)
{
    __asm__ volatile("");
}

int main(int argc, char **argv)
{
    MUST(argc == 2);
    const jitscribe_scribe *scribe = jitscribe_global();
    int count = atoi(argv[1]), late = 0;
    for (int number = 0; number < count; number++) {
        char name[32];
        int size = snprintf(name, sizeof name, "code_%d", number);
        const jitscribe_code code = {
            .struct_size = sizeof code,
            .bytes = NULL,
            .address = 0x10000000u + 64 * (uint64_t)number,
            .size = 64,
            .name = {.data = name, .size = (size_t)size},
        };
        OK(jitscribe_load(scribe, &code, NULL));
        late += shown(name) == 0;
    }
    printf("%d late\n", late);
    fflush(stdout);
    finished();
    return 0;
}
