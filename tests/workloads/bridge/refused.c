/* DIR FROM TO: writes a map and a dump while the bridge is refused memory (see refuse.c), and one code of each before and
 * after. Prints "asked N refused N", a line "ADDRESS SIZE NAME" for each code that is alive, and "done", and waits for a line
 * on standard input before it ends. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

extern unsigned asked, refused;
void refuse(unsigned from, unsigned to);

enum { LARGE = 1 << 20, CODES = 4000 };
static unsigned char code[LARGE];
static unsigned long next = 0x10000;
static char alive[CODES * 64], *end = alive;

static void must(int ok, const char *what)
{
    if (!ok) {
        perror(what);
        exit(9);
    }
}

static unsigned long place(unsigned size, const char *name)
{
    unsigned long address = next;
    next += size;
    end += sprintf(end, "%lx %x %s\n", address, size, name);
    return address;
}

static void line(int fd, const char *name)
{
    char text[128];
    int size = sprintf(text, "%lx 40 %s\n", place(0x40, name), name);
    /* In two pieces. */
    must(write(fd, text, 5) == 5 && write(fd, text + 5, size - 5) == size - 5, "a line");
}

static void load(int fd, unsigned size, unsigned number, const char *name)
{
    unsigned long address = place(size, name);
    uint32_t name_size = strlen(name) + 1;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t time = now.tv_sec * 1000000000ULL + now.tv_nsec;
    struct {
        uint32_t id, size;
        uint64_t time;
        uint32_t pid, tid;
        uint64_t vma, address, code_size, index;
    } record = { 0, sizeof record + name_size + size, time, getpid(), getpid(), address, address, size, number };
    must(write(fd, &record, sizeof record) == sizeof record, "a record");
    must(write(fd, name, name_size) == name_size, "a name");
    must(write(fd, code, size / 2) == size / 2, "a code");
    must(write(fd, code + size / 2, size - size / 2) == size - size / 2, "a code");
}

int main(int argc, char **argv)
{
    must(argc == 4, "arguments");
    memset(code, 0x90, sizeof code);
    char path[256];
    snprintf(path, sizeof path, "%s/perf-%d.map", argv[1], getpid());
    int map = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    snprintf(path, sizeof path, "%s/jit-%d.dump", argv[1], getpid());
    int dump = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    must(map >= 0 && dump >= 0, "files");
    uint32_t head[10] = { 0x4a695444, 1, 40, 62, 0, getpid(), 0, 0, 0, 0 };
    must(write(dump, head, sizeof head) == sizeof head, "a header");
    line(map, "first line");
    load(dump, 64, 0, "first record");

    refuse(atoi(argv[2]), atoi(argv[3]));
    char name[64];
    for (unsigned i = 0; i < CODES / 2; i++) {
        snprintf(name, sizeof name, "line %u", i);
        line(map, name);
        snprintf(name, sizeof name, "record %u", i);
        load(dump, i % 500 == 0 ? LARGE : 64, i + 1, name);
    }
    unsigned seen[2] = { asked, refused };
    refuse(0, 0);

    line(map, "last line");
    load(dump, 64, CODES, "last record");
    printf("asked %u refused %u\n%sdone\n", seen[0], seen[1], alive);
    fflush(stdout);
    return getchar() == '\n' ? 3 : 9;
}
