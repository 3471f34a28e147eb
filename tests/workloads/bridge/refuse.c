/* For LD_PRELOAD before the bridge: `mmap`, by which its memory comes from the system, refuses. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <sys/mman.h>

/* How many requests there were since the last call of `refuse`, and how many of them were refused. */
unsigned asked, refused;
static unsigned first, last;

/* The requests from number `from` to number `to` are refused from now on. Of none: 0. */
void refuse(unsigned from, unsigned to)
{
    asked = refused = 0;
    first = from;
    last = to;
}

void *mmap(void *address, size_t size, int access, int flags, int fd, off_t at)
{
    static void *(*next)(void *, size_t, int, int, int, off_t);
    if (!next)
        next = (void *(*)(void *, size_t, int, int, int, off_t))dlsym(RTLD_NEXT, "mmap");
    if (flags & MAP_ANONYMOUS) {
        unsigned number = ++asked;
        if (first != 0 && number >= first && number <= last) {
            refused++;
            errno = ENOMEM;
            return MAP_FAILED;
        }
    }
    return next(address, size, access, flags, fd, at);
}
