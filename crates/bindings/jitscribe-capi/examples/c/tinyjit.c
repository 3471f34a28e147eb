/*
 * A JIT compiler of one instruction, and its announcements.
 *
 *     cc -std=c11 tinyjit.c $(pkg-config --cflags --libs jitscribe) -o tinyjit
 *
 * It compiles `x -> x + n`, announces the code with source lines and unwind info, runs it, moves it, runs it there,
 * and frees it. With an argument, it waits for the end of its input while the code exists, so that you can inspect
 * it from outside: `jitscribe dump -p PID`.
 */
#define _DEFAULT_SOURCE
#include <jitscribe.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { ROOM = 4096 };

/* Allocates space for code, which is writable until `seal`. */
static unsigned char *make_room(void)
{
    void *room =
        mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    return room;
}

/* Makes code executable. */
static void seal(unsigned char *room, size_t size)
{
    if (mprotect(room, ROOM, PROT_READ | PROT_EXEC) != 0) {
        perror("mprotect");
        exit(1);
    }
    __builtin___clear_cache((char *)room, (char *)room + size);
}

#if defined(__x86_64__)

/* Offsets of its parts. */
enum { AFTER_PUSH = 1, AFTER_MOVE = 4, AFTER_POP = 11 };

/* push rbp; mov rbp, rsp; lea eax, [rdi + n]; pop rbp; ret */
static size_t compile(unsigned char *room, int n)
{
    static const unsigned char before[] = {0x55, 0x48, 0x89, 0xe5, 0x8d, 0x87};
    static const unsigned char after[] = {0x5d, 0xc3};
    size_t size = 0;
    memcpy(room, before, sizeof before);
    size += sizeof before;
    memcpy(room + size, &n, 4);
    size += 4;
    memcpy(room + size, after, sizeof after);
    return size + sizeof after;
}

/* rbp (6) lies at CFA - 16 from the push to the pop. */
static const jitscribe_saved saved[] = {{.reg = 6, .offset = -16}};
static const jitscribe_row rows[] = {
    {.offset = AFTER_PUSH, .cfa_register = 7, .cfa_offset = 16, .saved = saved, .saved_count = 1},
    {.offset = AFTER_MOVE, .cfa_register = 6, .cfa_offset = 16, .saved = saved, .saved_count = 1},
    {.offset = AFTER_POP, .cfa_register = 7, .cfa_offset = 8},
};

#elif defined(__aarch64__)

enum { AFTER_PUSH = 4, AFTER_MOVE = 8, AFTER_POP = 16 };

/* stp x29, x30, [sp, -16]!; mov x29, sp; add w0, w0, n; ldp x29, x30, [sp], 16; ret */
static size_t compile(unsigned char *room, int n)
{
    const unsigned code[] = {
        0xa9bf7bfd, 0x910003fd, 0x11000000u | ((unsigned)n & 0xfff) << 10, 0xa8c17bfd, 0xd65f03c0,
    };
    memcpy(room, code, sizeof code);
    return sizeof code;
}

static const jitscribe_saved saved[] = {{.reg = 29, .offset = -16}, {.reg = 30, .offset = -8}};
static const jitscribe_row rows[] = {
    {.offset = AFTER_PUSH, .cfa_register = 31, .cfa_offset = 16, .saved = saved, .saved_count = 2},
    {.offset = AFTER_MOVE, .cfa_register = 29, .cfa_offset = 16, .saved = saved, .saved_count = 2},
    {.offset = AFTER_POP, .cfa_register = 31, .cfa_offset = 0},
};

#else
#error "this example makes code for x86-64 and aarch64"
#endif

/* An error here is a mistake in this program. A runtime would go on; the code would not be visible to tools. */
static void must(jitscribe_result result)
{
    if (result != JITSCRIBE_RESULT_OK) {
        fprintf(stderr, "%s\n", jitscribe_result_name(result));
        exit(1);
    }
}

static void on_notice(void *data, uint32_t subject, const char *text)
{
    (void)data;
    (void)subject;
    fprintf(stderr, "tinyjit: %s\n", text);
}

typedef int (*function)(int);

static int run(const unsigned char *code, int argument)
{
    function callee;
    memcpy(&callee, &code, sizeof callee);
    return callee(argument);
}

int main(int argc, char **argv)
{
    (void)argv;
    const jitscribe_settings settings = {
        .struct_size = sizeof settings,
        .flags = JITSCRIBE_FLAG_ENVIRONMENT,
        .notice = on_notice,
    };
    const jitscribe_scribe *scribe;
    must(jitscribe_open(&settings, &scribe));

    unsigned char *room = make_room();
    size_t size = compile(room, 42);
    seal(room, size);

    const jitscribe_str file = JITSCRIBE_STR("add.tiny");
    const jitscribe_line lines[] = {
        {.offset = 0, .line = 1, .column = 1},
        {.offset = AFTER_MOVE, .line = 2, .column = 5},
        {.offset = AFTER_POP, .line = 3, .column = 1},
    };
    const jitscribe_code code = {
        .struct_size = sizeof code,
        .bytes = room,
        .size = size,
        .name = JITSCRIBE_STR("add_42"),
        .tier = JITSCRIBE_STR("baseline"),
        .files = &file,
        .file_count = 1,
        .lines = lines,
        .line_count = sizeof lines / sizeof *lines,
        .unwind =
            {
                .kind = JITSCRIBE_UNWIND_KIND_ROWS,
                .rows = rows,
                .row_count = sizeof rows / sizeof *rows,
            },
    };
    jitscribe_handle handle;
    must(jitscribe_load(scribe, &code, &handle));
    int here = run(room, 1);

    /* As a compacting garbage collector does: announce the move first, then run the code there. */
    unsigned char *other = make_room();
    memcpy(other, room, size);
    seal(other, size);
    must(jitscribe_moved(scribe, &handle, other, size));
    munmap(room, ROOM);
    int there = run(other, 2);

    printf("%d %d %p\n", here, there, (void *)other);
    fflush(stdout);
    if (argc > 1) {
        while (getchar() != EOF) {
        }
    }

    must(jitscribe_unload(scribe, handle));
    munmap(other, ROOM);
    return here == 43 && there == 44 ? 0 : 1;
}
