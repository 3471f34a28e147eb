/*
 * Calls code that saves a register and changes it, and waits in what that code calls.
 *
 *     registers list|none
 *
 * With `list`, the code's description says where it saved rbx.
 */
#define _GNU_SOURCE
#include <jitscribe.h>

#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "must.h"

#define VALUE 0x1234567

/* Debuggers stop here. */
__attribute__((noinline)) void tick(void)
{
    __asm__ volatile("");
}

/* Takes a minute, in which a debugger can attach. */
__attribute__((noinline)) void wait_a_minute(void)
{
    const struct timespec moment = {.tv_nsec = 10000000};
    puts("ready");
    fflush(stdout);
    for (int turn = 0; turn < 6000; turn++) {
        tick();
        nanosleep(&moment, NULL);
    }
}

int main(int count, char **words)
{
    /* push rbp; mov rbp, rsp; push rbx; push rbx; mov ebx, 1; call rdi; pop rbx; pop rbx; pop rbp; ret */
    static const unsigned char bytes[] = {0x55, 0x48, 0x89, 0xe5, 0x53, 0x53, 0xbb, 1,    0,
                                          0,    0,    0xff, 0xd7, 0x5b, 0x5b, 0x5d, 0xc3};
    MUST(count == 2);
    void *room = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
                      -1, 0);
    MUST(room != MAP_FAILED);
    memcpy(room, bytes, sizeof bytes);
    const jitscribe_settings settings = {
        .struct_size = sizeof settings,
        .flags = JITSCRIBE_FLAG_CONTROL_THREAD,
    };
    const jitscribe_saved saved = {.offset = -24, .reg = 3};
    const jitscribe_row row = {.offset = 5, .saved = &saved, .saved_count = 1};
    const jitscribe_code code = {
        .struct_size = sizeof code,
        .bytes = room,
        .size = sizeof bytes,
        .name = JITSCRIBE_STR("saver"),
        .unwind = {
            .kind = JITSCRIBE_UNWIND_KIND_FRAME_POINTER,
            .rows = &row,
            .row_count = strcmp(words[1], "list") == 0,
        },
    };
    const jitscribe_scribe *scribe;
    OK(jitscribe_open(&settings, &scribe));
    OK(jitscribe_load(scribe, &code, NULL));
    __asm__ volatile("mov %0, %%rbx\n\t"
                     "call *%1"
                     :
                     : "i"(VALUE), "r"(room), "D"(wait_a_minute)
                     : "rbx", "rax", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory");
    return 0;
}
