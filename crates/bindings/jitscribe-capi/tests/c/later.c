/*
 * Calls later_code again and again, and polls the library, which checks whether a debugger has attached.
 */
#define _GNU_SOURCE
#include <jitscribe.h>

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "must.h"

int main(void)
{
    const jitscribe_settings settings = {
        .struct_size = sizeof settings,
        .flags = JITSCRIBE_FLAG_CONTROL_THREAD,
    };
    const jitscribe_scribe *scribe;
    OK(jitscribe_open(&settings, &scribe));
    unsigned char *room =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(room != MAP_FAILED);
    /* push rbp; mov rbp, rsp; pop rbp; ret */
    memcpy(room, "\x55\x48\x89\xe5\x5d\xc3", 6);
    MUST(mprotect(room, 4096, PROT_READ | PROT_EXEC) == 0);
    const jitscribe_code code = {
        .struct_size = sizeof code,
        .bytes = room,
        .size = 6,
        .name = JITSCRIBE_STR("later_code"),
        .unwind = {.kind = JITSCRIBE_UNWIND_KIND_FRAME_POINTER},
    };
    OK(jitscribe_load(scribe, &code, NULL));
    puts("ready");
    fflush(stdout);
    void (*callee)(void);
    memcpy(&callee, &room, sizeof callee);
    const struct timespec moment = {.tv_nsec = 10000000};
    for (int turn = 0; turn < 6000; turn++) {
        callee();
        nanosleep(&moment, NULL);
    }
    return 0;
}
