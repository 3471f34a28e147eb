/*
 * Four threads announce code, and read what the library gives them: handles, notices, and what a code is called.
 */
#include <jitscribe/crash.h>

#include <pthread.h>
#include <string.h>

#include "must.h"

static const jitscribe_scribe *scribe;
static unsigned char memory[4][16][64];

static void heard(void *data, uint32_t subject, const char *text)
{
    (void)data;
    MUST(subject != 0 && strlen(text) > 0);
}

static void *announce(void *of_thread)
{
    unsigned char(*codes)[64] = of_thread;
    for (int round = 0; round < 2; round++) {
        jitscribe_handle handles[16];
        for (int number = 0; number < 16; number++) {
            const jitscribe_line line = {.offset = 8, .line = 3};
            const jitscribe_str file = JITSCRIBE_STR("a.lang");
            const jitscribe_code code = {
                .struct_size = sizeof code,
                .bytes = codes[number],
                .size = sizeof codes[number],
                .name = JITSCRIBE_STR("threads"),
                .files = &file,
                .file_count = 1,
                .lines = &line,
                .line_count = 1,
                .unwind = {.kind = JITSCRIBE_UNWIND_KIND_FRAME_POINTER},
            };
            OK(jitscribe_load(scribe, &code, &handles[number]));
            MUST(handles[number] != 0);
            char text[64];
            jitscribe_symbol symbol = {.struct_size = sizeof symbol};
            const uint64_t inside = (uint64_t)(uintptr_t)codes[number] + 8;
            MUST(jitscribe_symbolize(scribe, inside, 0, text, sizeof text, &symbol));
            MUST(strcmp(symbol.name, "threads") == 0 && symbol.line == 3);
        }
        for (int number = 0; number < 16; number++) {
            OK(jitscribe_unload(scribe, handles[number]));
        }
    }
    return NULL;
}

int main(void)
{
    const jitscribe_settings settings = {
        .struct_size = sizeof settings,
        .flags = JITSCRIBE_FLAG_ENVIRONMENT | JITSCRIBE_FLAG_CONTROL_THREAD,
        .notice = heard,
    };
    OK(jitscribe_open(&settings, &scribe));
    pthread_t threads[4];
    for (int number = 0; number < 4; number++) {
        MUST(pthread_create(&threads[number], NULL, announce, memory[number]) == 0);
    }
    for (int number = 0; number < 4; number++) {
        MUST(pthread_join(threads[number], NULL) == 0);
    }
    puts("all is so");
    return 0;
}
