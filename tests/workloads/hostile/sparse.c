/* A code log that claims SIZE GiB in HOW it can be claimed, and takes a few pages.
 *
 * filler  one chunk that reaches to the end, whose one filler does not quite
 * group   one that is a single code
 * chunks  as many chunks as there can be, none of which is there
 * anon    as filler, in shared memory that no descriptor leads to */
#include "log.h"

int main(int argc, char **argv) {
    uint64_t size = strtoull(argv[1], 0, 0) << 30;
    const char *how = argv[2];
    uint32_t chunk = strcmp(how, "chunks") == 0 ? 4096 : 1 << 28, n = size / chunk;
    unsigned char *p;
    if (strcmp(how, "anon") == 0) {
        p = mmap(0, size + 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    } else {
        int fd = memfd_create("jitscribe", 0);
        ftruncate(fd, size + 4096);
        p = mmap(0, size + 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    }
    if (p == MAP_FAILED) return failed("mmap");
    log_head(p, chunk, n, 3, size);
    unsigned char *c = p + 4096;
    if (strcmp(how, "chunks") != 0) chunk_head(c, n, 0xffffffc0);
    if (strcmp(how, "group") == 0) {
        unsigned char *g = c + 64;
        uint32_t group = 0xffffff00;
        w32(g, 0, 2); w32(g, 4, 200); w64(g, 8, 5);             /* DEBUG_INFO with a tail */
        w64(g, 16, 0); w64(g, 24, 0);
        w32(g, 32, 0x5243534A); w32(g, 36, 8 + 40);
        g[40] = 1; w32(g, 44, 40);                              /* item CODE */
        w32(g, 48 + 24, group); g[48 + 33] = 1;                 /* its size; without bytes */
    }
    say_pid();
    for (;;) pause();
}
