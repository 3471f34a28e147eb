// places: code whose names have a place, as runtimes write them to a perf map. Each piece allocates memory, which is lost. Prints its process id.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const char *const names[] = {"collatz(p.raku:1)", "find(src/q.nqp:9)", "find(src/q.nqp:3)", "JS:*f file:///a/x.js:2:3", "py::g:y.py", "plain(int)"};
enum { COUNT = sizeof names / sizeof *names, SPACE = 64 };

int main(void)
{
    // push rbp; mov rbp, rsp; mov edi, 1000; mov rax, malloc; call rax; pop rbp; ret
    unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0xbf, 0xe8, 3, 0, 0, 0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xd0, 0x5d, 0xc3};
    void *(*allocate)(size_t) = malloc;
    memcpy(code + 11, &allocate, sizeof allocate);
    unsigned char *space = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char path[64];
    snprintf(path, sizeof path, "/tmp/perf-%d.map", getpid());
    FILE *map = fopen(path, "w");
    if (space == MAP_FAILED || !map)
        return 1;
    for (int i = 0; i < COUNT; i++) {
        memcpy(space + i * SPACE, code, sizeof code);
        fprintf(map, "%lx %zx %s\n", (unsigned long)(space + i * SPACE), sizeof code, names[i]);
        fflush(map);
    }
    for (int i = 0; i < COUNT; i++)
        ((void *(*)(void))(space + i * SPACE))();
    fclose(map);
    printf("%d\n", getpid());
    return 0;
}
