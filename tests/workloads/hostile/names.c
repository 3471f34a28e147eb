/* A JIT of one function, with a hostile name for its process, its function and the folder of its dump.
   names FOLDER SECONDS */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int main(int count, char **words)
{
    /* push %rbp; mov %rsp,%rbp; mov $0x20000000,%ecx; 1: dec %ecx; jne 1b; pop %rbp; ret */
    static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0xb9, 0, 0, 0, 0x20,
                                         0xff, 0xc9, 0x75, 0xfc, 0x5d, 0xc3};
    static const char name[] = "a\033]0;owned\007\033[31mRED\nb\302\2331m\342\200\256gnp";
    char folder[300], file[400];
    if (count < 3)
        return 2;
    prctl(PR_SET_NAME, "\033[31mRED\n");
    snprintf(folder, sizeof folder, "%s/\033]0;owned\a\033[2J\n'", words[1]);
    mkdir(folder, 0755);
    snprintf(file, sizeof file, "%s/jit-%d.dump", folder, (int)getpid());
    unsigned char *place =
        mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(place, code, sizeof code);
    int dump = open(file, O_RDWR | O_CREAT | O_EXCL, 0644);
    struct timespec time_now;
    clock_gettime(CLOCK_MONOTONIC, &time_now);
    uint64_t now = time_now.tv_sec * 1000000000ull + time_now.tv_nsec;
    struct {
        uint32_t magic, version, size, machine, pad, pid;
        uint64_t time, flags;
    } header = {0x4A695444, 1, 40, 62, 0, getpid(), now, 0};
    struct {
        uint32_t kind, size;
        uint64_t time;
        uint32_t pid, tid;
        uint64_t vma, address, length, index;
    } load = {0, 56 + sizeof name + sizeof code, now, getpid(), getpid(), (uint64_t)place, (uint64_t)place,
              sizeof code, 0};
    if (write(dump, &header, 40) != 40 || write(dump, &load, 56) != 56
        || write(dump, name, sizeof name) != sizeof name || write(dump, code, sizeof code) != sizeof code)
        return 1;
    mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, dump, 0);
    time_t end = time(0) + atoi(words[2]);
    while (time(0) < end)
        ((void (*)(void))place)();
    return 0;
}
