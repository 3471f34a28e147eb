/* Compiles a C file in memory with libtcc, announces its functions, and calls its `run` again and again.
 *
 *     tcc-jit FILE.c SECONDS
 *
 * What is for jitscribe is in `announce`: eight lines.
 */
#include <jitscribe.h>
#include <libtcc.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

enum { MAX_SYMBOLS = 4096 };

struct program {
    char *memory;
    size_t size;
    size_t count;
    struct symbol {
        const char *name;
        uintptr_t address;
    } symbols[MAX_SYMBOLS];
};

static void add_symbol(void *data, const char *name, const void *value)
{
    struct program *program = data;
    const uintptr_t offset = (uintptr_t)value - (uintptr_t)program->memory;
    /* Others are what the program imports. */
    if (offset < program->size && program->count < MAX_SYMBOLS) {
        program->symbols[program->count++] = (struct symbol){name, (uintptr_t)value};
    }
}

static int by_address(const void *one, const void *other)
{
    const struct symbol *a = one, *b = other;
    return (a->address > b->address) - (a->address < b->address);
}

/* A symbol ends where the next one begins: libtcc says no sizes. All code of tcc has a frame pointer. */
static void announce(TCCState *state, struct program *program)
{
    const jitscribe_scribe *scribe = jitscribe_global();
    if (!jitscribe_is_on(scribe)) {
        return;
    }
    tcc_list_symbols(state, program, add_symbol);
    qsort(program->symbols, program->count, sizeof *program->symbols, by_address);
    for (size_t at = 0; at < program->count; at++) {
        const struct symbol *symbol = &program->symbols[at];
        const uintptr_t end =
            at + 1 < program->count ? symbol[1].address : (uintptr_t)program->memory + program->size;
        const jitscribe_code code = {
            .struct_size = sizeof code,
            .bytes = (const void *)symbol->address,
            .size = end - symbol->address,
            .name = {symbol->name, JITSCRIBE_NUL_TERMINATED},
            .unwind = {.kind = JITSCRIBE_UNWIND_KIND_FRAME_POINTER},
        };
        jitscribe_load(scribe, &code, NULL);
    }
}

int main(int count, char **words)
{
    if (count != 3) {
        fputs("usage: tcc-jit FILE.c SECONDS\n", stderr);
        return 2;
    }
    TCCState *state = tcc_new();
    tcc_set_output_type(state, TCC_OUTPUT_MEMORY);
    if (tcc_add_file(state, words[1]) != 0) {
        return 1;
    }
    static struct program program;
    const int size = tcc_relocate(state, NULL);
    if (size < 0) {
        return 1;
    }
    program.size = (size_t)size;
    program.memory = mmap(NULL, program.size, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (program.memory == MAP_FAILED || tcc_relocate(state, program.memory) != 0) {
        return 1;
    }
    announce(state, &program);

    int (*run)(int) = (int (*)(int))tcc_get_symbol(state, "run");
    if (run == NULL) {
        fputs("tcc-jit: the file has no function `run`\n", stderr);
        return 1;
    }
    /* Of processor time. */
    const clock_t end = clock() + atoi(words[2]) * CLOCKS_PER_SEC;
    int result = 0;
    while (clock() < end) {
        result ^= run(30);
    }
    printf("%d\n", result & 1);
    return 0;
}
