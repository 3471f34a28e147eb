/* forks FOLDER BEFORE CHILDREN EACH_PARENT EACH_CHILD: writes BEFORE lines into a perf map, and then so many times: EACH_PARENT
 * lines, and a child of fork that writes EACH_CHILD lines into a map of its own. Prints the processor time of all processes in
 * seconds. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIZE = 256 };

static unsigned char *code;

static void lines(int fd, long first, long count)
{
    char text[100];
    for (long i = first; i < first + count; i++) {
        int size = snprintf(text, sizeof text, "%lx %x a function of a usual length %ld\n", (unsigned long)code + i * SIZE, SIZE, i);
        if (write(fd, text, size) != size) exit(9);
    }
}

static int map(const char *folder)
{
    char path[300];
    snprintf(path, sizeof path, "%s/perf-%d.map", folder, getpid());
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0) exit(8);
    unlink(path);
    return fd;
}

static double used(int who)
{
    struct rusage usage;
    getrusage(who, &usage);
    return usage.ru_utime.tv_sec + usage.ru_stime.tv_sec + (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

int main(int count, char **words)
{
    if (count < 6) return 7;
    long before = atol(words[2]), children = atol(words[3]), parent = atol(words[4]), child = atol(words[5]);
    long next = before, size = (before + children * parent + child) * SIZE;
    code = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(code, 0x90, size);
    int fd = map(words[1]);
    lines(fd, 0, before);
    for (long i = 0; i < children; i++) {
        lines(fd, next, parent);
        next += parent;
        pid_t pid = fork();
        if (pid == 0) {
            if (child) lines(map(words[1]), next, child);
            _exit(0);
        }
        int status;
        if (waitpid(pid, &status, 0) != pid || status) return 6;
    }
    printf("%.6f\n", used(RUSAGE_SELF) + used(RUSAGE_CHILDREN));
    return 0;
}
