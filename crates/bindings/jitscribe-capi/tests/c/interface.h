/* GDB's JIT interface, as seen by a program that links the library. */
#ifndef INTERFACE_H
#define INTERFACE_H

#include <stdint.h>
#include <string.h>

#include "must.h"

struct jit_code_entry {
    struct jit_code_entry *next, *previous;
    const char *file;
    uint64_t size;
};

extern struct {
    uint32_t version, action;
    struct jit_code_entry *relevant, *first;
} __jit_debug_descriptor;

/* The number of symfiles with this name. The list must be intact. */
static inline int shown(const char *name)
{
    int count = 0;
    const struct jit_code_entry *previous = NULL;
    for (const struct jit_code_entry *at = __jit_debug_descriptor.first; at; at = at->next) {
        MUST(at->previous == previous && memcmp(at->file, "\177ELF", 4) == 0);
        count += memmem(at->file, at->size, name, strlen(name) + 1) != NULL;
        previous = at;
    }
    return count;
}

#endif
