// cancelled DIR: threads that are cancelled in functions that the library stands before, in files that it watches and in
// others. Each has something to clean up. Prints what became of each thread, and exits with 3. Without dprintf and fclose:
// glibc itself does not survive a cancellation in these (their FILE stays in its list).
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define LINE "1000 10 name\n"
#define SIZE (sizeof LINE - 1)

static char path[4096], fifo[4096];
static int fd;          // of the file
static int full;        // a pipe that takes nothing more
static FILE *stream;    // of the file
static atomic_int cleaned;

static void clean(void *what)
{
    (void)what;
    cleaned++;
}

static void by_write(void) { (void)!write(fd, LINE, SIZE); }
static void by_writev(void)
{
    struct iovec part = {LINE, SIZE};
    (void)!writev(fd, &part, 1);
}
static void by_pwrite(void) { (void)!pwrite(fd, LINE, SIZE, 0); }
static void by_fprintf(void) { fprintf(stream, "%s", LINE); fflush(stream); }
static void by_close(void) { close(fd); }
static void by_open(void) { (void)open(path, O_WRONLY); }
static void by_openat(void) { (void)openat(AT_FDCWD, path, O_WRONLY); }
static void by_creat(void) { (void)creat(path, 0600); }
static void by_lock(void)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    fcntl(fd, F_SETLKW, &lock);
}
// These wait inside of the system call.
static void waiting_in_write(void) { (void)!write(full, LINE, SIZE); }
static void waiting_in_open(void) { (void)open(fifo, O_WRONLY); }

struct one {
    const char *name;
    void (*call)(void);
    int waits;
};

static void *thread(void *argument)
{
    const struct one *one = argument;
    pthread_cleanup_push(clean, NULL);
    if (!one->waits)
        pthread_cancel(pthread_self());  // and the call is where it is noticed
    one->call();
    pthread_cleanup_pop(0);
    return NULL;
}

static void run(const char *which, struct one one)
{
    pthread_t id;
    void *result;
    int before = cleaned;
    if (pthread_create(&id, NULL, thread, &one))
        exit(1);
    if (one.waits) {
        usleep(20000);  // Too early is no harm: then it is cancelled when it calls.
        pthread_cancel(id);
    }
    pthread_join(id, &result);
    printf("%s %s: %s, %d cleaned up\n", which, one.name, result == PTHREAD_CANCELED ? "cancelled" : "returned",
           cleaned - before);
}

static const struct one ALL[] = {
    {"write", by_write, 0},     {"writev", by_writev, 0}, {"pwrite", by_pwrite, 0},
    {"fprintf", by_fprintf, 0}, {"open", by_open, 0},     {"openat", by_openat, 0}, {"creat", by_creat, 0},
    {"fcntl", by_lock, 0},      {"close", by_close, 0},
};

static void files(const char *which, const char *name)
{
    strcpy(path, name);
    fd = open(path, O_CREAT | O_RDWR | O_TRUNC, 0600);
    stream = fopen(path, "w");
    if (fd < 0 || !stream)
        exit(1);
    for (size_t i = 0; i < sizeof ALL / sizeof *ALL; i++)
        run(which, ALL[i]);
}

int main(int count, char **words)
{
    if (count < 2)
        return 2;
    char name[2048];
    snprintf(name, sizeof name, "%s/perf-%d.map", words[1], getpid());
    files("map", name);
    snprintf(name, sizeof name, "%s/jit-%d.dump", words[1], getpid());
    files("dump", name);
    snprintf(name, sizeof name, "%s/text", words[1]);
    files("text", name);

    int ends[2];
    snprintf(fifo, sizeof fifo, "%s/fifo", words[1]);
    if (pipe2(ends, O_NONBLOCK) || mkfifo(fifo, 0600))
        return 1;
    while (write(ends[1], LINE, SIZE) > 0) {}
    full = ends[1];
    fcntl(full, F_SETFL, 0);
    run("pipe", (struct one){"write", waiting_in_write, 1});
    run("fifo", (struct one){"open", waiting_in_open, 1});
    puts("done");
    fflush(stdout);
    getchar();
    return 3;
}
