/* Threads write lines to the process's perf map and to another file, while the main thread forks, in every way there is.
 * Prints what it found wrong, which is nothing, and the same numbers each time; then waits for a line on standard input. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, LINES = 1500, FORKS = 60 };

extern char **environ;
static char *folder;
static unsigned char *code;
static int map, other;
static volatile sig_atomic_t signals;

static void check(int ok, const char *what)
{
    if (!ok) { printf("wrong: %s: %s\n", what, strerror(errno)); _exit(9); }
}

static int open_map(int flags)
{
    char path[300];
    snprintf(path, sizeof path, "%s/perf-%d.map", folder, getpid());
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | flags, 0600);
    check(fd >= 0, path);
    return fd;
}

static void line(int fd, unsigned long at, const char *of)
{
    char text[200];
    int size = snprintf(text, sizeof text, "%lx 20 %s %lx\n", (unsigned long)code + at * 64, of, at);
    check(write(fd, text, size) == size, "a line");
}

static void *work(void *number)
{
    unsigned long first = (unsigned long)number * LINES;
    for (unsigned long i = 0; i < LINES; i++) {
        line(map, first + i, "thread");
        if (i % 4 == 0) check(write(other, "0123456789\n", 11) == 11, "another file");
        if (i % 64 == 0) { void *some = malloc(100 + i); free(some); }
    }
    return NULL;
}

static void on_signal(int signal)
{
    (void)signal;
    /* In the middle of anything, even of malloc. */
    line(map, THREADS * LINES + signals, "signal");
    signals++;
}

/* What a child does, and its exit code. */
static int child(int how)
{
    switch (how % 6) {
    case 0: return 40;
    case 1: {
        FILE *own = fdopen(open_map(O_TRUNC), "a");
        for (int i = 0; i < 5; i++) fprintf(own, "%lx 20 child %d\n", (unsigned long)code + i * 64, i);
        fclose(own);
        char path[300];
        snprintf(path, sizeof path, "%s/perf-%d.map", folder, getpid());
        unlink(path);
        return 41;
    }
    case 2: close_range(3, ~0U, 0); return open("/dev/null", O_RDONLY) == 3 ? 42 : 2;
    case 3: for (int fd = 3; fd < 1000; fd++) close(fd); return 43;
    case 4: execl("/bin/sh", "sh", "-c", "exit 44", NULL); return 3;
    default: {
        int pid = fork();
        if (pid == 0) _exit(5);
        int status;
        check(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 5, "a grandchild");
        return 45;
    }
    }
}

int main(int count, char **words)
{
    folder = words[1];
    (void)count;
    setvbuf(stdout, NULL, _IOLBF, 0);
    code = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    map = open_map(O_TRUNC);
    char path[300];
    snprintf(path, sizeof path, "%s/other-%d", folder, getpid());
    other = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
    sigaction(SIGUSR1, &action, NULL);
    pthread_t threads[THREADS];
    for (unsigned long i = 0; i < THREADS; i++) check(pthread_create(&threads[i], NULL, work, (void *)i) == 0, "a thread");
    int ended[64] = { 0 };
    for (int i = 0; i < FORKS; i++) {
        int pid, status;
        if (i % 10 == 7) {
            pid = vfork();
            if (pid == 0) { close(map); _exit(46); }
        } else if (i % 10 == 8) {
            char *arguments[] = { "sh", "-c", "exit 47", NULL };
            check(posix_spawn(&pid, "/bin/sh", NULL, NULL, arguments, environ) == 0, "posix_spawn");
        } else if (i % 10 == 9) {
            /* A fork that the C library knows nothing of. */
            pid = syscall(SYS_fork);
            if (pid == 0) { char text[] = "1 1 nobody's\n"; int null = open("/dev/null", O_WRONLY); write(null, text, 13); _exit(48); }
        } else {
            pid = fork();
            if (pid == 0) _exit(child(i));
        }
        check(waitpid(pid, &status, 0) == pid && WIFEXITED(status), "a child");
        ended[WEXITSTATUS(status) & 63]++;
        if (i % 3 == 0) raise(SIGUSR1);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < 64; i++) if (ended[i]) printf("%d ended with %d\n", ended[i], i);
    printf("another file: %ld bytes\n", (long)lseek(other, 0, SEEK_END));
    printf("signals: %d\n", (int)signals);
    /* A child of a process with threads, that goes on. */
    int down[2], up[2];
    check(pipe(down) == 0 && pipe(up) == 0, "pipe");
    int pid = fork();
    if (pid == 0) {
        int own = open_map(O_TRUNC);
        for (int i = 0; i < 3; i++) line(own, THREADS * LINES + 100 + i, "heir");
        line(map, THREADS * LINES + 200, "heir in its parent's");
        char byte = 0;
        check(write(up[1], &byte, 1) == 1 && read(down[0], &byte, 1) == 1, "pipe");
        _exit(6);
    }
    char byte;
    check(read(up[0], &byte, 1) == 1, "pipe");
    printf("child %d\n", pid);
    puts("done");
    getchar();
    check(write(down[1], &byte, 1) == 1, "pipe");
    int status;
    check(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 6, "the heir");
    return 3;
}
