/*
 * Runs code that a compiler made, with the object file that the compiler made of it, for a debugger.
 *
 *     symfile TEXT OBJECT
 *
 * TEXT is the content of OBJECT's only section with code, which is linked to run at PLACE.
 */
#define _GNU_SOURCE
#include <jitscribe.h>

#include <stdio.h>
#include <sys/mman.h>

#include "must.h"

#define PLACE ((void *)0x20000000)
#define ROOM 0x10000

static size_t read_file(const char *path, void *to)
{
    FILE *file = fopen(path, "rb");
    MUST(file != NULL);
    const size_t size = fread(to, 1, ROOM, file);
    MUST(size > 0 && size < ROOM);
    fclose(file);
    return size;
}

int main(int count, char **words)
{
    static char object[ROOM];
    MUST(count == 3);
    void *memory = mmap(PLACE, ROOM, PROT_READ | PROT_WRITE | PROT_EXEC,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    MUST(memory == PLACE);
    const jitscribe_code code = {
        .struct_size = sizeof code,
        .bytes = memory,
        .size = read_file(words[1], memory),
        .name = JITSCRIBE_STR("a name that the object file does not have"),
        .symfile = object,
        .symfile_size = read_file(words[2], object),
    };
    const jitscribe_scribe *scribe = jitscribe_global();
    jitscribe_handle handle;
    OK(jitscribe_load(scribe, &code, &handle));
    /* It was copied. */
    for (size_t i = 0; i < sizeof object; i++) {
        object[i] = 0;
    }
    int (*add)(int, int);
    *(void **)&add = memory;
    MUST(add(19, 23) == 42);
    OK(jitscribe_unload(scribe, handle));
    MUST(add(1, 2) == 3);
    puts("done");
    return 0;
}
