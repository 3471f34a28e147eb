/*
 * Crashes in jitted code once `begin` is set: in `fault`, which `outer` calls. Neither keeps a frame pointer.
 *
 *     crash plain|gives-up|goes-on|asks
 *
 * The argument is what this program's own SIGSEGV handler does.
 */
#define _GNU_SOURCE
#include <jitscribe/crash.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "must.h"

/* The memory for the code, the place of `fault` in it, and the bytes of the instruction that crashes. */
enum { ROOM = 4096, FAULT = 64, STORE = 10 };

volatile int begin;
static const jitscribe_scribe *scribe;

/* A debugger that this program starts would break here. */
__attribute__((noinline)) void look(void)
{
    __asm__ volatile("" ::: "memory");
}

static void gives_up(int number)
{
    signal(number, SIG_DFL);
}

/* Like a runtime that turns signals into exceptions: it goes on behind the instruction. */
static void goes_on(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
    ucontext_t *machine = context;
    machine->uc_mcontext.gregs[REG_RIP] += STORE;
}

static void asks(int number)
{
    MUST(jitscribe_show_to_debuggers(scribe));
    look();
    signal(number, SIG_DFL);
}

/* push rbp; mov ebp, 7; call fault; pop rbp; ret, and behind it:
 * sub rsp, 8; mov ebp, 9; xor eax, eax; mov dword ptr [rax + 16], 1; add rsp, 8; ret */
static void compile(unsigned char *room)
{
    static const unsigned char outer[] = {0x55, 0xbd, 7, 0, 0, 0, 0xe8, FAULT - 11, 0, 0, 0, 0x5d, 0xc3};
    static const unsigned char fault[] = {
        0x48, 0x83, 0xec, 8,
        0xbd, 9, 0, 0, 0,
        0x31, 0xc0,
        0xc7, 0x80, 16, 0, 0, 0, 1, 0, 0, 0,
        0x48, 0x83, 0xc4, 8, 0xc3,
    };
    memcpy(room, outer, sizeof outer);
    memcpy(room + FAULT, fault, sizeof fault);
}

int main(int argc, char **argv)
{
    MUST(argc == 2);
    if (strcmp(argv[1], "gives-up") == 0) {
        signal(SIGSEGV, gives_up);
    } else if (strcmp(argv[1], "goes-on") == 0) {
        const struct sigaction action = {.sa_sigaction = goes_on, .sa_flags = SA_SIGINFO};
        sigaction(SIGSEGV, &action, NULL);
    }
    const jitscribe_settings settings = {
        .struct_size = sizeof settings,
        .flags = JITSCRIBE_FLAG_GDB_ON_CRASH,
    };
    OK(jitscribe_open(&settings, &scribe));
    if (strcmp(argv[1], "asks") == 0) {
        signal(SIGSEGV, asks);
    }

    unsigned char *room =
        mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(room != MAP_FAILED);
    compile(room);
    MUST(mprotect(room, ROOM, PROT_READ | PROT_EXEC) == 0);

    const jitscribe_str file = JITSCRIBE_STR("crash.tiny");
    const jitscribe_saved saved[] = {{.reg = 6, .offset = -16}};
    const jitscribe_row outer_rows[] = {
        {.offset = 1, .cfa_register = 7, .cfa_offset = 16, .saved = saved, .saved_count = 1},
        {.offset = 12, .cfa_register = 7, .cfa_offset = 8},
    };
    const jitscribe_line outer_lines[] = {{.offset = 0, .line = 1}, {.offset = 6, .line = 2}, {.offset = 11, .line = 3}};
    const jitscribe_code outer = {
        .struct_size = sizeof outer,
        .bytes = room,
        .size = 13,
        .name = JITSCRIBE_STR("outer"),
        .files = &file,
        .file_count = 1,
        .lines = outer_lines,
        .line_count = 3,
        .unwind = {.kind = JITSCRIBE_UNWIND_KIND_ROWS, .rows = outer_rows, .row_count = 2},
    };
    /* It clobbers rbp, which nothing needs after the crash. */
    const jitscribe_row fault_rows[] = {
        {.offset = 4, .cfa_register = 7, .cfa_offset = 16},
        {.offset = 25, .cfa_register = 7, .cfa_offset = 8},
    };
    const jitscribe_line fault_lines[] = {{.offset = 0, .line = 5}, {.offset = 11, .line = 6}, {.offset = 21, .line = 7}};
    const jitscribe_code fault = {
        .struct_size = sizeof fault,
        .bytes = room + FAULT,
        .size = 26,
        .name = JITSCRIBE_STR("fault"),
        .files = &file,
        .file_count = 1,
        .lines = fault_lines,
        .line_count = 3,
        .unwind = {.kind = JITSCRIBE_UNWIND_KIND_ROWS, .rows = fault_rows, .row_count = 2},
    };
    OK(jitscribe_load(scribe, &outer, NULL));
    OK(jitscribe_load(scribe, &fault, NULL));

    puts("ready");
    fflush(stdout);
    const struct timespec moment = {.tv_nsec = 10000000};
    for (int turn = 0; !begin && turn < 6000; turn++) {
        nanosleep(&moment, NULL);
    }
    void (*callee)(void);
    memcpy(&callee, &room, sizeof callee);
    callee();
    puts("it goes on");
    fflush(stdout);
    for (;;) {
        nanosleep(&moment, NULL);
    }
}
