/* An object that writes a perf map, and a program that loads it so that it asks its own libraries first, as PHP does with
 * its extensions. Prints a line "ADDRESS SIZE NAME" for each code, and waits for a line on standard input. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef OBJECT

int write_map(const char *path, const char *code)
{
    char text[100];
    int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0600);
    int size = sprintf(text, "%lx 10 by write\n", (unsigned long)code);
    if (fd < 0 || write(fd, text, size) != size) return 1;
    fputs(text, stdout);
    FILE *stream = fdopen(fd, "a");
    sprintf(text, "%lx 20 by a stream\n", (unsigned long)code + 64);
    if (!stream || fputs(text, stream) < 0) return 1;
    fputs(text, stdout);
    dprintf(fileno(stream), "%lx 30 by dprintf\n", (unsigned long)code + 128);
    printf("%lx 30 by dprintf\n", (unsigned long)code + 128);
    return 0;
}

#else

int main(int count, char **words)
{
    char path[300];
    /* By its path, and by a name that is searched for: the latter goes past the bridge, and has to work. */
    snprintf(path, sizeof path, "%s/%s", words[1], words[2]);
    void *object = dlopen(path, RTLD_NOW | RTLD_DEEPBIND);
    if (!object || !dlopen("libm.so.6", RTLD_NOW | RTLD_DEEPBIND) || dlopen("/nowhere.so", RTLD_NOW | RTLD_DEEPBIND)) {
        fprintf(stderr, "%s\n", dlerror());
        return 9;
    }
    int (*write_map)(const char *, const char *) = dlsym(object, "write_map");
    snprintf(path, sizeof path, "%s/perf-%d.map", words[1], getpid());
    char *code = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(code, 0x90, 4096);
    int failed = write_map(path, code);
    puts("done");
    fflush(stdout);
    getchar();
    unlink(path);
    return failed ? 9 : count;
}

#endif
