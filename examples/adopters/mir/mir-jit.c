/* Runs functions by MIR's generator, which announces them: it is patched with mir-1.0.patch, and
 * nothing is left to do here.
 *
 *     mir-jit SECONDS
 */
#include <mir-gen.h>
#include <mir.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char module[] = "m: module\n"
                             "export rounds\n"
                             "p_mix: proto i64, i64:n\n"
                             "mix: func i64, i64:n\n"
                             "local i64:value, i64:i\n"
                             "mov value, n\n"
                             "mov i, 40\n"
                             "step: mul value, value, 31\n"
                             "xor value, value, i\n"
                             "sub i, i, 1\n"
                             "bgt step, i, 0\n"
                             "ret value\n"
                             "endfunc\n"
                             "rounds: func i64, i64:n\n"
                             "local i64:value, i64:sum, i64:f\n"
                             "mov sum, 0\n"
                             "mov f, mix\n" /* A call by name would be inlined. */
                             "round: call p_mix, f, value, n\n"
                             "add sum, sum, value\n"
                             "sub n, n, 1\n"
                             "bgt round, n, 0\n"
                             "ret sum\n"
                             "endfunc\n"
                             "endmodule\n";

int main(int count, char **words)
{
    if (count != 2) {
        fputs("usage: mir-jit SECONDS\n", stderr);
        return 2;
    }
    MIR_context_t context = MIR_init();
    MIR_scan_string(context, module);
    MIR_load_module(context, DLIST_TAIL(MIR_module_t, *MIR_get_module_list(context)));
    MIR_gen_init(context);
    MIR_gen_set_optimize_level(context, 2);
    /* Compiles all functions. The last argument is of the fork in mir-sys: MIR itself has three. */
    MIR_link(context, MIR_set_gen_interface, NULL, NULL);
    int64_t (*run)(int64_t) = NULL;
    MIR_module_t last = DLIST_TAIL(MIR_module_t, *MIR_get_module_list(context));
    for (MIR_item_t item = DLIST_HEAD(MIR_item_t, last->items); item != NULL;
         item = DLIST_NEXT(MIR_item_t, item)) {
        if (item->item_type == MIR_func_item &&
            strcmp(MIR_item_name(context, item), "rounds") == 0) {
            run = (int64_t(*)(int64_t))(uintptr_t)item->addr;
        }
    }
    if (run == NULL) {
        return 1;
    }
    /* Of processor time. */
    const clock_t end = clock() + atoi(words[1]) * CLOCKS_PER_SEC;
    int64_t result = 0;
    while (clock() < end) {
        result ^= run(1000);
    }
    printf("%d\n", (int)(result & 1));
    MIR_gen_finish(context);
    MIR_finish(context);
    return 0;
}
