/*
 * AArch64: writes a jitdump of two codes with frame pointers, of which the second one signs its return address, into the current folder, and
 * waits for the end of its input. Run by scripts/foreign.sh with the bridge.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static const uint32_t plain[] = {
    0xa9bf7bfd, /* stp x29, x30, [sp, -16]! */
    0x910003fd, /* mov x29, sp */
    0xa8c17bfd, /* ldp x29, x30, [sp], 16 */
    0xd65f03c0, /* ret */
};
static const uint32_t sign[] = {
    0xd503233f, /* paciasp */
    0xa9bf7bfd, 0x910003fd, 0xa8c17bfd,
    0xd50323bf, /* autiasp */
    0xd65f03c0,
};

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* A LOAD, and the call of the code. */
static void load(FILE *dump, char *to, const void *code, uint32_t size, const char *name)
{
    static uint64_t index;
    memcpy(to, code, size);
    __builtin___clear_cache(to, to + size);
    const uint32_t names = (uint32_t)strlen(name) + 1;
    const uint32_t head[] = {0, 16 + 40 + names + size};
    const uint64_t time = now();
    const uint32_t ids[] = {(uint32_t)getpid(), (uint32_t)gettid()};
    const uint64_t place[] = {(uint64_t)(uintptr_t)to, (uint64_t)(uintptr_t)to, size, index++};
    fwrite(head, sizeof head, 1, dump);
    fwrite(&time, sizeof time, 1, dump);
    fwrite(ids, sizeof ids, 1, dump);
    fwrite(place, sizeof place, 1, dump);
    fwrite(name, names, 1, dump);
    fwrite(code, size, 1, dump);
    fflush(dump);
    ((void (*)(void))(uintptr_t)to)();
}

int main(void)
{
    char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (code == MAP_FAILED) return 1;
    char path[64];
    snprintf(path, sizeof path, "jit-%d.dump", (int)getpid());
    FILE *dump = fopen(path, "w");
    if (dump == NULL) return 1;
    const uint32_t header[] = {0x4A695444, 1, 40, 183, 0, (uint32_t)getpid()};
    const uint64_t rest[] = {now(), 0};
    fwrite(header, sizeof header, 1, dump);
    fwrite(rest, sizeof rest, 1, dump);
    load(dump, code, plain, sizeof plain, "plain");
    load(dump, code + 64, sign, sizeof sign, "signed");
    puts("ready");
    fflush(stdout);
    while (getchar() != EOF) {
    }
    return fclose(dump);
}
