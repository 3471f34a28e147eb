// Runs the code of a library that is not at its path any more: loader HOW LIBRARY OTHER SECONDS
//
// HOW: stay (it is left in place), unlink, memfd, closed (the same, with the descriptor closed), rename (OTHER takes its place), end (it is deleted at the end).
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static double processor_time(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec + now.tv_nsec * 1e-9;
}

static void copy(int to, const char *from) {
    char bytes[1 << 16];
    ssize_t count;
    int in = open(from, O_RDONLY);
    while ((count = read(in, bytes, sizeof bytes)) > 0)
        if (write(to, bytes, count) != count)
            abort();
    close(in);
}

int main(int argc, char **argv) {
    if (argc != 5)
        return 2;
    const char *how = argv[1];
    char path[64];
    int is_memory = !strcmp(how, "memfd") || !strcmp(how, "closed");
    int file = is_memory ? memfd_create("code", 0) : open("loaded.so", O_CREAT | O_RDWR | O_TRUNC, 0700);
    copy(file, argv[2]);
    if (is_memory)
        snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    else
        strcpy(path, "./loaded.so");
    void *library = dlopen(path, RTLD_NOW);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    if (strcmp(how, "memfd"))
        close(file);
    if (!strcmp(how, "unlink"))
        unlink(path);
    if (!strcmp(how, "rename")) {
        int other = open("other.so", O_CREAT | O_RDWR | O_TRUNC, 0700);
        copy(other, argv[3]);
        close(other);
        rename("other.so", path);
    }
    puts("ready");
    fflush(stdout);
    uint64_t (*run)(uint64_t) = (uint64_t (*)(uint64_t))dlsym(library, "gone_exported");
    uint64_t sum = 1;
    do {
        for (int i = 0; i < 20; i++)
            sum += run(sum);
    } while (processor_time() < atof(argv[4]));
    if (!strcmp(how, "end"))
        unlink(path);
    return sum == 3;
}
