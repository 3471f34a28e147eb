/* N codes of 64 MiB without bytes, all at one address: memory that nobody touched, or (TOUCHED) that is there. */
#include "log.h"
#include <jitscribe.h>

int main(int argc, char **argv) {
    int n = atoi(argv[1]);
    size_t size = 64 << 20;
    char *at = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (strcmp(argv[2], "touched") == 0) memset(at, 0xc3, size);
    const jitscribe_scribe *scribe = jitscribe_global();
    for (int i = 0; i < n; i++) {
        const jitscribe_code code = {
            .struct_size = sizeof code, .bytes = (void *)at, .size = size, .name = JITSCRIBE_STR("large")};
        jitscribe_handle handle;
        jitscribe_load(scribe, &code, &handle);
    }
    say_pid();
    for (;;) pause();
}
