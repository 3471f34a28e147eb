/* An invalid call that the library cannot detect: code that is shorter than its declared size. */
#include <jitscribe.h>

#include <string.h>

#include "must.h"

int main(void)
{
    const jitscribe_settings settings = {
        .struct_size = sizeof settings,
        .flags = JITSCRIBE_FLAG_BYTES,
    };
    const jitscribe_scribe *scribe;
    OK(jitscribe_open(&settings, &scribe));
    char *memory = malloc(512);
    MUST(memory != NULL);
    memset(memory, 0x90, 512);
    const jitscribe_code code = {
        .struct_size = sizeof code,
        .bytes = memory,
        .size = 1024,
    };
    OK(jitscribe_load(scribe, &code, NULL));
    free(memory);
    return 0;
}
