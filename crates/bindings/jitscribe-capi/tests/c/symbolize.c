/*
 * Names addresses in signal handlers.
 *
 *     symbolize crash     in the handler of a SIGSEGV of jitted code, on an alternate stack of 8 KiB
 *     symbolize always    in a timer's handler that interrupts announcements, and while another thread announces
 *     symbolize changes   after a move, an unload and in children of forks; if the scribe is off; and the stream of a minidump
 *     symbolize cost      prints what a lookup among 20,000 codes takes, in nanoseconds
 */
#define _GNU_SOURCE
#include <jitscribe/crash.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "must.h"

enum { ROOM = 4096, STACK = 8192, FILLED = 0x5a };

static const jitscribe_scribe *scribe;

static jitscribe_handle announce(uint64_t address, const char *name)
{
    const jitscribe_str file = JITSCRIBE_STR("tiny.lang");
    const jitscribe_line lines[] = {{.offset = 0, .line = 1}, {.offset = 2, .line = 2, .column = 7}};
    const jitscribe_range range = {.start = 4, .end = 8};
    const jitscribe_inlined inlined = {
        .name = JITSCRIBE_STR("inner"),
        .ranges = &range,
        .range_count = 1,
        .line = 5,
        .parent = JITSCRIBE_NO_PARENT,
    };
    const jitscribe_code code = {
        .struct_size = sizeof code,
        .address = address,
        .size = 16,
        .name = {.data = name, .size = JITSCRIBE_NUL_TERMINATED},
        .files = &file,
        .file_count = 1,
        .lines = lines,
        .line_count = 2,
        .inlined = &inlined,
        .inlined_count = 1,
    };
    jitscribe_handle handle;
    OK(jitscribe_load(scribe, &code, &handle));
    MUST(handle != 0);
    return handle;
}

/* Whether the innermost function at `pc` has this name. NULL: whether there is none. It is called in handlers. */
static int is_at(uint64_t pc, const char *name)
{
    char buffer[64];
    jitscribe_symbol symbol = {.struct_size = sizeof symbol};
    const int found = jitscribe_symbolize(scribe, pc, 0, buffer, sizeof buffer, &symbol);
    if (!name || !found) {
        return !name && !found;
    }
    return symbol.name == buffer && strcmp(buffer, name) == 0 && symbol.name_size == strlen(name) &&
           strcmp(symbol.file, "tiny.lang") == 0 && !symbol.is_cut && symbol.struct_size == sizeof symbol;
}

static unsigned char stack[STACK] __attribute__((aligned(16)));

static void fail(const char *text)
{
    ssize_t written = write(2, text, strlen(text));
    _exit(written > 0 ? 1 : 2);
}

static void crashed(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
    const uint64_t pc = (uint64_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
    char buffer[64];
    jitscribe_symbol inner = {.struct_size = sizeof inner};
    errno = 77;
    if (!jitscribe_symbolize(scribe, pc, 0, buffer, sizeof buffer, &inner) || errno != 77) {
        fail("not found\n");
    }
    if (strcmp(inner.name, "inner") != 0 || strcmp(inner.file, "tiny.lang") != 0 || inner.line != 2 ||
        inner.column != 7 || inner.function_count != 2 || pc - inner.address != 4 || inner.size != 16) {
        fail("another one\n");
    }
    jitscribe_symbol outer = {.struct_size = sizeof outer};
    if (!jitscribe_symbolize(scribe, pc, 1, buffer, sizeof buffer, &outer) ||
        strcmp(outer.name, "crashes") != 0 || outer.line != 5) {
        fail("another outer one\n");
    }
    if (jitscribe_symbolize(scribe, pc, 2, buffer, sizeof buffer, &outer)) {
        fail("too many\n");
    }
    /* How much of the stack was used below this frame. */
    size_t unused = 0;
    while (unused < STACK && stack[unused] == FILLED) {
        unused++;
    }
    char used[64];
    const int length =
        snprintf(used, sizeof used, "%zu bytes of stack\n", (size_t)((unsigned char *)buffer - stack) - unused);
    _exit(write(1, used, (size_t)length) == length ? 0 : 1);
}

static void crash(void)
{
    unsigned char *room =
        mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(room != MAP_FAILED);
    /* nop; nop; xor eax, eax; mov dword ptr [rax + 16], 1 */
    memcpy(room, "\x90\x90\x31\xc0\xc7\x40\x10\x01\0\0\0\xc3", 12);
    MUST(mprotect(room, ROOM, PROT_READ | PROT_EXEC) == 0);
    announce((uintptr_t)room, "crashes");
    memset(stack, FILLED, sizeof stack);
    const stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    MUST(sigaltstack(&alternate, NULL) == 0);
    const struct sigaction action = {.sa_sigaction = crashed, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    MUST(sigaction(SIGSEGV, &action, NULL) == 0);
    void (*callee)(void);
    memcpy(&callee, &room, sizeof callee);
    callee();
}

static volatile sig_atomic_t interruptions, ends;

/* Once: a timer that goes on would leave the program no time between two handlers. */
static void set_timer(void)
{
    const struct itimerval soon = {.it_value = {.tv_usec = 50}};
    if (setitimer(ITIMER_REAL, &soon, NULL) != 0) {
        fail("no timer\n");
    }
}

static void interrupted(int number)
{
    (void)number;
    const int before = errno;
    if (!is_at(0x1004, "inner") || !is_at(0x1001, "first") || !is_at(0x2001, "last") || !is_at(1, NULL)) {
        fail("not found in an interruption\n");
    }
    if (errno != before) {
        fail("errno\n");
    }
    interruptions++;
    set_timer();
}

/* Loads, moves and unloads code, so that the log's space is reused again and again. */
static void *churn(void *data)
{
    const uint64_t base = (uintptr_t)data;
    jitscribe_handle handles[64] = {0};
    for (uint64_t turn = 0; !ends; turn++) {
        const size_t place = (size_t)(turn % 64);
        OK(jitscribe_unload(scribe, handles[place]));
        handles[place] = announce(base + 64 * turn, "churn");
        if (turn % 3 == 0) {
            OK(jitscribe_moved_to_address(scribe, &handles[place], base + 64 * turn + 32));
        }
        if (interruptions > 1000) {
            ends = 1;
        }
    }
    return NULL;
}

static void always(void)
{
    announce(0x1000, "first");
    for (uint64_t number = 1; number < 300; number++) {
        announce(number << 20, "between");
    }
    announce(0x2000, "last");
    const struct sigaction action = {.sa_handler = interrupted, .sa_flags = SA_RESTART};
    MUST(sigaction(SIGALRM, &action, NULL) == 0);
    pthread_t thread;
    MUST(pthread_create(&thread, NULL, churn, (void *)0x100000000000) == 0);
    set_timer();
    churn((void *)0x200000000000);
    pthread_join(thread, NULL);
    MUST(interruptions > 1000);
    const struct itimerval none = {0};
    MUST(setitimer(ITIMER_REAL, &none, NULL) == 0);
}

/* What a child finds. */
static void in_child(int (*is_so)(void))
{
    const pid_t child = fork();
    MUST(child >= 0);
    if (child == 0) {
        _exit(is_so() ? 0 : 1);
    }
    int status;
    MUST(waitpid(child, &status, 0) == child && status == 0);
}

static int pipes[2][2];
static jitscribe_handle before, unloaded;

static void say(int which)
{
    char byte = 1;
    MUST(write(pipes[which][1], &byte, 1) == 1);
}

static void hear(int which)
{
    char byte;
    MUST(read(pipes[which][0], &byte, 1) == 1);
}

/* It has what was alive at the fork, whatever the parent announces. */
static int has_what_was_alive(void)
{
    if (!is_at(0x3001, "before") || !is_at(0x4001, "unloaded") || !is_at(0x1001, NULL)) {
        return 0;
    }
    say(0);
    hear(1);
    /* The parent has unloaded one, and loaded another one. */
    if (!is_at(0x3001, "before") || !is_at(0x4001, "unloaded") || !is_at(0x5001, NULL)) {
        return 0;
    }
    announce(0x6000, "own");
    if (!is_at(0x3001, "before") || !is_at(0x4001, "unloaded") || !is_at(0x5001, NULL) || !is_at(0x6001, "own")) {
        return 0;
    }
    OK(jitscribe_unload(scribe, before));
    return is_at(0x3001, NULL) && is_at(0x4001, "unloaded") && is_at(0x6001, "own");
}

static int forks_again(void)
{
    if (!is_at(0x3001, "before")) {
        return 0;
    }
    announce(0x6000, "own");
    const pid_t child = fork();
    if (child == 0) {
        int is_so = is_at(0x3001, "before") && is_at(0x6001, "own");
        announce(0x7000, "its own");
        is_so &= is_at(0x3001, "before") && is_at(0x6001, "own") && is_at(0x7001, "its own");
        _exit(is_so ? 0 : 1);
    }
    int status;
    return waitpid(child, &status, 0) == child && status == 0 && is_at(0x7001, NULL);
}

/* The stream of a minidump has the codes to which a register or a word of a stack refers. */
static void crash_stream(void)
{
    static uint64_t stream[512];
    const uint64_t words[] = {0x3001, 0x3002, 7};
    const uint64_t stack_words[] = {1, 0x5010};
    const jitscribe_stack stacks[] = {
        {.address = (uintptr_t)stack_words, .size = sizeof stack_words},
        {.address = 16, .size = 4096},
    };
    size_t length;
    OK(jitscribe_crash_stream(scribe, stacks, 2, words, 3, stream, sizeof stream, &length));
    const uint32_t *header = (const uint32_t *)stream;
    MUST(memcmp(stream, "JITC", 4) == 0 && length % 8 == 0 && length < sizeof stream);
    /* Neither has bytes, as there is no memory at these addresses. */
    MUST(header[2] == 2 && header[3] == 0 && stream[3] == 0 && stream[2] + 40 == length);
    MUST(memmem(stream, length, "before", 6) && memmem(stream, length, "after", 5) && !memmem(stream, length, "moved", 5));
    /* A buffer that is too small for both. */
    OK(jitscribe_crash_stream(scribe, stacks, 2, words, 3, stream, 400, &length));
    MUST(header[2] == 1 && stream[3] == 1 && length < 400);
    OK(jitscribe_crash_stream(scribe, NULL, 0, NULL, 0, stream, sizeof stream, &length));
    MUST(header[2] == 0 && length == 80);
    OK(jitscribe_crash_stream(scribe, stacks, 2, words, 3, stream, 79, &length));
    MUST(length == 0);
    OK(jitscribe_crash_stream(scribe, NULL, 0, NULL, 0, NULL, 0, &length));
    MUST(length == 0);
    MUST(jitscribe_crash_stream(scribe, NULL, 1, NULL, 0, stream, 400, &length) == JITSCRIBE_RESULT_ERROR_NULL);
    MUST(jitscribe_crash_stream(scribe, NULL, 0, NULL, 0, stream, 400, NULL) == JITSCRIBE_RESULT_ERROR_NULL);
    MUST(jitscribe_crash_stream(NULL, NULL, 0, NULL, 0, stream, 400, &length) == JITSCRIBE_RESULT_ERROR_NULL);
}

static void changes(void)
{
    jitscribe_handle handle = announce(0x1000, "moved");
    OK(jitscribe_moved_to_address(scribe, &handle, 0x2000));
    MUST(is_at(0x1001, NULL) && is_at(0x2001, "moved"));
    OK(jitscribe_unload(scribe, handle));
    MUST(is_at(0x2001, NULL));
    /* Code that replaces other code. */
    announce(0x2000, "old");
    announce(0x2000, "new");
    MUST(is_at(0x2001, "new") && is_at(0x200f, "new") && is_at(0x2010, NULL) && is_at(0x1fff, NULL));

    before = announce(0x3000, "before");
    in_child(forks_again);
    unloaded = announce(0x4000, "unloaded");
    MUST(pipe(pipes[0]) == 0 && pipe(pipes[1]) == 0);
    const pid_t child = fork();
    MUST(child >= 0);
    if (child == 0) {
        _exit(has_what_was_alive() ? 0 : 1);
    }
    hear(0);
    OK(jitscribe_unload(scribe, unloaded));
    announce(0x5000, "after");
    say(1);
    int status;
    MUST(waitpid(child, &status, 0) == child && status == 0);

    char buffer[8];
    jitscribe_symbol symbol = {.struct_size = sizeof symbol};
    MUST(jitscribe_symbolize(scribe, 0x3001, 0, buffer, sizeof buffer, &symbol) && symbol.is_cut);
    MUST(strcmp(symbol.name, "before") == 0 && symbol.file == buffer + 7 && symbol.file_size == 0);
    MUST(jitscribe_symbolize(scribe, 0x3001, 0, NULL, 0, &symbol) && !symbol.name && !symbol.file);
    MUST(!jitscribe_symbolize(NULL, 0x3001, 0, buffer, sizeof buffer, &symbol));
    MUST(!jitscribe_symbolize(scribe, 0x3001, 0, NULL, 1, &symbol));
    MUST(!jitscribe_symbolize(scribe, 0x3001, 0, buffer, sizeof buffer, NULL));
    symbol.struct_size = 8;
    MUST(!jitscribe_symbolize(scribe, 0x3001, 0, buffer, sizeof buffer, &symbol));

    crash_stream();
    const jitscribe_settings off = {.struct_size = sizeof off, .flags = JITSCRIBE_FLAG_OFF};
    OK(jitscribe_open(&off, &scribe));
    MUST(is_at(0x3001, NULL));
}

static void cost(void)
{
    enum { CODES = 20000, TURNS = 200 };
    for (uint64_t number = 0; number < CODES; number++) {
        announce(0x10000000 + 64 * number, "a_function_with_a_usual_name");
    }
    char buffer[64];
    jitscribe_symbol symbol = {.struct_size = sizeof symbol};
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (uint64_t turn = 0; turn < TURNS; turn++) {
        MUST(jitscribe_symbolize(scribe, 0x10000001 + 64 * (turn * 97 % CODES), 0, buffer, sizeof buffer, &symbol));
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    const long long spent = (end.tv_sec - start.tv_sec) * 1000000000LL + (end.tv_nsec - start.tv_nsec);
    printf("%lld ns for one of %d codes\n", spent / TURNS, CODES);
}

int main(int argc, char **argv)
{
    MUST(argc == 2);
    const jitscribe_settings settings = {.struct_size = sizeof settings, .limit = 4 << 20};
    OK(jitscribe_open(strcmp(argv[1], "always") == 0 ? &settings : NULL, &scribe));
    if (strcmp(argv[1], "crash") == 0) {
        crash();
    } else if (strcmp(argv[1], "always") == 0) {
        always();
    } else if (strcmp(argv[1], "changes") == 0) {
        changes();
    } else {
        MUST(strcmp(argv[1], "cost") == 0);
        cost();
        return 0;
    }
    puts("all is so");
    return 0;
}
