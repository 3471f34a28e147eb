/* Two functions made with libgccjit, which are announced: what is for jitscribe is in `unwind_info` and `announce`.
 *
 *     gcc-jit SECONDS
 */
#define _GNU_SOURCE
#include <jitscribe.h>

#include <dlfcn.h>
#include <elf.h>
#include <libgccjit.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Of libgcc: the unwind info of the function at an address, in an .eh_frame that is loaded. No header declares it. */
struct dwarf_eh_bases {
    void *text, *data, *function;
};
extern const uint8_t *_Unwind_Find_FDE(void *at, struct dwarf_eh_bases *bases);

static uint32_t word(const uint8_t *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

/* GCC's own unwind info, as a section of one CIE and one FDE for this function alone: its size, or 0 if there is none. */
static size_t unwind_info(const uint8_t *code, size_t size, uint8_t *section, size_t space)
{
    struct dwarf_eh_bases bases;
    const uint8_t *fde = _Unwind_Find_FDE((void *)(uintptr_t)code, &bases);
    if (fde == NULL) {
        return 0;
    }
    const uint8_t *cie = fde + 4 - word(fde + 4);
    const size_t cie_size = word(cie) + 4, fde_size = word(fde) + 4;
    /* The usual augmentation for C: pointers are relative, of four bytes. The CIE's version and text are behind its id. */
    if (memcmp(cie + 8, "\1zR", 4) != 0 || cie_size + fde_size > space) {
        return 0;
    }
    memcpy(section, cie, cie_size);
    memcpy(section + cie_size, fde, fde_size);
    const uint32_t to_cie = (uint32_t)cie_size + 4;
    memcpy(section + cie_size + 4, &to_cie, sizeof to_cie);
    /* From the field to the code's begin: the section will be behind the code. */
    const int32_t to_code = -(int32_t)(((size + 7) & ~(size_t)7) + cie_size + 8);
    memcpy(section + cie_size + 8, &to_code, sizeof to_code);
    return cie_size + fde_size;
}

/* libgccjit says no sizes: the symbol has it, as the code is in a shared object that libgccjit has loaded. */
static void announce(gcc_jit_result *result, const char *name)
{
    const jitscribe_scribe *scribe = jitscribe_global();
    const uint8_t *code = gcc_jit_result_get_code(result, name);
    const ElfW(Sym) *symbol;
    Dl_info info;
    if (!jitscribe_is_on(scribe) || !dladdr1(code, &info, (void **)&symbol, RTLD_DL_SYMENT) || symbol == NULL) {
        return;
    }
    uint8_t section[1024];
    const size_t section_size = unwind_info(code, symbol->st_size, section, sizeof section);
    const jitscribe_code announced = {
        .struct_size = sizeof announced,
        .bytes = code,
        .size = symbol->st_size,
        .name = {name, JITSCRIBE_NUL_TERMINATED},
        .unwind = {.kind = section_size ? JITSCRIBE_UNWIND_KIND_EH_FRAME : JITSCRIBE_UNWIND_KIND_NONE,
                   .eh_frame = section,
                   .eh_frame_size = section_size},
    };
    jitscribe_load(scribe, &announced, NULL);
}

/* long NAME(long n) { long value = FIRST; long i = COUNT; do { value = STEP; i--; } while (i > 0); return value; }
 * With a callee, STEP is value + callee(i) and COUNT is n; else it is (value * 31) ^ i, and COUNT is 40. */
static gcc_jit_function *function(gcc_jit_context *context, const char *name, gcc_jit_function *callee)
{
    gcc_jit_type *type = gcc_jit_context_get_type(context, GCC_JIT_TYPE_LONG);
    gcc_jit_param *n = gcc_jit_context_new_param(context, NULL, type, "n");
    gcc_jit_function *made =
        gcc_jit_context_new_function(context, NULL, GCC_JIT_FUNCTION_EXPORTED, type, name, 1, &n, 0);
    gcc_jit_lvalue *value = gcc_jit_function_new_local(made, NULL, type, "value");
    gcc_jit_lvalue *i = gcc_jit_function_new_local(made, NULL, type, "i");
    gcc_jit_rvalue *given = gcc_jit_param_as_rvalue(n), *now = gcc_jit_lvalue_as_rvalue(value);
    gcc_jit_rvalue *zero = gcc_jit_context_zero(context, type), *one = gcc_jit_context_one(context, type);
    gcc_jit_rvalue *count = gcc_jit_context_new_rvalue_from_long(context, type, 40), *step;
    gcc_jit_rvalue *at = gcc_jit_lvalue_as_rvalue(i);
    gcc_jit_block *entry = gcc_jit_function_new_block(made, "entry");
    gcc_jit_block *loop = gcc_jit_function_new_block(made, "loop");
    gcc_jit_block *end = gcc_jit_function_new_block(made, "end");
    if (callee != NULL) {
        gcc_jit_rvalue *call = gcc_jit_context_new_call(context, NULL, callee, 1, &at);
        step = gcc_jit_context_new_binary_op(context, NULL, GCC_JIT_BINARY_OP_PLUS, type, now, call);
    } else {
        gcc_jit_rvalue *factor = gcc_jit_context_new_rvalue_from_long(context, type, 31);
        step = gcc_jit_context_new_binary_op(context, NULL, GCC_JIT_BINARY_OP_MULT, type, now, factor);
        step = gcc_jit_context_new_binary_op(context, NULL, GCC_JIT_BINARY_OP_BITWISE_XOR, type, step, at);
    }
    gcc_jit_block_add_assignment(entry, NULL, value, callee != NULL ? zero : given);
    gcc_jit_block_add_assignment(entry, NULL, i, callee != NULL ? given : count);
    gcc_jit_block_end_with_jump(entry, NULL, loop);
    gcc_jit_block_add_assignment(loop, NULL, value, step);
    gcc_jit_block_add_assignment_op(loop, NULL, i, GCC_JIT_BINARY_OP_MINUS, one);
    gcc_jit_rvalue *more = gcc_jit_context_new_comparison(context, NULL, GCC_JIT_COMPARISON_GT, at, zero);
    gcc_jit_block_end_with_conditional(loop, NULL, more, loop, end);
    gcc_jit_block_end_with_return(end, NULL, now);
    return made;
}

int main(int count, char **words)
{
    if (count != 2) {
        fputs("usage: gcc-jit SECONDS\n", stderr);
        return 2;
    }
    gcc_jit_context *context = gcc_jit_context_acquire();
    gcc_jit_context_set_int_option(context, GCC_JIT_INT_OPTION_OPTIMIZATION_LEVEL, 2);
    /* So that there are two functions. */
    gcc_jit_context_add_command_line_option(context, "-fno-inline");
    function(context, "rounds", function(context, "mix", NULL));
    gcc_jit_result *result = gcc_jit_context_compile(context);
    gcc_jit_context_release(context);
    if (result == NULL) {
        return 1;
    }
    announce(result, "mix");
    announce(result, "rounds");

    long (*run)(long) = (long (*)(long))gcc_jit_result_get_code(result, "rounds");
    /* Of processor time. */
    const clock_t end = clock() + atoi(words[1]) * CLOCKS_PER_SEC;
    long value = 0;
    while (clock() < end) {
        value ^= run(1000);
    }
    printf("%ld\n", value & 1);
    return 0;
}
