/*
 * Writes all code that is alive to an object in the directory that the argument names, loads it, and runs it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <jitscribe/objects.h>
#include <stdio.h>
#include <string.h>

#include "must.h"

#if defined(__x86_64__)
static const unsigned char answer[] = {0xb8, 42, 0, 0, 0, 0xc3};
#elif defined(__aarch64__)
static const unsigned char answer[] = {0x40, 0x05, 0x80, 0x52, 0xc0, 0x03, 0x5f, 0xd6};
#endif

int main(int count, char **arguments)
{
    MUST(count == 2);
    const jitscribe_scribe *scribe;
    OK(jitscribe_open(NULL, &scribe));
    char path[4096];
    MUST(snprintf(path, sizeof path, "%s/code.so", arguments[1]) < (int)sizeof path);
    const jitscribe_str file = {path, JITSCRIBE_NUL_TERMINATED};
    const jitscribe_object_format elf = JITSCRIBE_OBJECT_FORMAT_ELF;
    MUST(jitscribe_write_object(NULL, file, elf) == JITSCRIBE_RESULT_ERROR_NULL);
    MUST(jitscribe_write_object(scribe, file, elf) == JITSCRIBE_RESULT_ERROR_NO_CODE);

    const jitscribe_code code = {
        .struct_size = sizeof code,
        .bytes = answer,
        .size = sizeof answer,
        .name = JITSCRIBE_STR("the answer"),
    };
    OK(jitscribe_load(scribe, &code, NULL));
    MUST(jitscribe_write_object(scribe, file, 4711) == JITSCRIBE_RESULT_ERROR_ARGUMENT);
    OK(jitscribe_write_object(scribe, file, elf));
    MUST(jitscribe_write_object(scribe, file, elf) == JITSCRIBE_RESULT_ERROR_FILE);

    void *object = dlopen(path, RTLD_NOW);
    MUST(object != NULL);
    int (*call)(void) = (int (*)(void))(uintptr_t)dlsym(object, "the answer");
    MUST(call != NULL && call() == 42);

    // valgrind keeps programs at low addresses.
    const bool is_high = (uintptr_t)answer >> 40 != 0;
    const uint64_t elsewhere = is_high ? 4096 : (uint64_t)1 << 46;
    const jitscribe_code far = {.struct_size = sizeof far, .address = elsewhere, .size = 16};
    OK(jitscribe_load(scribe, &far, NULL));
    MUST(remove(path) == 0);
    MUST(jitscribe_write_object(scribe, file, elf) == JITSCRIBE_RESULT_ERROR_FORMAT);
    MUST(fopen(path, "r") == NULL);
    puts("all is so");
    return 0;
}
