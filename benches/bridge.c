/* Writes lines to a perf map and to another file; prints nanoseconds a line for each, and for a pair of calls that open and
 * close another file. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { LINES = 20000 };

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

static double lines(const char *path, unsigned char *code)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    char text[100];
    double began = now();
    for (int i = 0; i < LINES; i++) {
        int size = snprintf(text, sizeof text, "%lx 100 a function of a usual length %d\n", (unsigned long)code + i * 256, i);
        if (write(fd, text, size) != size) exit(9);
    }
    double taken = now() - began;
    close(fd);
    unlink(path);
    return taken / LINES;
}

static double nothing(int fd)
{
    double began = now();
    /* Nothing is written: the call alone. */
    for (int i = 0; i < LINES * 10; i++) if (write(fd, "", 0) != 0) exit(9);
    return (now() - began) / LINES / 10;
}

int main(int count, char **words)
{
    char map[300], other[300];
    (void)count;
    snprintf(map, sizeof map, "%s/perf-%d.map", words[1], getpid());
    snprintf(other, sizeof other, "%s/other-%d", words[1], getpid());
    unsigned char *code = mmap(NULL, LINES * 256, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(code, 0x90, LINES * 256);
    int keep = open(map, O_WRONLY | O_CREAT, 0600);
    int null = open("/dev/null", O_WRONLY);
    printf("%.0f %.0f %.1f\n", lines(map, code), lines(other, code), nothing(null));
    close(keep);
    return 0;
}
