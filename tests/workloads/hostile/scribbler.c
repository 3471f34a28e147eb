/* Announces some code, and then writes random words over its own log, for ever: SEED. */
#include "log.h"
#include <jitscribe.h>

static uint64_t state;
static uint64_t next(void) {
    state ^= state << 13; state ^= state >> 7; state ^= state << 17;
    return state;
}

int main(int argc, char **argv) {
    state = strtoull(argv[1], 0, 0) * 2654435761u + 88172645463325252u;
    const jitscribe_scribe *scribe = jitscribe_global();
    static unsigned char code[1 << 16];
    for (int i = 0; i < 2000; i++) {
        const jitscribe_code one = {
            .struct_size = sizeof one, .bytes = code + i % 1000 * 64, .size = 64, .name = JITSCRIBE_STR("scribbled")};
        jitscribe_handle handle;
        jitscribe_load(scribe, &one, &handle);
    }
    /* The log: the one mapping of a memfd of that name. */
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[8192];
    unsigned long start = 0, end = 0, from, to;
    char access[8];
    while (fgets(line, sizeof line, maps))
        if (strstr(line, "/memfd:jitscribe") && sscanf(line, "%lx-%lx %7s", &from, &to, access) == 3 && strcmp(access, "rw-s") == 0) {
            if (!start) start = from;
            end = to;
            break;
        }
    if (!start) return failed("no log");
    size_t size = end - start < 1 << 20 ? end - start : 1 << 20;
    unsigned char *log = (unsigned char *)start, heads[4096 + 64];
    memcpy(heads, log, sizeof heads);
    say_pid();
    for (unsigned long count = 0;; count++) {
        /* Small values often. Now and then the heads are sound again, lest nobody reads what is behind them. */
        size_t at = 88 + next() % (size - 96);
        uint64_t value = next() & (next() % 3 ? 0xff : ~0ull);
        memcpy(log + at, &value, 1 << next() % 4);
        if (count % 64 == 0) usleep(100);
        if (count % 128 == 64) memcpy(log, heads, sizeof heads);
    }
}
