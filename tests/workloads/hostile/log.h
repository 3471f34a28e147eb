/* A code log made by hand, which needs nothing of this project: a head, and what follows it. */
#ifndef HOSTILE_LOG_H
#define HOSTILE_LOG_H
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define CONTROL 100

static void w32(unsigned char *p, int at, uint32_t value) { memcpy(p + at, &value, 4); }
static void w64(unsigned char *p, int at, uint64_t value) { memcpy(p + at, &value, 8); }

static void log_head(unsigned char *p, uint32_t chunk_size, uint32_t chunks, uint32_t control, uint64_t limit) {
    w32(p, 0, 0x4A695444); w32(p, 4, 1); w32(p, 8, 40); w32(p, 12, 62); w32(p, 20, getpid()); w64(p, 24, 1);
    w32(p, 40, 2); w32(p, 44, 4096 - 40); w64(p, 48, 1);       /* DEBUG_INFO */
    w32(p, 72, 0x5243534A); w32(p, 76, 8 + 80);                /* its tail */
    p[80] = 16; w32(p, 84, 80);                                /* item LOG */
    w32(p, 88, 1); w32(p, 92, chunk_size); w32(p, 96, chunks); /* version, chunk size, chunks */
    w32(p, CONTROL, control); w64(p, 104, limit);
}

static void chunk_head(unsigned char *p, uint32_t span, uint32_t filler) {
    w32(p, 0, 2); w32(p, 4, 64); w64(p, 8, 1);
    w32(p, 32, 0x5243534A); w32(p, 36, 8 + 16);
    p[40] = 17; w32(p, 44, 16); w64(p, 48, 2); w32(p, 56, span);
    w32(p, 64, 2); w32(p, 68, filler);
}

static void say_pid(void) {
    printf("%d\n", getpid());
    fflush(stdout);
}

static int failed(const char *what) {
    perror(what);
    return 1;
}
#endif
