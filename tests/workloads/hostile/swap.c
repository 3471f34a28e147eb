/* Keeps a code log, and when it is asked for something, puts something else in its place: MODE TARGET.
 *
 * path      an O_PATH descriptor of TARGET, which this process may not read or write, takes the log's number
 * memfd     another memfd does, with the log's name and its head; nobody is to write to it
 * unmapped  the log's memory is gone
 * remapped  a file of TARGET, mapped to be read alone, lies where the log was: the head is that file's
 * truncated the log is a file that has no byte any more
 * program   another program runs, which has no log
 * still     nothing happens */
#include "log.h"

int main(int argc, char **argv) {
    const char *mode = argv[1], *target = argv[2];
    const uint32_t before = 0x214e5750;
    int fd = memfd_create("jitscribe", 0);
    ftruncate(fd, 4096);
    unsigned char *p = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    log_head(p, 65536, 0, before, 4096);
    if (strcmp(mode, "remapped") == 0) {
        /* What a reader takes for the log is in the target as well. */
        int copy = open(target, O_RDWR | O_CREAT, 0644);
        if (copy < 0) return failed(target);
        if (pwrite(copy, p, 4096, 0) != 4096) return failed("pwrite");
        close(copy);
    }
    say_pid();
    volatile uint32_t *control = (volatile uint32_t *)(p + CONTROL);
    while (*control == before) usleep(1000);
    if (strcmp(mode, "path") == 0) {
        int other = open(target, O_PATH);
        if (other < 0) return failed(target);
        dup2(other, fd);
    } else if (strcmp(mode, "memfd") == 0) {
        int other = memfd_create("jitscribe", 0);
        ftruncate(other, 4096);
        pwrite(other, p, 4096, 0);
        uint32_t now = 0, copied = 0;
        pread(other, &copied, 4, CONTROL);
        dup2(other, fd);
        for (;;) {
            pread(other, &now, 4, CONTROL);
            int out = open("/proc/self/comm", O_WRONLY);
            /* The test reads it: whether the other memfd was written to. */
            const char *said = now == copied ? "same" : "written";
            write(out, said, strlen(said));
            close(out);
            usleep(100000);
        }
    } else if (strcmp(mode, "unmapped") == 0) {
        munmap(p, 4096);
    } else if (strcmp(mode, "remapped") == 0) {
        int copy = open(target, O_RDONLY);
        if (mmap(p, 4096, PROT_READ, MAP_SHARED | MAP_FIXED, copy, 0) != p) return failed("mmap");
    } else if (strcmp(mode, "truncated") == 0) {
        ftruncate(fd, 0);
    } else if (strcmp(mode, "program") == 0) {
        execl("/bin/sleep", "sleep", "100", (char *)0);
        return failed("sleep");
    }
    for (;;) pause();
}
