/* Loads two copies of the library, each of which keeps a code log, and runs a function of each until it is killed.
 * Words: the copies, and where each keeps its log: "file" or "memory". */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <jitscribe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

typedef const struct jitscribe_scribe *(*get_global)(void);
typedef jitscribe_result (*load)(const struct jitscribe_scribe *, const struct jitscribe_code *, jitscribe_handle *);

static void check(int ok, const char *what)
{
    if (!ok) { fprintf(stderr, "%s failed\n", what); exit(9); }
}

/* Counts down from 100,000. */
static const unsigned char COUNT[] = {0xb8, 0xa0, 0x86, 0x01, 0x00, 0xff, 0xc8, 0x75, 0xfc, 0xc3};

static void *announced(const char *library, const char *place, const char *name)
{
    /* The library reads it when its scribe is made. */
    setenv("JITSCRIBE", strcmp(place, "file") ? "log" : "jitdump", 1);
    void *copy = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    check(copy != NULL, library);
    get_global global = (get_global)dlsym(copy, "jitscribe_global");
    load announce = (load)dlsym(copy, "jitscribe_load");
    check(global && announce, "dlsym");

    void *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(code != MAP_FAILED, "mmap");
    memcpy(code, COUNT, sizeof COUNT);
    const struct jitscribe_scribe *scribe = global();
    const struct jitscribe_code what = {
        .struct_size = sizeof what, .bytes = code, .size = sizeof COUNT, .name = {name, strlen(name)}};
    jitscribe_handle handle;
    check(announce(scribe, &what, &handle) == JITSCRIBE_RESULT_OK, "jitscribe_load");
    return code;
}

int main(int count, char **words)
{
    check(count == 6, "number of words");
    void (*first)(void) = (void (*)(void))announced(words[1], words[3], "of_first_copy");
    void (*second)(void) = (void (*)(void))announced(words[2], words[4], "of_second_copy");
    puts("running");
    fflush(stdout);
    clock_t most = (clock_t)(atof(words[5]) * CLOCKS_PER_SEC);
    while (most == 0 || clock() < most) {
        first();
        second();
    }
    return 0;
}
