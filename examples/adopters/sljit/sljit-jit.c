/* Two functions made with sljit in one compiler, which are announced: what is for jitscribe is in `rows_of` and `announce`.
 *
 *     sljit-jit SECONDS
 */
#include <jitscribe.h>

#include "sljitLir.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Where the parts of a function are. Jumps get their sizes in sljit_generate_code: only labels have offsets before that, and
 * they become addresses there. */
struct function {
    const char *name;
    struct sljit_label *begin, *body, *end;
    int saveds, locals;
};

enum { MAX_SAVED = 6, MAX_ROWS = 2 * MAX_SAVED + 2 };

/* sljit keeps no frame pointer. On x86-64 with System V's calls, sljit_emit_enter pushes S0, S1 and so on, and aligns the
 * stack to 16 bytes; sljit_emit_return undoes that at the end. Scratch registers from R7 on would be pushed as well. */
static size_t rows_of(const struct function *function, jitscribe_row *rows, jitscribe_saved *saved)
{
    /* By sljit's public numbers of the machine's registers: those from 8 on have an instruction of two bytes. */
    static const uint16_t dwarf[16] = {0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15};
    const uint32_t body = (uint32_t)(sljit_get_label_addr(function->body) - sljit_get_label_addr(function->begin));
    const uint32_t end = (uint32_t)(sljit_get_label_addr(function->end) - sljit_get_label_addr(function->begin));
    const int32_t pushed = 8 * (function->saveds + 1);
    uint32_t at = 0;
    size_t count = 0;
    for (int i = 0; i < function->saveds; i++) {
        const int number = sljit_get_register_index(SLJIT_GP_REGISTER, SLJIT_S(i));
        at += number < 8 ? 1 : 2;
        saved[i] = (jitscribe_saved){.offset = -16 - 8 * i, .reg = dwarf[number]};
        rows[count++] = (jitscribe_row){at, 16 + 8 * i, 7, 0, (uint32_t)i + 1, saved};
    }
    const uint32_t all = at;
    rows[count++] = (jitscribe_row){body, (function->locals + pushed + 15) & ~15, 7, 0, (uint32_t)function->saveds, saved};
    /* Backwards from the `ret`, which is one byte: behind the addition to rsp, and behind each pop. */
    at = end - 1 - all;
    rows[count++] = (jitscribe_row){at, pushed, 7, 0, (uint32_t)function->saveds, saved};
    for (int i = function->saveds - 1; i >= 0; i--) {
        at += sljit_get_register_index(SLJIT_GP_REGISTER, SLJIT_S(i)) < 8 ? 1 : 2;
        rows[count++] = (jitscribe_row){at, 8 + 8 * i, 7, 0, (uint32_t)i, saved};
    }
    return count;
}

static void announce(const jitscribe_scribe *scribe, const struct function *function)
{
    jitscribe_row rows[MAX_ROWS];
    jitscribe_saved saved[MAX_SAVED];
    const size_t row_count = rows_of(function, rows, saved);
    const uintptr_t begin = sljit_get_label_addr(function->begin);
    const jitscribe_code code = {
        .struct_size = sizeof code,
        .bytes = (const void *)begin,
        .size = sljit_get_label_addr(function->end) - begin,
        .name = {function->name, JITSCRIBE_NUL_TERMINATED},
        .unwind = {.kind = JITSCRIBE_UNWIND_KIND_ROWS, .rows = rows, .row_count = row_count},
    };
    jitscribe_load(scribe, &code, NULL);
}

static void enter(struct sljit_compiler *compiler, struct function *function, int scratches, int arguments)
{
    function->begin = sljit_emit_label(compiler);
    sljit_emit_enter(compiler, 0, arguments, scratches, function->saveds, function->locals);
    function->body = sljit_emit_label(compiler);
}

static void leave(struct sljit_compiler *compiler, struct function *function)
{
    sljit_emit_return(compiler, SLJIT_MOV, SLJIT_R0, 0);
    function->end = sljit_emit_label(compiler);
}

int main(int count, char **words)
{
    if (count != 2) {
        fputs("usage: sljit-jit SECONDS\n", stderr);
        return 2;
    }
    struct sljit_compiler *compiler = sljit_create_compiler(NULL);
    if (compiler == NULL) {
        return 1;
    }

    /* mix(n), with its counter in memory. */
    struct function mix = {.name = "mix of words", .saveds = 1, .locals = 8};
    enter(compiler, &mix, 1, SLJIT_ARGS1(W, W));
    sljit_emit_op1(compiler, SLJIT_MOV, SLJIT_R0, 0, SLJIT_S0, 0);
    sljit_emit_op1(compiler, SLJIT_MOV, SLJIT_MEM1(SLJIT_SP), 0, SLJIT_IMM, 40);
    struct sljit_label *step = sljit_emit_label(compiler);
    sljit_emit_op2(compiler, SLJIT_MUL, SLJIT_R0, 0, SLJIT_R0, 0, SLJIT_IMM, 31);
    sljit_emit_op2(compiler, SLJIT_XOR, SLJIT_R0, 0, SLJIT_R0, 0, SLJIT_S0, 0);
    sljit_emit_op2(compiler, SLJIT_SUB | SLJIT_SET_Z, SLJIT_MEM1(SLJIT_SP), 0, SLJIT_MEM1(SLJIT_SP), 0, SLJIT_IMM, 1);
    sljit_set_label(sljit_emit_jump(compiler, SLJIT_NOT_ZERO), step);
    leave(compiler, &mix);

    /* rounds(n): the sum of mix(n) to mix(1). */
    struct function rounds = {.name = "rounds", .saveds = 2};
    enter(compiler, &rounds, 1, SLJIT_ARGS1(W, W));
    sljit_emit_op1(compiler, SLJIT_MOV, SLJIT_S1, 0, SLJIT_IMM, 0);
    struct sljit_label *round = sljit_emit_label(compiler);
    sljit_emit_op1(compiler, SLJIT_MOV, SLJIT_R0, 0, SLJIT_S0, 0);
    sljit_set_label(sljit_emit_call(compiler, SLJIT_CALL, SLJIT_ARGS1(W, W)), mix.begin);
    sljit_emit_op2(compiler, SLJIT_ADD, SLJIT_S1, 0, SLJIT_S1, 0, SLJIT_R0, 0);
    sljit_emit_op2(compiler, SLJIT_SUB | SLJIT_SET_Z, SLJIT_S0, 0, SLJIT_S0, 0, SLJIT_IMM, 1);
    sljit_set_label(sljit_emit_jump(compiler, SLJIT_NOT_ZERO), round);
    sljit_emit_op1(compiler, SLJIT_MOV, SLJIT_R0, 0, SLJIT_S1, 0);
    leave(compiler, &rounds);

    void *code = sljit_generate_code(compiler, 0, NULL);
    if (code == NULL) {
        fprintf(stderr, "sljit-jit: error %d\n", (int)sljit_get_compiler_error(compiler));
        return 1;
    }
    const jitscribe_scribe *scribe = jitscribe_global();
    if (jitscribe_is_on(scribe)) {
        announce(scribe, &mix);
        announce(scribe, &rounds);
    }
    sljit_sw (*run)(sljit_sw) = (sljit_sw(*)(sljit_sw))sljit_get_label_addr(rounds.begin);
    /* With the compiler, its labels end. */
    sljit_free_compiler(compiler);

    /* Of processor time. */
    const clock_t end = clock() + atoi(words[1]) * CLOCKS_PER_SEC;
    sljit_sw result = 0;
    while (clock() < end) {
        result ^= run(1000);
    }
    printf("%d\n", (int)(result & 1));
    return 0;
}
