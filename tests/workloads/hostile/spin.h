/* A function that counts down from 2^20 and returns, and memory to copy it to. */
#ifndef HOSTILE_SPIN_H
#define HOSTILE_SPIN_H
#include <stdint.h>
#include <sys/mman.h>

#if defined(__x86_64__)
static const unsigned char spin[] = {0xb8, 0, 0, 0x10, 0, 0xff, 0xc8, 0x75, 0xfc, 0xc3};
#elif defined(__aarch64__)
static const uint32_t spin[] = {0x52a00200, 0x71000400, 0x54ffffe1, 0xd65f03c0};
#endif

static unsigned char *executable_memory(void) {
    return mmap(0, 1 << 16, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}
#endif
