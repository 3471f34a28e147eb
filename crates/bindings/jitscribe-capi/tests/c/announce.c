/*
 * Announces the code that the test expects, and waits for input.
 *
 *     announce lean|bytes|replay
 *
 * It prints "ready". Then it answers each line of its input with a poll and the number of replays; it ends with its input.
 */
#include <jitscribe.h>

#include <string.h>

#include "must.h"

static unsigned char code_bytes[64] = {0x55, 0x48, 0x89, 0xe5, 0x5d, 0xc3};
static unsigned replays;

static const jitscribe_str files[] = {
    JITSCRIBE_STR_INIT("/src/one.lang"),
    {.data = "/src/zwei.lang", .size = JITSCRIBE_NUL_TERMINATED},
};
static const jitscribe_line lines[] = {
    {.offset = 0, .line = 7, .column = 2, .file = 0},
    {.offset = 4, .line = 100000, .column = 70000, .file = 1},
    {.offset = 9, .line = 8, .column = 0, .file = 0},
};
static const jitscribe_line ir_lines[] = {{.offset = 2, .line = 3, .file = 1}};
static const jitscribe_range outer_ranges[] = {{.start = 0, .end = 20}};
static const jitscribe_range inner_ranges[] = {{.start = 2, .end = 5}, {.start = 8, .end = 12}};
static const jitscribe_inlined inlined[] = {
    {.name = JITSCRIBE_STR_INIT("outer"), .parent = JITSCRIBE_NO_PARENT, .file = 0, .line = 7, .column = 4,
     .ranges = outer_ranges, .range_count = 1},
    {.name = JITSCRIBE_STR_INIT("inner"), .parent = 0, .file = 1, .line = 9,
     .ranges = inner_ranges, .range_count = 2},
};
static const jitscribe_saved saved[] = {{.reg = 6, .offset = -16}};
static const jitscribe_row rows[] = {
    {.offset = 4, .cfa_register = 7, .cfa_offset = 16, .saved = saved, .saved_count = 1},
    {.offset = 8, .cfa_register = 6, .cfa_offset = 16, .saved = saved, .saved_count = 1},
};

static void announce(const jitscribe_scribe *scribe)
{
    jitscribe_code code = {
        .struct_size = sizeof code,
        .bytes = code_bytes,
        .size = sizeof code_bytes,
        .name = JITSCRIBE_STR("all of it"),
        .tier = JITSCRIBE_STR("optimised"),
        .kind = JITSCRIBE_KIND_STUB,
        .files = files,
        .file_count = 2,
        .lines = lines,
        .line_count = 3,
        .ir_lines = ir_lines,
        .ir_line_count = 1,
        .inlined = inlined,
        .inlined_count = 2,
        .unwind = {.kind = JITSCRIBE_UNWIND_KIND_ROWS, .rows = rows, .row_count = 2},
    };
    OK(jitscribe_load(scribe, &code, NULL));

    /* Mapped twice: it runs at the other address. Its name is not UTF-8. */
    code = (jitscribe_code){
        .struct_size = sizeof code,
        .address = 0x700000,
        .bytes = code_bytes,
        .size = 6,
        .name = {.data = "a\nb\xff", .size = 4},
        .unwind = {.kind = JITSCRIBE_UNWIND_KIND_FRAME_POINTER, .prologue = 4},
    };
    jitscribe_handle handle;
    OK(jitscribe_load(scribe, &code, &handle));
    OK(jitscribe_moved_to_address(scribe, &handle, 0x710000));

    code = (jitscribe_code){
        .struct_size = sizeof code,
        .address = 0x720000,
        .size = 128,
        .name = JITSCRIBE_STR("short life"),
        .kind = 4711,
        .unwind = {.kind = JITSCRIBE_UNWIND_KIND_FRAME_POINTER_ALWAYS},
    };
    OK(jitscribe_load(scribe, &code, &handle));
    OK(jitscribe_unload(scribe, handle));
}

static void replay(void *data, const jitscribe_scribe *scribe)
{
    MUST(data == &replays);
    replays += 1;
    announce(scribe);
}

int main(int argc, char **argv)
{
    MUST(argc == 2);
    jitscribe_settings settings = {.struct_size = sizeof settings};
    if (strcmp(argv[1], "bytes") == 0) {
        settings.flags = JITSCRIBE_FLAG_BYTES;
    }
    if (strcmp(argv[1], "replay") == 0) {
        settings.flags = JITSCRIBE_FLAG_OFF;
        settings.replay = replay;
        settings.replay_data = &replays;
    }
    const jitscribe_scribe *scribe;
    OK(jitscribe_open(&settings, &scribe));
    announce(scribe);
    printf("ready %llu\n", (unsigned long long)(uintptr_t)code_bytes);
    fflush(stdout);
    char line[16];
    while (fgets(line, sizeof line, stdin) != NULL) {
        OK(jitscribe_poll(scribe));
        printf("replays %u\n", replays);
        fflush(stdout);
    }
    return 0;
}
