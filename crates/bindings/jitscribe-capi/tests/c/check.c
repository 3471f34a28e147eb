/* Calls that are invalid, outdated or unusual. Every buffer has exactly its declared size, so that memory checkers
 * detect each byte that is read beyond it. */
#define _DEFAULT_SOURCE
#include <jitscribe.h>

#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "must.h"

static const jitscribe_handle untouched = 0x7777;

/* Limit of a log: memory checkers scan all of it. */
enum { SMALL = 1 << 20 };

/* A copy in a heap block of exactly its size. */
static void *exactly(const void *bytes, size_t size)
{
    void *copy = malloc(size);
    MUST(copy != NULL);
    memcpy(copy, bytes, size);
    return copy;
}

static jitscribe_result load(const jitscribe_scribe *scribe, jitscribe_code code,
                             jitscribe_handle *handle)
{
    *handle = untouched;
    const jitscribe_result result = jitscribe_load(scribe, &code, handle);
    /* What failed leaves a handle that may be unloaded: hosts ignore results. */
    MUST(result == JITSCRIBE_RESULT_OK || *handle == 0);
    if (result == JITSCRIBE_RESULT_OK) {
        MUST(*handle != 0 && *handle != untouched);
        OK(jitscribe_unload(scribe, *handle));
    }
    return result;
}

static void null_pointers(const jitscribe_scribe *scribe)
{
    const jitscribe_code code = {.struct_size = sizeof code, .address = 0x1000, .size = 16};
    jitscribe_handle handle = untouched;
    int fd = 77;
    size_t length = 77;
    const jitscribe_result null = JITSCRIBE_RESULT_ERROR_NULL;
    MUST(jitscribe_open(NULL, NULL) == null);
    MUST(!jitscribe_is_on(NULL));
    MUST(jitscribe_load(NULL, &code, &handle) == null);
    MUST(jitscribe_load(scribe, NULL, &handle) == null);
    MUST(jitscribe_moved(NULL, &handle, "x", 1) == null);
    MUST(jitscribe_moved(scribe, NULL, "x", 1) == null);
    MUST(jitscribe_moved(scribe, &handle, NULL, 1) == null);
    MUST(jitscribe_moved_to_address(NULL, &handle, 1) == null);
    MUST(jitscribe_moved_to_address(scribe, NULL, 1) == null);
    MUST(jitscribe_unload(NULL, handle) == null);
    MUST(jitscribe_poll(NULL) == null);
    MUST(jitscribe_log_fd(NULL, &fd) == null);
    MUST(jitscribe_log_fd(scribe, NULL) == null);
    MUST(jitscribe_dump_path(NULL, NULL, 0, &length) == null);
    MUST(jitscribe_dump_path(scribe, NULL, 0, NULL) == null);
    MUST(jitscribe_dump_path(scribe, NULL, 1, &length) == null);
    MUST(jitscribe_code_context(NULL, 0, NULL) == null);
    MUST(jitscribe_code_context(NULL, 1, &length) == null);
    MUST(handle == 0 && fd == -1 && length == 0);

    /* No out-parameter for the handle: the code lives for ever. */
    OK(jitscribe_load(scribe, &code, NULL));
}

static void counts(const jitscribe_scribe *scribe)
{
    const jitscribe_code good = {.struct_size = sizeof good, .address = 0x1000, .size = 16};
    const jitscribe_result null = JITSCRIBE_RESULT_ERROR_NULL;
    const jitscribe_result argument = JITSCRIBE_RESULT_ERROR_ARGUMENT;
    const jitscribe_line line = {.offset = 4, .line = 1};
    const jitscribe_line second_file = {.file = 1};
    const jitscribe_str file = JITSCRIBE_STR("a");
    const jitscribe_str broken = {.data = NULL, .size = 3};
    jitscribe_handle handle;
    jitscribe_code code;

#define REFUSED(why, ...)                                                                          \
    do {                                                                                           \
        code = good;                                                                               \
        __VA_ARGS__;                                                                               \
        MUST(load(scribe, code, &handle) == (why));                                                \
    } while (0)
    REFUSED(JITSCRIBE_RESULT_OK, (void)0);
    REFUSED(null, code.address = 0);
    REFUSED(null, code.name = broken);
    REFUSED(null, code.tier = broken);
    REFUSED(null, code.file_count = 1);
    REFUSED(null, code.files = &broken; code.file_count = 1);
    REFUSED(null, code.line_count = 1);
    REFUSED(null, code.ir_line_count = 1);
    REFUSED(null, code.inlined_count = 1);
    REFUSED(null, code.unwind.kind = JITSCRIBE_UNWIND_KIND_ROWS; code.unwind.row_count = 1);
    REFUSED(null,
            code.unwind.kind = JITSCRIBE_UNWIND_KIND_EH_FRAME; code.unwind.eh_frame_size = 1);
    REFUSED(argument, code.lines = &line; code.line_count = SIZE_MAX);
    REFUSED(argument, code.lines = &line; code.line_count = SIZE_MAX / sizeof line);
    REFUSED(argument, code.lines = (const void *)((uintptr_t)&line + 1); code.line_count = 1);
    /* These are announced without the line. */
    REFUSED(JITSCRIBE_RESULT_OK, code.lines = &second_file; code.line_count = 1);
    REFUSED(JITSCRIBE_RESULT_OK, code.lines = &second_file; code.line_count = 1;
            code.files = &file; code.file_count = 1);
    REFUSED(argument, code.bytes = "x"; code.size = UINT64_MAX);
    REFUSED(argument, code.name.data = "x"; code.name.size = SIZE_MAX - 1);
    /* Fields of another kind of unwind info are ignored. */
    REFUSED(JITSCRIBE_RESULT_OK, code.unwind.row_count = 1; code.unwind.eh_frame_size = 1);
    /* Nothing at the end of nowhere. */
    REFUSED(JITSCRIBE_RESULT_OK, code.lines = (const void *)8; code.bytes = "x"; code.size = 0);
    /* Numbers of a later version. */
    REFUSED(JITSCRIBE_RESULT_OK, code.kind = 4711; code.flags = 1; code.unwind.kind = 4711;
            code.unwind.flags = UINT32_MAX);
    REFUSED(JITSCRIBE_RESULT_OK, code.lines = &line; code.line_count = 1);
    REFUSED(JITSCRIBE_RESULT_OK, code.name.data = NULL; code.name.size = JITSCRIBE_NUL_TERMINATED);
#undef REFUSED

    handle = 0;
    OK(jitscribe_unload(scribe, 0));
    OK(jitscribe_moved(scribe, &handle, "x", 1));
    OK(jitscribe_moved_to_address(scribe, &handle, 1));
    MUST(handle == 0);
}

/* Handles of no code, of unloaded code, and of code that has moved. */
static void stale(const jitscribe_scribe *scribe)
{
    const jitscribe_code code = {
        .struct_size = sizeof code, .address = 0x1000, .size = 16, .name = JITSCRIBE_STR("x")};
    const jitscribe_result no_code = JITSCRIBE_RESULT_ERROR_HANDLE;
    const jitscribe_handle wrong[] = {1, (uint64_t)1 << 32, (uint64_t)1 << 63, UINT64_MAX};
    jitscribe_handle handle;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        handle = wrong[i];
        MUST(jitscribe_unload(scribe, handle) == (i == 0 ? JITSCRIBE_RESULT_OK : no_code));
        if (i > 0) {
            MUST(jitscribe_moved(scribe, &handle, "x", 1) == no_code);
            MUST(jitscribe_moved_to_address(scribe, &handle, 1) == no_code);
        }
        MUST(handle == wrong[i]);
    }
    OK(jitscribe_load(scribe, &code, &handle));
    const jitscribe_handle before = handle;
    OK(jitscribe_moved_to_address(scribe, &handle, 0x2000));
    MUST(handle != before && jitscribe_unload(scribe, before) == no_code);
    OK(jitscribe_unload(scribe, handle));
    MUST(jitscribe_unload(scribe, handle) == no_code);
    /* Its space is reused many times. */
    jitscribe_handle live[64] = {0};
    for (unsigned i = 0; i < 100000; i++) {
        OK(jitscribe_unload(scribe, live[i % 64]));
        OK(jitscribe_load(scribe, &code, &live[i % 64]));
        if (i % 100 == 0) {
            MUST(jitscribe_unload(scribe, handle) == no_code);
            MUST(jitscribe_unload(scribe, before) == no_code);
        }
    }
    for (unsigned i = 0; i < 64; i++) {
        OK(jitscribe_unload(scribe, live[i]));
    }
}

/* Programs that were compiled with an older or a newer header. */
static void versions(const jitscribe_scribe *scribe)
{
    jitscribe_code code = {.address = 0x1000, .size = 16, .name = JITSCRIBE_STR("x")};
    jitscribe_handle handle;
    const size_t least = offsetof(jitscribe_code, bytes);
    for (size_t size = 0; size < sizeof code; size += 1) {
        const int is_version = size >= least && size % sizeof(void *) == 0;
        code.struct_size = size;
        jitscribe_code *older = exactly(&code, size < sizeof(size_t) ? sizeof(size_t) : size);
        handle = untouched;
        const jitscribe_result result = jitscribe_load(scribe, older, &handle);
        MUST(result == (is_version ? JITSCRIBE_RESULT_OK : JITSCRIBE_RESULT_ERROR_STRUCT_SIZE));
        MUST(is_version ? handle != untouched : handle == 0);
        free(older);
        if (is_version) {
            OK(jitscribe_unload(scribe, handle));
        }
    }
    struct {
        jitscribe_code code;
        uint64_t unknown[4];
    } later = {.code = code, .unknown = {1, 2, 3, 4}};
    later.code.struct_size = sizeof later;
    OK(jitscribe_load(scribe, &later.code, &handle));
    OK(jitscribe_unload(scribe, handle));

    jitscribe_settings settings = {.flags = JITSCRIBE_FLAG_OFF};
    const jitscribe_scribe *other = scribe;
    settings.struct_size = 1;
    MUST(jitscribe_open(&settings, &other) == JITSCRIBE_RESULT_ERROR_STRUCT_SIZE);
    MUST(other == NULL);
    settings.struct_size = offsetof(jitscribe_settings, limit);
    jitscribe_settings *older = exactly(&settings, settings.struct_size);
    OK(jitscribe_open(older, &other));
    free(older);
    MUST(other != scribe && !jitscribe_is_on(other));
}

/* A scribe that is off costs nothing, is no error, and reads nothing. */
static void off(void)
{
    const jitscribe_settings settings = {
        .struct_size = sizeof settings, .flags = JITSCRIBE_FLAG_OFF, .limit = SMALL};
    const jitscribe_scribe *scribe;
    OK(jitscribe_open(&settings, &scribe));
    MUST(!jitscribe_is_on(scribe));
    const jitscribe_code code = {.struct_size = 1};
    jitscribe_handle handle = untouched;
    OK(jitscribe_load(scribe, &code, &handle));
    MUST(handle == 0);
    OK(jitscribe_poll(scribe));
    OK(jitscribe_unload(scribe, handle));
}

struct heard {
    unsigned times;
    uint32_t subject;
    char text[256];
};

static void hear(void *data, uint32_t subject, const char *text)
{
    struct heard *heard = data;
    heard->times += 1;
    heard->subject = subject;
    snprintf(heard->text, sizeof heard->text, "%s", text);
}

/* A feature that is not available is off, and reported once. */
static void notices(void)
{
    static struct heard heard;
    const jitscribe_settings settings = {
        .struct_size = sizeof settings,
        .jitdump = JITSCRIBE_MODE_ON,
        .limit = SMALL,
        .dir = JITSCRIBE_STR("/proc/self/there/is/no/such/folder"),
        /* It would miss the folder, too. */
        .valgrind = JITSCRIBE_MODE_OFF,
        .notice = hear,
        .notice_data = &heard,
    };
    const jitscribe_scribe *scribe;
    OK(jitscribe_open(&settings, &scribe));
    MUST(heard.times >= 1);
    MUST(heard.subject == JITSCRIBE_SUBJECT_LOG);
    MUST(strlen(heard.text) > 10);
    size_t length = 77;
    OK(jitscribe_dump_path(scribe, NULL, 0, &length));
    MUST(length == 0);

    /* A mistake is told of once, and the rest of the code is announced. */
    const jitscribe_line line = {.line = 3, .file = 7};
    const jitscribe_code code = {.struct_size = sizeof code, .address = 0x1000, .size = 16,
                                 .name = JITSCRIBE_STR("fib"), .lines = &line, .line_count = 1};
    for (unsigned announced = 0; announced < 2; announced++) {
        heard.times = 0;
        OK(jitscribe_load(scribe, &code, NULL));
        MUST(heard.times == (announced == 0 ? 1 : 0));
        MUST(heard.subject == JITSCRIBE_SUBJECT_DESCRIPTION);
        MUST(strstr(heard.text, "lines of fib refer to files") != NULL);
    }
}

/* A log in a file, and its path. */
static void dump(const char *dir)
{
    const jitscribe_settings settings = {
        .struct_size = sizeof settings,
        .jitdump = JITSCRIBE_MODE_ON,
        .dir = {.data = dir, .size = JITSCRIBE_NUL_TERMINATED},
        .limit = SMALL,
    };
    const jitscribe_scribe *scribe;
    OK(jitscribe_open(&settings, &scribe));
    MUST(jitscribe_is_on(scribe));
    size_t length = 0;
    OK(jitscribe_dump_path(scribe, NULL, 0, &length));
    MUST(length > strlen(dir));
    char *path = malloc(length + 1);
    path[0] = '?';
    size_t again = 0;
    /* The path is written whole or not at all. */
    OK(jitscribe_dump_path(scribe, path, length, &again));
    MUST(path[0] == '?' && again == length);
    OK(jitscribe_dump_path(scribe, path, length + 1, &again));
    MUST(again == length && strlen(path) == length);
    MUST(access(path, R_OK) == 0);
    int fd = -1;
    OK(jitscribe_log_fd(scribe, &fd));
    MUST(fd >= 0);
    free(path);
}

/* Tables too large for the stack, NUL-terminated strings, bytes that are not UTF-8. */
static void large(const jitscribe_scribe *scribe)
{
    enum { LINES = 1000, FILES = 40, CALLS = 100 };
    jitscribe_line *lines = calloc(LINES, sizeof *lines);
    jitscribe_str *files = calloc(FILES, sizeof *files);
    jitscribe_inlined *calls = calloc(CALLS, sizeof *calls);
    jitscribe_range *ranges = calloc(CALLS, sizeof *ranges);
    char *names = exactly("\xff\xfe zwei\xc3", 8);
    for (uint32_t i = 0; i < FILES; i++) {
        files[i] = (jitscribe_str){.data = names, .size = i % 9};
    }
    for (uint32_t i = 0; i < LINES; i++) {
        lines[i] = (jitscribe_line){.offset = 4 * i, .line = i, .file = i % FILES};
    }
    for (uint32_t i = 0; i < CALLS; i++) {
        ranges[i] = (jitscribe_range){.start = i, .end = i + 1};
        calls[i] = (jitscribe_inlined){
            .name = {.data = names, .size = 8},
            .parent = i == 0 ? JITSCRIBE_NO_PARENT : i - 1,
            .file = i % FILES,
            .ranges = &ranges[i],
            .range_count = 1,
        };
    }
    unsigned char *bytes = exactly("\x90\x90\x90\xc3", 4);
    jitscribe_handle handle;
    jitscribe_code code = {
        .struct_size = sizeof code,
        .bytes = bytes,
        .size = 4,
        .name = {.data = names, .size = 8},
        .tier = {.data = names, .size = 2},
        .files = files,
        .file_count = FILES,
        .lines = lines,
        .line_count = LINES,
        .ir_lines = lines,
        .ir_line_count = LINES,
        .inlined = calls,
        .inlined_count = CALLS,
    };
    MUST(load(scribe, code, &handle) == JITSCRIBE_RESULT_OK);
    /* A call from nowhere. */
    calls[CALLS - 1].file = FILES;
    MUST(load(scribe, code, &handle) == JITSCRIBE_RESULT_OK);
    free(bytes);
    free(names);
    free(ranges);
    free(calls);
    free(files);
    free(lines);
}

static void *announce_many(void *data)
{
    const jitscribe_scribe *scribe = data;
    for (uint64_t i = 0; i < 200; i++) {
        const jitscribe_code code = {
            .struct_size = sizeof code,
            .address = 0x10000 + 64 * i,
            .size = 64,
            .name = JITSCRIBE_STR("many"),
        };
        jitscribe_handle handle;
        OK(jitscribe_load(scribe, &code, &handle));
        OK(jitscribe_moved_to_address(scribe, &handle, 0x900000 + 64 * i));
        OK(jitscribe_unload(scribe, handle));
    }
    return NULL;
}

static void threads(const jitscribe_scribe *scribe)
{
    pthread_t thread[4];
    for (int i = 0; i < 4; i++) {
        MUST(pthread_create(&thread[i], NULL, announce_many, (void *)(uintptr_t)scribe) == 0);
    }
    for (int i = 0; i < 4; i++) {
        MUST(pthread_join(thread[i], NULL) == 0);
    }
    const pid_t child = fork();
    MUST(child >= 0);
    if (child == 0) {
        announce_many((void *)(uintptr_t)scribe);
        _exit(0);
    }
    int status = -1;
    MUST(waitpid(child, &status, 0) == child);
    MUST(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void *global(void *nothing)
{
    (void)nothing;
    const jitscribe_scribe *scribe = jitscribe_global();
    return (void *)(uintptr_t)scribe;
}

/* Every thread gets the same pointer every time. */
static void environment(void)
{
    pthread_t thread[4];
    for (int i = 0; i < 4; i++) {
        MUST(pthread_create(&thread[i], NULL, global, NULL) == 0);
    }
    const void *first = global(NULL);
    MUST(jitscribe_is_on(first));
    MUST(global(NULL) == first);
    for (int i = 0; i < 4; i++) {
        void *other = NULL;
        MUST(pthread_join(thread[i], &other) == 0);
        MUST(other == first);
    }
}

int main(int argc, char **argv)
{
    MUST(argc == 2);
    MUST(strcmp(jitscribe_version(), JITSCRIBE_VERSION) == 0);
    MUST(strcmp(jitscribe_result_name(JITSCRIBE_RESULT_ERROR_ARGUMENT),
                "JITSCRIBE_RESULT_ERROR_ARGUMENT") == 0);
    MUST(strcmp(jitscribe_result_name(-5), "unknown result") == 0);
    const jitscribe_scribe *scribe = NULL;
    OK(jitscribe_open(NULL, &scribe));
    MUST(jitscribe_is_on(scribe));
    const jitscribe_settings settings = {.struct_size = sizeof settings, .limit = SMALL};
    OK(jitscribe_open(&settings, &scribe));
    MUST(jitscribe_is_on(scribe));
    int fd = -1;
    OK(jitscribe_log_fd(scribe, &fd));
    MUST(fd >= 0);
    null_pointers(scribe);
    counts(scribe);
    stale(scribe);
    versions(scribe);
    off();
    notices();
    dump(argv[1]);
    large(scribe);
    threads(scribe);
    environment();
    puts("all is so");
    return 0;
}
