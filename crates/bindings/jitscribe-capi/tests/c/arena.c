/*
 * Code in an arena in the directory that the argument names: it runs, has a name in the process, is changed and freed.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <jitscribe/arena.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "must.h"

#if defined(__x86_64__)
static const unsigned char answer[] = {0xb8, 42, 0, 0, 0, 0xc3};
static const size_t number_at = 1;
#elif defined(__aarch64__)
static const unsigned char answer[] = {0x40, 0x05, 0x80, 0x52, 0xc0, 0x03, 0x5f, 0xd6};
#endif

static const jitscribe_arena *runs(const jitscribe_scribe *scribe, const char *folder, bool is_in_place)
{
    const jitscribe_arena_settings settings = {
        .struct_size = sizeof settings,
        .flags = is_in_place ? JITSCRIBE_ARENA_FLAG_IN_PLACE : 0,
        .segment = 1 << 20,
        .dir = {.data = folder, .size = JITSCRIBE_NUL_TERMINATED},
    };
    const jitscribe_arena *arena;
    OK(jitscribe_arena_open(scribe, &settings, &arena));
    MUST(arena != NULL);

    jitscribe_allocation *allocation;
    void *bytes;
    uint64_t address;
    OK(jitscribe_arena_allocate(arena, sizeof answer, 16, &allocation, &bytes, &address));
    MUST(allocation != NULL);
    MUST(((uint64_t)(uintptr_t)bytes == address) == is_in_place);
    memcpy(bytes, answer, sizeof answer);
    OK(jitscribe_allocation_finish(allocation));

    const jitscribe_code code = {
        .struct_size = sizeof code,
        .bytes = answer,
        .size = sizeof answer,
        .address = address,
        .name = JITSCRIBE_STR("answer"),
    };
    jitscribe_handle handle;
    OK(jitscribe_load(scribe, &code, &handle));
    int (*call)(void) = (int (*)(void))(uintptr_t)address;
    MUST(call() == 42);
    Dl_info info;
    MUST(dladdr((void *)(uintptr_t)address, &info) != 0);
    MUST(strcmp(info.dli_sname, "answer") == 0);
    MUST(strstr(info.dli_fname, folder) == info.dli_fname);

#if defined(__x86_64__)
    OK(jitscribe_allocation_edit(allocation, &bytes));
    ((unsigned char *)bytes)[number_at] = 43;
    OK(jitscribe_allocation_finish(allocation));
    MUST(call() == 43);
    if (is_in_place) {
        /* Without an edit, as compilers change the targets of jumps. */
        ((unsigned char *)(uintptr_t)address)[number_at] = 44;
        /* Valgrind, whose library is preloaded, runs what it has translated before (without --smc-check=all). */
        const char *preloaded = getenv("LD_PRELOAD");
        MUST(call() == 44 || (preloaded != NULL && strstr(preloaded, "vgpreload") != NULL));
    }
#endif

    OK(jitscribe_unload(scribe, handle));
    OK(jitscribe_allocation_free(allocation));
    OK(jitscribe_allocation_free(NULL));
    return arena;
}

int main(int count, char **arguments)
{
    MUST(count == 2);
    const jitscribe_scribe *scribe;
    OK(jitscribe_open(NULL, &scribe));
    runs(scribe, arguments[1], true);
    const jitscribe_arena *arena = runs(scribe, arguments[1], false);

    jitscribe_allocation *allocation;
    void *bytes;
    uint64_t address;
    /* Invalid calls, and a request for more space than there is. */
    OK(jitscribe_arena_allocate(arena, (size_t)2 << 30, 16, &allocation, &bytes, &address));
    MUST(allocation == NULL && bytes == NULL && address == 0);
    MUST(jitscribe_arena_open(NULL, NULL, &arena) == JITSCRIBE_RESULT_ERROR_NULL);
    MUST(jitscribe_arena_allocate(NULL, 1, 16, &allocation, &bytes, &address) == JITSCRIBE_RESULT_ERROR_NULL);
    MUST(jitscribe_allocation_finish(NULL) == JITSCRIBE_RESULT_ERROR_NULL);
    MUST(jitscribe_allocation_edit(NULL, &bytes) == JITSCRIBE_RESULT_ERROR_NULL);
    puts("all is so");
    return 0;
}
