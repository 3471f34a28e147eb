/* A call that is wrong in the way that the library cannot see: a string that is shorter than it is said to be. */
#include <jitscribe.h>

#include <string.h>

#include "must.h"

int main(void)
{
    const jitscribe_scribe *scribe;
    OK(jitscribe_open(NULL, &scribe));
    char *name = malloc(8);
    MUST(name != NULL);
    memset(name, 'x', 8);
    const jitscribe_code code = {
        .struct_size = sizeof code,
        .address = 0x1000,
        .size = 16,
        .name = {.data = name, .size = 64},
    };
    OK(jitscribe_load(scribe, &code, NULL));
    free(name);
    return 0;
}
