/* Two scribes in one process, as of a JIT and of a library for regular expressions, each with code that runs. */
#include "log.h"
#include "spin.h"
#include <jitscribe.h>

int main(int argc, char **argv) {
    unsigned char *room = executable_memory();
    static const char *names[] = {"of_the_jit", "of_the_expressions"};
    const jitscribe_settings settings = {.struct_size = sizeof settings};
    for (int i = 0; i < 2; i++) {
        memcpy(room + i * 4096, spin, sizeof spin);
        const jitscribe_scribe *scribe;
        jitscribe_open(&settings, &scribe);
        const jitscribe_code code = {
            .struct_size = sizeof code, .bytes = room + i * 4096, .size = sizeof spin, .name = {names[i], strlen(names[i])}};
        jitscribe_handle handle;
        jitscribe_load(scribe, &code, &handle);
    }
    say_pid();
    long rounds = argc > 1 ? atol(argv[1]) : 1L << 40;
    for (long i = 0; i < rounds; i++) {
        ((void (*)(void))room)();
        ((void (*)(void))(room + 4096))();
    }
}
