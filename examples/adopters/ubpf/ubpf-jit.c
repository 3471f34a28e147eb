/* Runs an eBPF program by uBPF's JIT, and announces its code: what is for jitscribe is in `announce`.
 *
 *     ubpf-jit SECONDS
 */
#define _GNU_SOURCE
#include <jitscribe.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ubpf.h>

/* The operation, the destination, the source, the offset and the number. */
#define BPF(operation, to, from, offset, number)                                                                       \
    ((uint64_t)(operation) | (uint64_t)(to) << 8 | (uint64_t)(from) << 12 | (uint64_t)(uint16_t)(offset) << 16 |       \
     (uint64_t)(uint32_t)(number) << 32)

static const uint64_t program[] = {
    BPF(0xb7, 0, 0, 0, 1),       /* mov r0, 1 */
    BPF(0xb7, 1, 0, 0, 1000000), /* mov r1, 1000000 */
    BPF(0x27, 0, 0, 0, 31),      /* mul r0, 31 */
    BPF(0xaf, 0, 1, 0, 0),       /* xor r0, r1 */
    BPF(0x77, 0, 0, 0, 1),       /* rsh r0, 1 */
    BPF(0x17, 1, 0, 0, 1),       /* sub r1, 1 */
    BPF(0x55, 1, 0, -5, 0),      /* jne r1, 0, -5 */
    BPF(0x95, 0, 0, 0, 0),       /* exit */
};

/* rbp is kept, but not where its old value is: uBPF pushes six registers, aligns rsp, and then sets rbp. Only x86-64. */
static void announce(const uint8_t *memory, size_t size)
{
    static const uint8_t prologue[] = {
        0x55, 0x53, 0x41, 0x54, 0x41, 0x55, 0x41, 0x56, 0x41, 0x57, /* push rbp, rbx, r12, r13, r14, r15 */
        0x49, 0x89, 0xfb,                                           /* mov r11, rdi */
        0x48, 0x81, 0xec, 0x08, 0x00, 0x00, 0x00,                   /* sub rsp, 8 */
        0x48, 0x89, 0xe5,                                           /* mov rbp, rsp */
    };
    static const uint8_t epilogue[] = {
        0x41, 0x5f, 0x41, 0x5e, 0x41, 0x5d, 0x41, 0x5c, 0x5b, 0x5d, 0xc3, /* pop r15, r14, r13, r12, rbx, rbp; ret */
    };
    static const jitscribe_saved saved[] = {{-16, 6, 0},  {-24, 3, 0},  {-32, 12, 0},
                                            {-40, 13, 0}, {-48, 14, 0}, {-56, 15, 0}};
    const jitscribe_scribe *scribe = jitscribe_global();
    if (!jitscribe_is_on(scribe)) {
        return;
    }
    /* uBPF says neither offset: another version may have other instructions, and then there is no description. */
    const uint8_t *end = memmem(memory, size, epilogue, sizeof epilogue);
    const bool is_known = size >= sizeof prologue && memcmp(memory, prologue, sizeof prologue) == 0 && end != NULL;
    const uint32_t at_ret = is_known ? (uint32_t)(end - memory + sizeof epilogue - 1) : 0;
    const jitscribe_row rows[] = {
        {1, 16, 7, 0, 1, saved}, /* behind push rbp */
        {2, 24, 7, 0, 2, saved},
        {4, 32, 7, 0, 3, saved},
        {6, 40, 7, 0, 4, saved},
        {8, 48, 7, 0, 5, saved},
        {10, 56, 7, 0, 6, saved},
        {20, 64, 7, 0, 6, saved}, /* behind sub rsp, 8 */
        {23, 64, 6, 0, 6, saved}, /* behind mov rbp, rsp */
        {at_ret, 8, 7, 0, 0, NULL},
        {at_ret + 1, 64, 6, 0, 6, saved}, /* the retpoline, which the program calls */
    };
    const jitscribe_code code = {
        .struct_size = sizeof code,
        .bytes = memory,
        .size = size,
        .name = JITSCRIBE_STR("eBPF program"),
        .unwind = {.kind = is_known ? JITSCRIBE_UNWIND_KIND_ROWS : JITSCRIBE_UNWIND_KIND_NONE,
                   .rows = rows,
                   .row_count = sizeof rows / sizeof *rows},
    };
    jitscribe_load(scribe, &code, NULL);
}

/* What ubpf_compile does, which keeps the size to itself. */
static ubpf_jit_fn compile(struct ubpf_vm *vm)
{
    enum { SPACE = 65536 };
    static uint8_t translated[SPACE];
    size_t size = SPACE;
    char *error = NULL;
    if (ubpf_translate(vm, translated, &size, &error) != 0) {
        fprintf(stderr, "ubpf-jit: %s\n", error);
        exit(1);
    }
    uint8_t *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        exit(1);
    }
    memcpy(memory, translated, size);
    if (mprotect(memory, size, PROT_READ | PROT_EXEC) != 0) {
        exit(1);
    }
    announce(memory, size);
    return (ubpf_jit_fn)memory;
}

int main(int count, char **words)
{
    if (count != 2) {
        fputs("usage: ubpf-jit SECONDS\n", stderr);
        return 2;
    }
    struct ubpf_vm *vm = ubpf_create();
    char *error = NULL;
    if (vm == NULL || ubpf_load(vm, program, sizeof program, &error) != 0) {
        fprintf(stderr, "ubpf-jit: %s\n", error);
        return 1;
    }
    const ubpf_jit_fn run = compile(vm);
    /* Of processor time. */
    const clock_t end = clock() + atoi(words[1]) * CLOCKS_PER_SEC;
    uint64_t result = 0;
    while (clock() < end) {
        result ^= run(NULL, 0);
    }
    printf("%d\n", (int)(result & 1));
    return 0;
}
